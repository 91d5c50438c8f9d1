package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/beacon"
	"github.com/slipway-dev/slipway/intake"
)

var monthForm = regexp.MustCompile(`^[0-9]{4}-(0[1-9]|1[0-2])$`)

// usageFlags are the flags of `slipway usage`.
type usageFlags struct {
	data              collectorData
	from, to, licence string
	json, csv         bool
}

func usageCommand() *cobra.Command {
	var f usageFlags
	cmd := &cobra.Command{
		Use: "usage", Short: "Show what a collector counted, per licence and month", Args: cobra.NoArgs,
		Long: "Show what the collector in a data directory counted, whether it runs or not. --csv is the billing export: a row for each\n" +
			"licence and month.",
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	f.data.flags(cmd)
	flags.BoolVar(&f.json, "json", false, "print JSON")
	flags.BoolVar(&f.csv, "csv", false, "print the billing export as CSV")
	flags.StringVar(&f.from, "from", "", "first month, as 2026-01")
	flags.StringVar(&f.to, "to", "", "last month")
	flags.StringVar(&f.licence, "license", "", "only the licence with this id")
	cmd.MarkFlagsMutuallyExclusive("json", "csv")
	return cmd
}

func (f usageFlags) run(ctx context.Context) error {
	for _, month := range []string{f.from, f.to} {
		if month != "" && !monthForm.MatchString(month) {
			return fmt.Errorf("%q is no month; write it as 2026-01", month)
		}
	}
	if err := f.data.exists(); err != nil {
		return err
	}
	c, err := f.data.open(ctx, intake.Config{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	list, err := c.Usage(ctx, beacon.UsageQuery{LicenceID: f.licence, From: f.from, To: f.to})
	if err := errors.Join(err, c.close()); err != nil {
		return err
	}
	switch {
	case f.csv:
		return intake.BillingCSV(os.Stdout, list)
	case f.json:
		return printJSON(map[string]any{"generated_at": time.Now().UTC().Format(time.RFC3339), "licenses": list})
	}
	var months []beacon.MonthUsage
	for _, u := range list {
		months = append(months, u.Months...)
	}
	return table(os.Stdout, "CUSTOMER\tLICENCE\tMONTH\tTRACES\tTRANSACTIONS\tSNAPSHOTS\tUSERS", len(months), func(i int) []any {
		m := months[i]
		return []any{m.Customer, m.LicenceID, m.Month, m.TraceCount, m.Transactions, m.Snapshots, m.Measures["users"]}
	})
}
