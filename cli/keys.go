package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/client"
	"github.com/spf13/cobra"
)

func (a *app) keysCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "keys", Short: "API keys of a tenant, of the organization, and of single deployments"}
	cmd.AddCommand(a.keysListCommand(), a.keysCreateCommand(), a.keysRevokeCommand(), a.keysRotateCommand())
	return cmd
}

func allKeys(ctx context.Context, c *client.Client, f client.APIKeyFilter) ([]client.APIKey, error) {
	all := []client.APIKey{}
	for f.Limit = pageSize; ; {
		page, next, err := c.APIKeys(ctx, f)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if len(page) < pageSize || next <= f.Offset {
			return all, nil
		}
		f.Offset = next
	}
}

// keyState says in a word whether a key is valid.
func keyState(k client.APIKey, now time.Time) string {
	switch {
	case k.RevokedAt != nil && k.ReplacedBy != nil:
		return "rotated"
	case k.RevokedAt != nil:
		return "revoked"
	case k.ExpiresAt != nil && !now.Before(*k.ExpiresAt):
		return "expired"
	case k.ExpiresAt != nil:
		return "until " + k.ExpiresAt.UTC().Format("2006-01-02 15:04Z")
	}
	return "valid"
}

// bound is the id of the one deployment or listener that a key is for; nil for none.
func bound(k client.APIKey) *string {
	if k.ListenerID != nil {
		return k.ListenerID
	}
	return k.DeploymentID
}

func (a *app) keysListCommand() *cobra.Command {
	var organization, all bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the keys of the tenant that are valid", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			keys, err := allKeys(cmd.Context(), c, client.APIKeyFilter{OrganizationWide: &organization})
			if err != nil {
				return err
			}
			shown, rows := []client.APIKey{}, [][]string{}
			for _, k := range keys {
				state := keyState(k, time.Now())
				if !all && state != "valid" && !strings.HasPrefix(state, "until") {
					continue
				}
				used := "-"
				if k.LastUsedAt != nil {
					used = age(*k.LastUsedAt)
				}
				shown = append(shown, k)
				rows = append(rows, []string{k.Prefix + "…", plain(value(k.Name), " "), k.Role, state, used, value(bound(k)), k.ID})
			}
			if a.json {
				return a.printJSON(shown)
			}
			return a.table([]string{"KEY", "NAME", "ROLE", "STATE", "USED", "ONLY FOR", "ID"}, rows)
		},
	}
	cmd.Flags().BoolVar(&organization, "organization", false, "list the organization-wide keys")
	cmd.Flags().BoolVar(&all, "all", false, "list also the revoked and the expired")
	return cmd
}

