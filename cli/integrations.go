package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/slipway-dev/slipway/client"
	"github.com/spf13/cobra"
)

func (a *app) integrationsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "integrations", Short: "Accounts at git hosts that deployments are built with"}
	github := &cobra.Command{Use: "github", Short: "GitHub Apps"}
	github.AddCommand(a.githubCreateCommand())
	cmd.AddCommand(a.integrationsListCommand(), a.integrationsAddCommand(), a.integrationsDeleteCommand(), a.integrationsReposCommand(), github)
	return cmd
}

func (a *app) integrationsListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the integrations", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			all, err := allIntegrations(cmd.Context(), c)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(all)
			}
			rows := make([][]string, 0, len(all))
			for _, i := range all {
				host := i.HostURL
				if i.Pending {
					host += " (not made yet)"
				}
				rows = append(rows, []string{i.Name, i.Kind, host, i.ID})
			}
			return a.table([]string{"NAME", "KIND", "HOST", "ID"}, rows)
		},
	}
}

func allIntegrations(ctx context.Context, c *client.Client) ([]client.Integration, error) {
	return everyPage(func(limit, offset int) ([]client.Integration, int, error) { return c.Integrations(ctx, limit, offset) })
}

// integrationNamed finds an integration by its name.
func (a *app) integrationNamed(ctx context.Context, name string) (*client.Client, client.Integration, error) {
	c, err := a.connect()
	if err != nil {
		return nil, client.Integration{}, err
	}
	all, err := allIntegrations(ctx, c)
	if err != nil {
		return nil, client.Integration{}, err
	}
	for _, i := range all {
		if i.Name == name {
			return c, i, nil
		}
	}
	return nil, client.Integration{}, fmt.Errorf("there is no integration named %q; `slipway integrations list` shows those there are", name)
}

func (a *app) integrationsAddCommand() *cobra.Command {
	var in client.IntegrationCreate
	var keyFile, hostsFile string
	cmd := &cobra.Command{
		Use: "add KIND NAME --host URL", Short: "Add a Gitea, Forgejo, GitLab or plain git server",
		Long: "Add a git host of kind gitea (also Forgejo), gitlab or generic. The token is read from the standard input, or from\n" +
			"SLIPWAY_GIT_TOKEN, so that it is in no list of processes. A generic host over ssh takes a deploy key instead.",
		Example: "  slipway integrations add gitea home --host https://git.example.com < token.txt\n" +
			"  slipway integrations add generic plain --host ssh://git@git.example.com --key deploy_key --known-hosts known_hosts",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			in.Kind, in.Name = args[0], args[1]
			if err := a.readCredentials(cmd.InOrStdin(), &in, keyFile, hostsFile); err != nil {
				return err
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			made, err := c.CreateIntegration(cmd.Context(), in)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(made)
			}
			_, err = fmt.Fprintf(a.out, "added %s (%s)\n\nTo build on push, add a webhook to the repositories at the host:\n  address  %s\n  secret   %s\n  content  application/json, push events\n"+
				"The secret is shown this once.\n", made.Name, made.ID, made.WebhookURL, made.WebhookSecret)
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&in.HostURL, "host", "", "address of the host; of generic ones the beginning of its repositories' addresses")
	flags.StringVar(&in.APIURL, "api", "", "address of the host's API, if it is not at its usual place")
	flags.StringVar(&in.Username, "username", "", "that goes with the token, if the host wants one")
	flags.StringVar(&keyFile, "key", "", "file of a deploy key, in place of a token")
	flags.StringVar(&hostsFile, "known-hosts", "", "file with the host's keys, as ssh-keyscan prints them; with --key")
	_ = cmd.MarkFlagRequired("host") // the flag is defined above
	return cmd
}

// readCredentials reads what must not be an argument.
func (a *app) readCredentials(stdin io.Reader, in *client.IntegrationCreate, keyFile, hostsFile string) error {
	for file, target := range map[string]*string{keyFile: &in.PrivateKey, hostsFile: &in.KnownHosts} {
		if file == "" {
			continue
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("cannot read %s: %w", file, err)
		}
		*target = string(raw)
	}
	if in.Token = a.getenv("SLIPWAY_GIT_TOKEN"); in.Token != "" || keyFile != "" {
		return nil
	}
	raw, err := io.ReadAll(io.LimitReader(stdin, 16<<10))
	if err != nil {
		return fmt.Errorf("cannot read the token: %w", err)
	}
	if in.Token = strings.TrimSpace(string(raw)); in.Token == "" {
		return fmt.Errorf("there is no token: give it on the standard input or with SLIPWAY_GIT_TOKEN, or a deploy key with --key")
	}
	return nil
}

func (a *app) integrationsDeleteCommand() *cobra.Command {
	return &cobra.Command{
		Use: "delete NAME", Short: "Forget an integration and its credentials", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, i, err := a.integrationNamed(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if err := c.DeleteIntegration(cmd.Context(), i.ID); err != nil {
				return err
			}
			if a.json {
				return a.printJSON(map[string]string{"deleted": i.ID, "name": i.Name})
			}
			_, err = fmt.Fprintf(a.out, "deleted %s\n", i.Name)
			return err
		},
	}
}

func (a *app) integrationsReposCommand() *cobra.Command {
	return &cobra.Command{
		Use: "repos NAME", Short: "List the repositories that an integration offers", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, i, err := a.integrationNamed(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			all, err := c.Repositories(cmd.Context(), i.ID)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(all)
			}
			rows := make([][]string, 0, len(all))
			for _, r := range all {
				rows = append(rows, []string{plain(r.Owner+"/"+r.Name, " "), plain(r.DefaultBranch, " "), plain(r.URL, " ")})
			}
			return a.table([]string{"REPOSITORY", "BRANCH", "ADDRESS"}, rows)
		},
	}
}
