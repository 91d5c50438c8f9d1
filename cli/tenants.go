package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/slipway-dev/slipway/client"
	"github.com/spf13/cobra"
)

var uuidPattern = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

func (a *app) whoamiCommand() *cobra.Command {
	return &cobra.Command{
		Use: "whoami", Short: "Show as whom the server knows you, and what you may do", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			who, err := c.WhoAmI(cmd.Context())
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(who)
			}
			tenant := value(who.TenantName) + " (" + value(who.TenantID) + ")"
			if who.TenantID == nil {
				tenant = "-"
			}
			if who.OrganizationWide {
				tenant += ", and every other with --tenant"
			}
			rows := [][2]string{
				{"principal", plain(who.Principal, " ")}, {"role", who.Role}, {"tenant", plain(tenant, " ")},
				{"may", strings.Join(who.Permissions, ", ")}, {"server", c.Base()},
			}
			if who.DeploymentID != nil {
				rows = append(rows, [2]string{"only deployment", *who.DeploymentID})
			}
			for _, row := range rows {
				fmt.Fprintf(a.out, "%-16s%s\n", row[0], row[1])
			}
			return nil
		},
	}
}

func (a *app) tenantsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "tenants", Short: "Tenants, which own deployments and keys",
		Long: "Tenants own deployments and keys; none sees another's. An organization-wide key, such as that of `slipway up`, acts in\n" +
			"the tenant of --tenant, else of SLIPWAY_TENANT, else in the one that `slipway tenants use` chose.",
	}
	cmd.AddCommand(a.tenantsListCommand(), a.tenantsCreateCommand(), a.tenantsRenameCommand(), a.tenantsDeleteCommand(), a.tenantsUseCommand())
	return cmd
}

// organization connects without a tenant: what is about tenants must also work when the chosen one is gone.
func (a *app) organization() (*client.Client, error) {
	c, _, err := a.server()
	return c, err
}

// tenantNamed finds a tenant by its id or its name.
func tenantNamed(ctx context.Context, c *client.Client, text string) (client.Tenant, error) {
	if uuidPattern.MatchString(text) {
		return c.Tenant(ctx, strings.ToLower(text))
	}
	found, _, err := c.Tenants(ctx, text, 1, 0)
	if err != nil {
		return client.Tenant{}, err
	}
	if text == "" || len(found) == 0 {
		return client.Tenant{}, fmt.Errorf("there is no tenant %q; `slipway tenants list` shows those there are", text)
	}
	return found[0], nil
}

func (a *app) tenantsListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the tenants you may choose from; * is the one in use", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.organization()
			if err != nil {
				return err
			}
			all := []client.Tenant{}
			for more, offset := true, 0; more; {
				page, next, err := c.Tenants(cmd.Context(), "", pageSize, offset)
				if err != nil {
					return err
				}
				all = append(all, page...)
				more, offset = len(page) == pageSize && next > offset, next
			}
			if a.json {
				return a.printJSON(all)
			}
			used := a.chosenTenant()
			rows := make([][]string, 0, len(all))
			for _, t := range all {
				mark := ""
				if used != "" && (t.ID == used || t.Name == used) {
					mark = "*"
				}
				rows = append(rows, []string{mark, plain(t.Name, " "), t.ID, age(t.CreatedAt)})
			}
			return a.table([]string{"", "NAME", "ID", "AGE"}, rows)
		},
	}
}

// tenantCommand is a command about one tenant, which it finds by id or name.
func (a *app) tenantCommand(use, short string, args int, do func(ctx context.Context, c *client.Client, t client.Tenant, args []string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.ExactArgs(args),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.organization()
			if err != nil {
				return err
			}
			t, err := tenantNamed(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			return do(cmd.Context(), c, t, args)
		},
	}
}

func (a *app) tenantsCreateCommand() *cobra.Command {
	return &cobra.Command{
		Use: "create NAME", Short: "Create a tenant", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.organization()
			if err != nil {
				return err
			}
			t, err := c.CreateTenant(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.tenantDone(t, "created %s (%s); `slipway tenants use %s` chooses it\n", t.Name, t.ID, t.Name)
		},
	}
}

func (a *app) tenantDone(t client.Tenant, format string, args ...any) error {
	if a.json {
		return a.printJSON(t)
	}
	_, err := fmt.Fprintf(a.out, format, args...)
	return err
}

func (a *app) tenantsRenameCommand() *cobra.Command {
	return a.tenantCommand("rename TENANT NAME", "Give a tenant another name", 2, func(ctx context.Context, c *client.Client, t client.Tenant, args []string) error {
		renamed, err := c.RenameTenant(ctx, t.ID, args[1])
		if err != nil {
			return err
		}
		return a.tenantDone(renamed, "renamed %s to %s\n", t.Name, renamed.Name)
	})
}

func (a *app) tenantsDeleteCommand() *cobra.Command {
	return a.tenantCommand("delete TENANT", "Delete a tenant without deployments, and its keys", 1, func(ctx context.Context, c *client.Client, t client.Tenant, _ []string) error {
		if err := c.DeleteTenant(ctx, t.ID); err != nil {
			return err
		}
		if dir, local, err := a.local(); err == nil && local.TenantID == t.ID {
			local.TenantID = ""
			if err := writeCredentials(dir, local); err != nil {
				return err
			}
		}
		if a.json {
			return a.printJSON(map[string]string{"deleted": t.ID, "name": t.Name})
		}
		_, err := fmt.Fprintf(a.out, "deleted %s\n", t.Name)
		return err
	})
}

func (a *app) tenantsUseCommand() *cobra.Command {
	return a.tenantCommand("use TENANT", "Act in this tenant from now on, with the key of the local installation", 1, func(_ context.Context, _ *client.Client, t client.Tenant, _ []string) error {
		dir, local, err := a.local()
		if errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("there is no %s in %s to keep the choice in; give --tenant %s or set SLIPWAY_TENANT instead", CredentialsFile, dir, t.Name)
		}
		if err != nil {
			return err
		}
		local.TenantID = t.ID
		if err := writeCredentials(dir, local); err != nil {
			return err
		}
		return a.tenantDone(t, "using %s (%s)\n", t.Name, t.ID)
	})
}

// local reads the credentials of the local installation and says where they are.
func (a *app) local() (dir string, c Credentials, err error) {
	if dir, err = DataDir(a.dataDir, a.getenv); err != nil {
		return "", Credentials{}, err
	}
	c, err = ReadCredentials(dir)
	return dir, c, err
}

// writeCredentials replaces the credentials file as a whole, readable by its owner only.
func writeCredentials(dir string, c Credentials) error {
	raw, err := json.Marshal(c)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, CredentialsFile)
	if err := os.WriteFile(path+".new", append(raw, '\n'), 0o600); err != nil {
		return fmt.Errorf("cannot keep the choice: %w", err)
	}
	return os.Rename(path+".new", path)
}