func (a *app) keysCreateCommand() *cobra.Command {
	var in client.APIKeyCreate
	var expires, deployment, listener string
	cmd := &cobra.Command{
		Use: "create --role ROLE", Short: "Create a key; it is shown this once", Args: cobra.NoArgs,
		Example: "  slipway keys create --role editor --name ci --expires 90d\n  slipway keys create --deployment my-app --name deploy",
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if in.ExpiresAt, err = expiry("--expires", expires); err != nil {
				return usage(cmd, err)
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			if deployment != "" {
				_, d, err := a.named(cmd.Context(), deployment)
				if err != nil {
					return err
				}
				in.DeploymentID = &d.ID
			}
			if listener != "" {
				in.ListenerID, in.Role = &listener, "listener"
			}
			made, err := c.CreateAPIKey(cmd.Context(), in)
			if err != nil {
				return err
			}
			return a.showKey(made)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&in.Role, "role", "", "admin, editor, viewer or builder (a deploy key: editor)")
	flags.StringVar(&in.Name, "name", "", "name for people")
	flags.StringVar(&expires, "expires", "", "when it ends: a time from now such as 90d or 12h, or a date such as 2031-05-01")
	flags.StringVar(&deployment, "deployment", "", "make a deploy key, which reads and updates this deployment only")
	flags.StringVar(&listener, "listener", "", "make a key for the listener of this id, which does nothing but its calls")
	flags.BoolVar(&in.OrganizationWide, "organization", false, "valid in every tenant")
	return cmd
}

func (a *app) showKey(made client.NewAPIKey) error {
	if a.json {
		return a.printJSON(made)
	}
	_, err := fmt.Fprintf(a.out, "%s\n\nIt is shown this once. Its id is %s, its role %s.\n", made.Key, made.ID, made.Role)
	return err
}

// keyID finds the id of a key by itself or by its visible beginning.
func keyID(ctx context.Context, c *client.Client, text string) (string, error) {
	if uuidPattern.MatchString(text) {
		return strings.ToLower(text), nil
	}
	prefix, _ := strings.CutSuffix(text, "…")
	var found []client.APIKey
	for _, organization := range []bool{false, true} {
		keys, err := allKeys(ctx, c, client.APIKeyFilter{OrganizationWide: &organization})
		if client.IsStatus(err, 403) && organization {
			break // the organization's keys are not the caller's to see
		}
		if err != nil {
			return "", err
		}
		for _, k := range keys {
			if prefix != "" && k.Prefix == prefix {
				found = append(found, k)
			}
		}
	}
	switch len(found) {
	case 1:
		return found[0].ID, nil
	case 0:
		return "", fmt.Errorf("there is no key %q; `slipway keys list --all` shows those there are", text)
	}
	return "", fmt.Errorf("%d keys begin with %q; give the id of one", len(found), text)
}

func (a *app) keysRevokeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "revoke KEY", Short: "End a key at once; KEY is its id or its visible beginning", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			id, err := keyID(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			if err := c.RevokeAPIKey(cmd.Context(), id); err != nil {
				return err
			}
			if a.json {
				return a.printJSON(map[string]string{"revoked": id})
			}
			_, err = fmt.Fprintf(a.out, "revoked %s\n", args[0])
			return err
		},
	}
}

func (a *app) keysRotateCommand() *cobra.Command {
	var grace, expires string
	cmd := &cobra.Command{
		Use: "rotate KEY", Short: "Replace a key by a new one with its rights; it is shown this once", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var in client.APIKeyRotate
			during, err := period("--grace", grace)
			if err != nil {
				return usage(cmd, err)
			}
			in.GraceSeconds = int64(during / time.Second)
			if in.ExpiresAt, err = expiry("--expires", expires); err != nil {
				return usage(cmd, err)
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			id, err := keyID(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			made, err := c.RotateAPIKey(cmd.Context(), id, in)
			if err != nil {
				return err
			}
			return a.showKey(made)
		},
	}
	cmd.Flags().StringVar(&grace, "grace", "0s", "how long the old key goes on being valid, such as 24h (up to 30d)")
	cmd.Flags().StringVar(&expires, "expires", "", "when the new key ends; without it, after as long a time as the old one had")
	return cmd
}

// period reads a time such as 90d, 12h or 30m.
func period(flag, text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n <= 36500 {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return d, nil
	}
	return 0, fmt.Errorf("%s %q is no time; give one such as 90d, 12h or 30m", flag, text)
}

// date reads a moment such as 2031-05-01 or 2031-05-01T12:00:00Z; days begin in this machine's time zone.
func date(text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02"} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return at, nil
		}
	}
	return time.Time{}, errors.New("no date")
}

// expiry reads a moment, or a time from now; nil for "".
func expiry(flag, text string) (*time.Time, error) {
	if text == "" {
		return nil, nil
	}
	if at, err := date(text); err == nil {
		return &at, nil
	}
	d, err := period(flag, text)
	if err != nil {
		return nil, fmt.Errorf("%s %q is neither a time from now, such as 90d or 12h, nor a date such as 2031-05-01", flag, text)
	}
	at := time.Now().Add(d).UTC().Truncate(time.Second)
	return &at, nil
}
