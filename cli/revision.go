package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/slipway-dev/slipway/client"
	"github.com/spf13/cobra"
)

// revision finds a deployment by its name and the revision that the second argument names, else its latest one.
func (a *app) revision(ctx context.Context, args []string) (*client.Client, client.Deployment, string, error) {
	c, d, err := a.named(ctx, args[0])
	switch {
	case err != nil:
		return nil, d, "", err
	case len(args) == 2:
		return c, d, args[1], nil
	case d.LatestRevisionID == nil:
		return nil, d, "", fmt.Errorf("%q has no revision yet; make one with `slipway deploy`", d.Name)
	}
	return c, d, *d.LatestRevisionID, nil
}

func (a *app) interruptCommand() *cobra.Command {
	return &cobra.Command{
		Use: "interrupt NAME [REVISION]", Short: "Stop the build or rollout of a revision (default: the latest); what serves goes on",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, d, id, err := a.revision(cmd.Context(), args)
			if err != nil {
				return err
			}
			r, err := c.Interrupt(cmd.Context(), d.ID, id)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(r)
			}
			_, err = fmt.Fprintf(a.out, "%s of %s is %s\n", r.ID, d.Name, r.Status)
			return err
		},
	}
}

func (a *app) eventsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "events NAME [REVISION]", Short: "Show every step of a revision's life (default: the latest)", Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, d, id, err := a.revision(cmd.Context(), args)
			if err != nil {
				return err
			}
			events, err := c.RevisionEvents(cmd.Context(), d.ID, id)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(events)
			}
			rows := make([][]string, 0, len(events))
			for _, e := range events {
				rows = append(rows, []string{e.At.Local().Format(time.DateTime + ".000"), e.Status, plain(value(e.Reason), " ")})
			}
			return a.table([]string{"TIME", "STATUS", "REASON"}, rows)
		},
	}
}
