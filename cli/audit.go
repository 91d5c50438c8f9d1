package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/client"
	"github.com/spf13/cobra"
)

func (a *app) auditCommand() *cobra.Command {
	var f client.AuditFilter
	var since, until, export string
	var limit int
	cmd := &cobra.Command{
		Use: "audit", Short: "Show who did what, newest first", Args: cobra.NoArgs,
		Example: "  slipway audit --since 7d --operation delete_deployment\n  slipway audit --since 2031-05-01 --export csv > audit.csv",
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if f.From, err = before("--since", since); err != nil {
				return usage(cmd, err)
			}
			if f.To, err = before("--until", until); err != nil {
				return usage(cmd, err)
			}
			if limit < 1 {
				return usage(cmd, fmt.Errorf("--limit is %d; give 1 or more", limit))
			}
			if export != "" && export != "csv" && export != "jsonl" {
				return usage(cmd, fmt.Errorf("--export is %q; give csv or jsonl", export))
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			if export != "" {
				return c.ExportAuditLogs(cmd.Context(), f, export, a.out)
			}
			return a.showAudit(cmd, c, f, limit)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.Operation, "operation", "", "only this operation, such as update_deployment")
	flags.StringVar(&f.Principal, "principal", "", "only what this principal did, such as key:slw_AbCdEfGh")
	flags.StringVar(&f.Subject, "subject", "", "only what was done to the thing of this id")
	flags.StringVar(&f.Outcome, "outcome", "", "success or refused")
	flags.StringVar(&f.RequestID, "request-id", "", "only what this request did")
	flags.StringVar(&since, "since", "", "from then on: a time ago such as 7d or 12h, or a date such as 2031-05-01")
	flags.StringVar(&until, "until", "", "before then")
	flags.IntVar(&limit, "limit", 50, "how many to show; --export shows all")
	flags.StringVar(&export, "export", "", "print the whole selection as csv or jsonl")
	return cmd
}

func (a *app) showAudit(cmd *cobra.Command, c *client.Client, f client.AuditFilter, limit int) error {
	all := []client.AuditEntry{}
	for cursor := ""; len(all) < limit; {
		page, next, err := c.AuditLogs(cmd.Context(), f, min(limit-len(all), pageSize), cursor)
		if err != nil {
			return err
		}
		all = append(all, page...)
		if next == "" || len(page) == 0 {
			break
		}
		cursor = next
	}
	if a.json {
		return a.printJSON(all)
	}
	rows := make([][]string, 0, len(all))
	for _, e := range all {
		rows = append(rows, []string{
			e.Time.Local().Format("2006-01-02 15:04:05"), plain(e.Principal, " "), plain(value(e.Address), " "), e.Operation, plain(value(e.Subject), " "), e.Outcome, changed(e),
		})
	}
	return a.table([]string{"TIME", "PRINCIPAL", "FROM", "OPERATION", "SUBJECT", "OUTCOME", "CHANGED"}, rows)
}

// changed names the fields that an entry tells of.
func changed(e client.AuditEntry) string {
	const most = 3
	names := make([]string, 0, most)
	for _, c := range e.Changes[:min(len(e.Changes), most)] {
		names = append(names, plain(c.Field, " "))
	}
	if more := len(e.Changes) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// before reads a moment, or a time ago; zero for "".
func before(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if at, err := date(text); err == nil {
		return at, nil
	}
	d, err := period(flag, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s %q is neither a time ago, such as 7d or 12h, nor a date such as 2031-05-01", flag, text)
	}
	return time.Now().Add(-d), nil
}
