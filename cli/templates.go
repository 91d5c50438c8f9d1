package cli

import (
	"github.com/slipway-dev/slipway/client"
	"github.com/spf13/cobra"
)

func (a *app) templatesCommand() *cobra.Command {
	return &cobra.Command{
		Use: "templates", Short: "List the prebuilt templates", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			all, err := everyPage(func(limit, offset int) ([]client.Template, int, error) {
				return c.Templates(cmd.Context(), limit, offset)
			})
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(all)
			}
			rows := make([][]string, 0, len(all))
			for _, t := range all {
				rows = append(rows, []string{t.ID, t.Language, t.Title})
			}
			return a.table([]string{"TEMPLATE", "LANGUAGE", "WHAT IT IS"}, rows)
		},
	}
}
