package cli

import (
	"errors"

	"github.com/slipway-dev/slipway/client"
	"github.com/spf13/cobra"
)

func (a *app) tierCommand() *cobra.Command {
	var compute, database string
	var noWait bool
	cmd := &cobra.Command{
		Use: "tier NAME [TIER]", Short: "Set the tier of a deployment, or of its compute and database alone; makes a revision",
		Long: "Set the tier of a deployment: SERVERLESS_S, _M or _L, or DEDICATED_S, _M or _L. With --compute and --database only these\n" +
			"change. There is no change between the two kinds.",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 2) == (compute != "" || database != "") {
				return usage(cmd, errors.New("give either a tier, or --compute, --database or both"))
			}
			c, d, err := a.named(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			change := func() (client.Deployment, error) {
				return c.ChangeResourceTiers(cmd.Context(), d.ID, compute, database)
			}
			if len(args) == 2 {
				change = func() (client.Deployment, error) { return c.ChangeDeploymentTier(cmd.Context(), d.ID, args[1]) }
			}
			if d, err = change(); err != nil {
				return err
			}
			return a.outcome(cmd.Context(), c, d, noWait, a.progress())
		},
	}
	cmd.Flags().StringVar(&compute, "compute", "", "tier of the compute alone")
	cmd.Flags().StringVar(&database, "database", "", "tier of the database alone; only DEDICATED_S, _M or _L")
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "do not wait for the revision's end")
	return cmd
}
