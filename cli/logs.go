package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/slipway-dev/slipway/client"
	"github.com/spf13/cobra"
)

func (a *app) logsCommand() *cobra.Command {
	var build, follow bool
	var revision string
	cmd := &cobra.Command{
		Use: "logs NAME", Short: "Print the logs of a deployment's agent server, or of its latest build", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, d, err := a.named(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if build && revision == "" {
				if d.LatestRevisionID == nil {
					return fmt.Errorf("%q has no revision yet, so no build; make one with `slipway deploy`", d.Name)
				}
				revision = *d.LatestRevisionID
			}
			t := &tail{client: c, query: client.LogQuery{DeploymentID: d.ID, RevisionID: revision, Build: build, Limit: followPage}}
			return a.printLogs(cmd.Context(), t, follow)
		},
	}
	cmd.Flags().BoolVar(&build, "build", false, "the build log")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on printing new lines")
	cmd.Flags().StringVar(&revision, "revision", "", "only this revision's")
	return cmd
}

func (a *app) printLogs(ctx context.Context, t *tail, follow bool) error {
	ticker := time.NewTicker(followInterval)
	defer ticker.Stop()
	for {
		if err := t.more(ctx, a.printLog); err != nil || !follow || t.done {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (a *app) printLog(e client.LogEntry) {
	if a.json {
		_ = a.printJSON(e)
		return
	}
	fmt.Fprintf(a.out, "%s %-7s %s\n", e.Time().Format("2006-01-02 15:04:05.000"), e.Level, plain(e.Message, "\n    "))
}
