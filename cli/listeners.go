package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/slipway-dev/slipway/client"
	"github.com/spf13/cobra"
)

func (a *app) listenersCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "listeners", Short: "Listeners, which look after data planes elsewhere"}
	cmd.AddCommand(a.listenersListCommand(), a.listenersCreateCommand(), a.listenersPatchCommand(), a.listenersDeleteCommand())
	return cmd
}

func (a *app) listenersListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the listeners", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			all, err := everyListener(cmd.Context(), c)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(all)
			}
			rows := make([][]string, 0, len(all))
			for _, l := range all {
				rows = append(rows, []string{plain(l.ComputeID, " "), namespaces(l), value(l.Version), presence(l), l.ID})
			}
			return a.table([]string{"COMPUTE", "NAMESPACES", "VERSION", "SEEN", "ID"}, rows)
		},
	}
}

func everyListener(ctx context.Context, c *client.Client) ([]client.Listener, error) {
	return everyPage(func(limit, offset int) ([]client.Listener, int, error) { return c.Listeners(ctx, limit, offset) })
}

func namespaces(l client.Listener) string {
	if l.ComputeConfig.ClusterNamespaces == nil {
		return "all"
	}
	return strings.Join(*l.ComputeConfig.ClusterNamespaces, ",")
}

// presence says whether somebody listens.
func presence(l client.Listener) string {
	switch {
	case l.LastSeenAt == nil:
		return "never"
	case l.Online:
		return "online"
	}
	return "offline for " + age(*l.LastSeenAt)
}

func (a *app) listenersCreateCommand() *cobra.Command {
	var watched []string
	var version string
	cmd := &cobra.Command{
		Use: "create COMPUTE_ID", Short: "Make a listener for a cluster", Args: cobra.ExactArgs(1),
		Long: "Make a listener for a cluster, or for some of its namespaces. What listens there needs the listener's id and a key of\n" +
			"role listener (POST /v2/api-keys).",
		Example: "  slipway listeners create my-cluster --namespaces agents,staging",
		RunE: func(cmd *cobra.Command, args []string) error {
			in := client.ListenerCreate{ComputeType: "cluster", ComputeID: args[0]}
			if cmd.Flags().Changed("namespaces") {
				in.ComputeConfig.ClusterNamespaces = &watched
			}
			if version != "" {
				in.Version = &version
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			made, err := c.CreateListener(cmd.Context(), in)
			if err != nil {
				return err
			}
			return a.listenerDone("created", made)
		},
	}
	cmd.Flags().StringSliceVar(&watched, "namespaces", nil, "namespaces it looks after; without it all of them")
	cmd.Flags().StringVar(&version, "version", "", "version of the program that listens")
	return cmd
}

func (a *app) listenerDone(what string, l client.Listener) error {
	if a.json {
		return a.printJSON(l)
	}
	_, err := fmt.Fprintf(a.out, "%s %s (%s)\n", what, plain(l.ComputeID, " "), l.ID)
	return err
}

func (a *app) listenersPatchCommand() *cobra.Command {
	var watched []string
	var every bool
	var version string
	cmd := &cobra.Command{
		Use: "patch LISTENER", Short: "Change the namespaces or the version of a listener", Args: cobra.ExactArgs(1),
		Long: "Change a listener, given by its compute id or its id.",
		RunE: func(cmd *cobra.Command, args []string) error {
			var in client.ListenerPatch
			switch some := cmd.Flags().Changed("namespaces"); {
			case some && every:
				return usage(cmd, errors.New("give either --namespaces or --all-namespaces"))
			case some:
				in.ComputeConfig = &client.ComputeConfig{ClusterNamespaces: &watched}
			case every:
				in.ComputeConfig = &client.ComputeConfig{}
			case version == "":
				return usage(cmd, errors.New("there is nothing to change; give --namespaces, --all-namespaces or --version"))
			}
			if version != "" {
				in.Version = &version
			}
			c, l, err := a.listenerNamed(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if l, err = c.PatchListener(cmd.Context(), l.ID, in); err != nil {
				return err
			}
			return a.listenerDone("changed", l)
		},
	}
	cmd.Flags().StringSliceVar(&watched, "namespaces", nil, "namespaces it looks after from now on")
	cmd.Flags().BoolVar(&every, "all-namespaces", false, "let it look after all namespaces")
	cmd.Flags().StringVar(&version, "version", "", "version of the program that listens")
	return cmd
}

// listenerNamed finds a listener by its compute id or its id.
func (a *app) listenerNamed(ctx context.Context, name string) (*client.Client, client.Listener, error) {
	c, err := a.connect()
	if err != nil {
		return nil, client.Listener{}, err
	}
	all, err := everyListener(ctx, c)
	if err != nil {
		return nil, client.Listener{}, err
	}
	for _, l := range all {
		if l.ComputeID == name || l.ID == name {
			return c, l, nil
		}
	}
	return nil, client.Listener{}, fmt.Errorf("there is no listener %q; `slipway listeners list` shows those there are", name)
}

func (a *app) listenersDeleteCommand() *cobra.Command {
	return &cobra.Command{
		Use: "delete LISTENER", Short: "Delete a listener that no deployment uses", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, l, err := a.listenerNamed(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if err := c.DeleteListener(cmd.Context(), l.ID); err != nil {
				return err
			}
			if a.json {
				return a.printJSON(map[string]string{"deleted": l.ID, "compute_id": l.ComputeID})
			}
			_, err = fmt.Fprintf(a.out, "deleted %s\n", plain(l.ComputeID, " "))
			return err
		},
	}
}
