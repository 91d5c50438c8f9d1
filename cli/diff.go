package cli

import (
	"fmt"

	"github.com/slipway-dev/slipway/client"
	"github.com/spf13/cobra"
)

func (a *app) diffCommand() *cobra.Command {
	return &cobra.Command{
		Use: "diff NAME [OLD [NEW]]", Short: "Show what changed between two revisions (default: the latest and the one before it)",
		Long: "Show what changed from one revision to another: source, commit, configuration, resources, names of secrets (never values),\n" +
			"artifact and versions of packages. Without NEW it is the latest revision, without OLD the one before that.",
		Args: cobra.RangeArgs(1, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			old := ""
			if len(args) > 1 {
				old = args[1]
				args = append(args[:1:1], args[2:]...)
			}
			c, d, id, err := a.revision(cmd.Context(), args)
			if err != nil {
				return err
			}
			diff, err := c.DiffRevisions(cmd.Context(), d.ID, id, old)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(diff)
			}
			if len(diff.Changes) == 0 {
				_, err = fmt.Fprintf(a.out, "%s has no changes\n", id)
				return err
			}
			rows := make([][]string, 0, len(diff.Changes))
			for _, change := range diff.Changes {
				rows = append(rows, []string{change.Field, plain(value(change.Before), "-"), plain(value(change.After), "-")})
			}
			return a.table([]string{"FIELD", "BEFORE", "AFTER"}, rows)
		},
	}
}

func (a *app) gcCommand() *cobra.Command {
	var in client.CollectionRequest
	cmd := &cobra.Command{
		Use: "gc", Short: "Remove what builds left and nobody needs from the installation's disk", Args: cobra.NoArgs,
		Long: "Remove what nobody refers to any more, uploaded archives that nobody used for long and, while the limit of disk is\n" +
			"exceeded, what no running or redeployable revision needs, the longest unused first. With --all everything that is\n" +
			"not needed goes, also while there is room.\n" +
			"The platform does the same by itself after builds and deletions.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			done, err := c.Collect(cmd.Context(), in)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(done)
			}
			rows := make([][]string, 0, len(done.Removals))
			for _, r := range done.Removals {
				rows = append(rows, []string{r.Path, megabytes(r.SizeBytes), r.UsedAt.Local().Format("2006-01-02 15:04"), r.Reason})
			}
			if len(rows) > 0 {
				if err := a.table([]string{"WHAT", "SIZE", "LAST USED", "WHY"}, rows); err != nil {
					return err
				}
			}
			if err := a.reasons(done.Removals); err != nil {
				return err
			}
			verb := "freed"
			if in.DryRun {
				verb = "would free"
			}
			_, err = fmt.Fprintf(a.out, "%s %s; %s stay, of which %s are needed\n", verb, megabytes(done.FreedBytes), megabytes(done.KeptBytes), megabytes(done.NeededBytes))
			return err
		},
	}
	cmd.Flags().BoolVar(&in.DryRun, "dry-run", false, "only say what would go, and why")
	cmd.Flags().BoolVar(&in.All, "all", false, "everything that no running or redeployable revision needs, also while there is room")
	return cmd
}

// reasons counts removals by why they are made.
func (a *app) reasons(removals []client.Removal) error {
	count, size, order := map[string]int{}, map[string]int64{}, []string{}
	for _, r := range removals {
		if count[r.Reason] == 0 {
			order = append(order, r.Reason)
		}
		count[r.Reason]++
		size[r.Reason] += r.SizeBytes
	}
	for _, why := range order {
		if _, err := fmt.Fprintf(a.out, "%d of %s: %s\n", count[why], megabytes(size[why]), why); err != nil {
			return err
		}
	}
	return nil
}

func megabytes(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }
