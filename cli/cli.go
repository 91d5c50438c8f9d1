// Package cli is slipway's command line towards a control service: deploying, looking, changing. It knows the service only
// through package client; starting one is cmd/slipway's business.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/slipway-dev/slipway/client"
	"github.com/spf13/cobra"
)

// app is what every command shares: where the server is and how to print.
type app struct {
	version string
	url     string
	apiKey  string
	tenant  string
	dataDir string
	json    bool
	getenv  func(string) string
	out     io.Writer
}

// Environment is what the commands see of the process they run in.
type Environment struct {
	Version string
	Getenv  func(string) string
	Out     io.Writer
}

// Commands returns the commands that talk to a control service and adds their shared flags to root.
func Commands(root *cobra.Command, env Environment) []*cobra.Command {
	a := &app{version: env.Version, getenv: env.Getenv, out: env.Out}
	flags := root.PersistentFlags()
	flags.StringVar(&a.url, "url", "", "address of the control service (else SLIPWAY_URL, else the local installation)")
	flags.StringVar(&a.apiKey, "api-key", "", "API key (else SLIPWAY_API_KEY, else the local installation's)")
	flags.StringVar(&a.tenant, "tenant", "", "id or name of the tenant to act in (else SLIPWAY_TENANT, else the one that 'slipway tenants use' chose)")
	flags.StringVar(&a.dataDir, "data-dir", "", "data directory of a local installation (else SLIPWAY_DATA_DIR, else ~/.slipway)")
	flags.BoolVar(&a.json, "json", false, "print JSON")
	return []*cobra.Command{
		a.whoamiCommand(), a.tenantsCommand(), a.keysCommand(), a.auditCommand(),
		a.deployCommand(), a.listCommand(), a.getCommand(), a.revisionsCommand(), a.logsCommand(), a.redeployCommand(),
		a.deleteCommand(), a.restoreCommand(), a.secretsCommand(), a.openCommand(), a.templatesCommand(), a.integrationsCommand(), a.versionCommand(),
		a.interruptCommand(), a.eventsCommand(), a.tierCommand(), a.telemetryCommand(), a.configCommand(),
		a.listenersCommand(), a.webhooksCommand(), a.diffCommand(), a.gcCommand(),
	}
}

// Message turns an error into the one sentence with a remedy that the command line prints.
func Message(err error) string {
	var unreachable *client.UnreachableError
	var answer *client.Error
	switch {
	case errors.Is(err, context.Canceled):
		return "stopped."
	case errors.As(err, &unreachable):
		return fmt.Sprintf("%s; start one with `slipway up`, or name another with --url or SLIPWAY_URL.", unreachable.Error())
	case errors.As(err, &answer) && answer.Status == 401:
		return ended(answer.Detail) + " Give a valid key with --api-key or SLIPWAY_API_KEY."
	}
	return ended(err.Error())
}

// Helpful makes every mistake in the use of a command, below root and in it, end with where to read how it is used.
func Helpful(root *cobra.Command) {
	root.SetFlagErrorFunc(usage)
	root.SuggestionsMinimumDistance = 2
	if root.HasSubCommands() && !root.Runnable() {
		root.Args = unknownCommand
		root.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	if check := root.Args; check != nil {
		root.Args = func(cmd *cobra.Command, args []string) error { return usage(cmd, check(cmd, args)) }
	}
	for _, cmd := range root.Commands() {
		Helpful(cmd)
	}
}

func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
		return fmt.Errorf("there is no command %q, but %s", args[0], strings.Join(like, ", "))
	}
	return fmt.Errorf("there is no command %q", args[0])
}

func usage(cmd *cobra.Command, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w; see `%s --help`", err, cmd.CommandPath())
}

// ended gives a sentence its full stop.
func ended(text string) string {
	text = strings.TrimSpace(text)
	if text == "" || strings.ContainsRune(".!?", rune(text[len(text)-1])) {
		return text
	}
	return text + "."
}

// named finds the server and, on it, a deployment by its name.
func (a *app) named(ctx context.Context, name string) (*client.Client, client.Deployment, error) {
	c, err := a.connect()
	if err != nil {
		return nil, client.Deployment{}, err
	}
	d, found, err := c.DeploymentByName(ctx, name)
	if err != nil {
		return nil, client.Deployment{}, err
	}
	if !found {
		return c, client.Deployment{}, fmt.Errorf("there is no deployment named %q; `slipway list` shows those there are", name)
	}
	return c, d, nil
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if a.json {
				return a.printJSON(map[string]string{"version": a.version})
			}
			_, err := fmt.Fprintln(a.out, "slipway", a.version)
			return err
		},
	}
}
