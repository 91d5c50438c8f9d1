package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/beacon"
	"github.com/slipway-dev/slipway/intake"
)

// licenceLine is a licence as `slipway license list` prints it.
type licenceLine struct {
	ID           string      `json:"license_id"`
	Customer     string      `json:"customer"`
	Kind         beacon.Kind `json:"kind"`
	Status       string      `json:"status"`
	Entitlements []string    `json:"entitlements"`
	IssuedAt     time.Time   `json:"issued_at"`
	ExpiresAt    time.Time   `json:"expires_at"`
	RevokedAt    *time.Time  `json:"revoked_at"`
}

func lineOf(l beacon.Licence) licenceLine {
	line := licenceLine{
		ID: l.ID, Customer: l.Customer, Kind: l.Kind, Status: l.Status(time.Now()), Entitlements: append([]string{}, l.Entitlements...),
		IssuedAt: l.IssuedAt, ExpiresAt: l.ExpiresAt,
	}
	if !l.RevokedAt.IsZero() {
		line.RevokedAt = &l.RevokedAt
	}
	return line
}

// licenseFlags are common to the commands about licences.
type licenseFlags struct {
	data collectorData
	json bool
}

// add adds a command that works on the data of a collector, which may be running.
func (f *licenseFlags) add(to *cobra.Command, use, short string, args cobra.PositionalArgs, do func(ctx context.Context, c collector, args []string) error) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: args, RunE: func(cmd *cobra.Command, args []string) error {
		if use != "issue" {
			if err := f.data.exists(); err != nil {
				return err
			}
		}
		c, err := f.data.open(cmd.Context(), intake.Config{Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			return err
		}
		err = do(cmd.Context(), c, args)
		if closing := c.close(); err == nil {
			err = closing
		}
		return err
	}}
	f.flags(cmd)
	to.AddCommand(cmd)
	return cmd
}

func (f *licenseFlags) flags(cmd *cobra.Command) {
	f.data.flags(cmd)
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON")
}

func licenseCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "license", Aliases: []string{"licence"}, Short: "Issue, list and revoke licences of a collector",
		Long: "Licences are signed; the collector in the same data directory knows a new or revoked one at once. An online licence\n" +
			"(lcl_…) is verified by its collector; an offline one by its signature alone, and nothing is ever sent with it.",
	}
	f := &licenseFlags{}
	f.issue(cmd)
	f.add(cmd, "list", "List licences, oldest first", cobra.NoArgs, f.list)
	f.add(cmd, "revoke ID|KEY", "Revoke a licence, now and for good", cobra.ExactArgs(1), f.revoke)
	f.add(cmd, "rotate", "Sign with a new key from now on; old licences stay valid", cobra.NoArgs, f.rotate)
	f.add(cmd, "keys", "Print the public keys that licences verify with (JWKS)", cobra.NoArgs, func(_ context.Context, c collector, _ []string) error {
		set, err := c.JWKS()
		if err == nil {
			fmt.Println(string(set))
		}
		return err
	})
	cmd.AddCommand(verifyLicenceCommand())
	return cmd
}

func (f *licenseFlags) issue(to *cobra.Command) {
	var r intake.LicenceRequest
	var offline bool
	cmd := f.add(to, "issue", "Issue a licence and print its key, which is shown only now", cobra.NoArgs, func(ctx context.Context, c collector, _ []string) error {
		r.Kind = beacon.Online
		if offline {
			r.Kind = beacon.Offline
		}
		l, key, err := c.Issue(ctx, r)
		if err != nil {
			return err
		}
		if f.json {
			return printJSON(map[string]any{
				"license_key": key, "expires_at": l.ExpiresAt, "kind": l.Kind, "license_id": l.ID, "customer": l.Customer,
			})
		}
		fmt.Printf("%s\n\nlicence %s of %s, %s, valid until %s\n", key, l.ID, l.Customer, l.Kind, l.ExpiresAt.Format(time.RFC3339))
		return nil
	})
	flags := cmd.Flags()
	flags.StringVar(&r.Customer, "customer", "", "name of the customer")
	flags.BoolVar(&offline, "offline", false, "a licence for an installation that sends nothing")
	flags.IntVar(&r.Days, "days", 365, "days it is valid")
	flags.StringSliceVar(&r.Entitlements, "entitlement", nil, "what the licence entitles to (repeatable)")
	_ = cmd.MarkFlagRequired("customer")
}

func (f *licenseFlags) list(ctx context.Context, c collector, _ []string) error {
	licences, err := c.Licences(ctx)
	if err != nil {
		return err
	}
	lines := make([]licenceLine, len(licences))
	for i, l := range licences {
		lines[i] = lineOf(l)
	}
	if f.json {
		return printJSON(lines)
	}
	return table(os.Stdout, "LICENCE\tCUSTOMER\tKIND\tSTATUS\tEXPIRES", len(lines), func(i int) []any {
		return []any{lines[i].ID, lines[i].Customer, lines[i].Kind, lines[i].Status, lines[i].ExpiresAt.Format(time.DateOnly)}
	})
}

func (f *licenseFlags) revoke(ctx context.Context, c collector, args []string) error {
	l, err := c.Revoke(ctx, args[0])
	if err != nil {
		return err
	}
	if f.json {
		return printJSON(lineOf(l))
	}
	fmt.Printf("licence %s of %s is revoked\n", l.ID, l.Customer)
	return nil
}

func (f *licenseFlags) rotate(_ context.Context, c collector, _ []string) error {
	key, err := c.Rotate()
	if err != nil {
		return err
	}
	if f.json {
		return printJSON(map[string]any{"key_id": key.ID, "created_at": key.CreatedAt})
	}
	fmt.Printf("licences and tokens are signed with key %s from now on\n", key.ID)
	return nil
}

// verifyLicenceCommand checks a key with nothing but the public keys: no collector, no network.
func verifyLicenceCommand() *cobra.Command {
	var jwks string
	cmd := &cobra.Command{
		Use: "verify KEY", Short: "Check a licence key without a collector", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := os.ReadFile(jwks)
			if err != nil {
				return fmt.Errorf("read the public keys: %w; write them with `slipway license keys`", err)
			}
			keys, err := beacon.ParseJWKS(text)
			if err != nil {
				return err
			}
			l, err := keys.VerifyKey(strings.TrimSpace(args[0]))
			if err != nil {
				return err
			}
			if err := l.Check(time.Now()); err != nil {
				return err
			}
			return printJSON(lineOf(l))
		},
	}
	cmd.Flags().StringVar(&jwks, "keys", "", "file with the issuer's public keys (JWKS)")
	_ = cmd.MarkFlagRequired("keys")
	return cmd
}

func printJSON(v any) error {
	enc := json.NewEncoder(os.Stdout)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// table prints aligned columns.
func table(out io.Writer, head string, rows int, row func(i int) []any) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, head)
	for i := range rows {
		cells := row(i)
		fmt.Fprintf(w, strings.Repeat("%v\t", len(cells)-1)+"%v\n", cells...)
	}
	return w.Flush()
}
