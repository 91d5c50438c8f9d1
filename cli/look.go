package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/slipway-dev/slipway/client"
	"github.com/spf13/cobra"
)

const pageSize = 100

func (a *app) listCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the deployments", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			all, err := everyDeployment(cmd.Context(), c)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(all)
			}
			rows := make([][]string, 0, len(all))
			for _, d := range all {
				rows = append(rows, []string{d.Name, d.Source, d.Status, value(d.SourceConfig.CustomURL), age(d.CreatedAt)})
			}
			return a.table([]string{"NAME", "SOURCE", "STATUS", "URL", "AGE"}, rows)
		},
	}
}

func everyDeployment(ctx context.Context, c *client.Client) ([]client.Deployment, error) {
	all := []client.Deployment{}
	for offset := 0; ; {
		page, next, err := c.Deployments(ctx, pageSize, offset)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if len(page) < pageSize || next <= offset {
			return all, nil
		}
		offset = next
	}
}

func (a *app) getCommand() *cobra.Command {
	return &cobra.Command{
		Use: "get NAME", Short: "Show one deployment", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, d, err := a.named(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(d)
			}
			return a.describe(cmd.Context(), c, d)
		},
	}
}

func (a *app) describe(ctx context.Context, c *client.Client, d client.Deployment) error {
	rows := [][]string{
		{"name", d.Name}, {"id", d.ID}, {"source", d.Source}, {"status", d.Status}, {"url", value(d.SourceConfig.CustomURL)},
	}
	if d.SourceConfig.RepoURL != nil {
		rows = append(rows, []string{"repository", *d.SourceConfig.RepoURL + " " + value(d.SourceRevisionConfig.RepoRef)})
	}
	rows = append(rows, []string{"secrets", secretNames(d.Secrets)}, []string{"active revision", value(d.ActiveRevisionID)})
	if d.LatestRevisionID != nil {
		latest, err := c.Revision(ctx, d.ID, *d.LatestRevisionID)
		if err != nil {
			return err
		}
		rows = append(rows, []string{"latest revision", latest.ID + " " + latest.Status})
		if latest.Reason() != "" {
			rows = append(rows, []string{"reason", latest.Reason()})
		}
	}
	return a.table([]string{"FIELD", "VALUE"}, rows)
}

func secretNames(secrets []client.Secret) string {
	names := make([]string, 0, len(secrets))
	for _, s := range secrets {
		names = append(names, s.Name)
	}
	if len(names) == 0 {
		return "-"
	}
	return strings.Join(names, " ")
}

func (a *app) revisionsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "revisions NAME", Short: "List the newest revisions of a deployment", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, d, err := a.named(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			revisions, err := c.Revisions(cmd.Context(), d.ID, pageSize)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(revisions)
			}
			rows := make([][]string, 0, len(revisions))
			for _, r := range revisions {
				rows = append(rows, []string{r.ID, shownStatus(d, r), age(r.CreatedAt), r.Reason()})
			}
			return a.table([]string{"REVISION", "STATUS", "AGE", "REASON"}, rows)
		},
	}
}

// shownStatus marks which DEPLOYED revision serves; the others were replaced.
func shownStatus(d client.Deployment, r client.Revision) string {
	switch {
	case r.Status != "DEPLOYED":
		return r.Status
	case d.ActiveRevisionID != nil && *d.ActiveRevisionID == r.ID:
		return "DEPLOYED (active)"
	}
	return "REPLACED"
}

func (a *app) openCommand() *cobra.Command {
	return &cobra.Command{
		Use: "open NAME", Short: "Print the address of a deployment and how to talk to it", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, d, err := a.named(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			address := value(d.SourceConfig.CustomURL)
			if a.json {
				return a.printJSON(map[string]string{"name": d.Name, "url": address})
			}
			_, err = fmt.Fprintf(a.out, "%s\ncurl -s %s/info\n", address, address)
			return err
		},
	}
}
