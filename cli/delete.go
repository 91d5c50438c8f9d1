package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/slipway-dev/slipway/client"
	"github.com/spf13/cobra"
)

// tornDown bounds how long `slipway delete` waits for the end of a deployment.
const tornDown = 30 * time.Second

func (a *app) deleteCommand() *cobra.Command {
	var noWait, purge bool
	cmd := &cobra.Command{
		Use: "delete NAME", Short: "Delete a deployment and wait until it is torn down", Args: cobra.ExactArgs(1),
		Long: "Delete a deployment and wait until it is torn down. Until its retention is over, `slipway restore` brings it back\n" +
			"and its name is reserved; with --purge its data goes at once and its name is free. One that is deleted already can\n" +
			"still be purged.",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, d, err := a.deletable(cmd.Context(), args[0], purge)
			if err != nil {
				return err
			}
			if err := remove(cmd.Context(), c, d, purge); err != nil {
				return err
			}
			if !noWait {
				if err := awaitEnd(cmd.Context(), c, d, purge); err != nil {
					return err
				}
			}
			return a.deleted(cmd.Context(), c, d, purge)
		},
	}
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "do not wait until it is torn down")
	cmd.Flags().BoolVar(&purge, "purge", false, "remove its data too and free its name; nothing brings it back")
	return cmd
}

// deletable finds the deployment; to be purged it may be deleted already.
func (a *app) deletable(ctx context.Context, name string, purge bool) (*client.Client, client.Deployment, error) {
	c, d, err := a.named(ctx, name)
	if err == nil || c == nil || !purge {
		return c, d, err
	}
	if d, found, lookErr := c.DeletedDeploymentByName(ctx, name); lookErr == nil && found {
		return c, d, nil
	}
	return c, d, err
}

func remove(ctx context.Context, c *client.Client, d client.Deployment, purge bool) error {
	if err := c.DeleteDeployment(ctx, d.ID); err != nil || !purge {
		return err
	}
	return c.PurgeDeployment(ctx, d.ID)
}

// deleted says what was done, and until when it can be undone.
func (a *app) deleted(ctx context.Context, c *client.Client, d client.Deployment, purge bool) error {
	out := map[string]string{"deleted": d.ID, "name": d.Name}
	text := fmt.Sprintf("deleted %s", d.Name)
	if !purge {
		kept, found, err := c.DeletedDeployment(ctx, d.ID)
		if err != nil {
			return err
		}
		if found && kept.PurgeAt != nil {
			out["restorable_until"] = kept.PurgeAt.Format(time.RFC3339)
			text += fmt.Sprintf("; `slipway restore %s` brings it back until %s", d.Name, kept.PurgeAt.Local().Format(time.DateTime))
		}
	}
	if a.json {
		return a.printJSON(out)
	}
	_, err := fmt.Fprintln(a.out, text)
	return err
}

// awaitEnd waits until a deleted deployment is torn down; to be purged, until nothing is left of it.
func awaitEnd(ctx context.Context, c *client.Client, d client.Deployment, purge bool) error {
	ticker := time.NewTicker(followInterval / 4)
	defer ticker.Stop()
	for deadline := time.Now().Add(tornDown); ; {
		left, found, err := c.DeletedDeployment(ctx, d.ID)
		if err != nil || !found || !purge && left.TornDownAt != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%q is deleted, but it is still being torn down", d.Name)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

func (a *app) restoreCommand() *cobra.Command {
	return &cobra.Command{
		Use: "restore NAME", Short: "Bring a deleted deployment back", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			d, found, err := c.DeletedDeploymentByName(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if !found {
				return fmt.Errorf("there is no deleted deployment named %q that could be restored", args[0])
			}
			if d, err = c.RestoreDeployment(cmd.Context(), d.ID); err != nil {
				return err
			}
			if a.json {
				return a.printJSON(map[string]string{"restored": d.ID, "name": d.Name, "status": d.Status})
			}
			_, err = fmt.Fprintf(a.out, "restored %s\n", d.Name)
			return err
		},
	}
}
