package main

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/api/authn"
	"github.com/slipway-dev/slipway/control"
)

// accessSettings say who is let in by what, and what is told of it.
type accessSettings struct {
	proxies        []string
	proxyRole      string
	proxyUser      string
	secretReaders  []string
	auditDays      int
	deploymentsOff bool
}

func (a *accessSettings) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&a.proxies, "trusted-proxy", nil, "address or network of a proxy whose X-Forwarded-For is believed (repeatable)")
	flags.StringVar(&a.proxyRole, "proxy-role-header", "", "header in which the trusted proxies say the role (admin, editor, viewer) of a user they authenticated; "+
		"with it X-Tenant-Id is enough from them, and they must remove both headers from what clients send")
	flags.StringVar(&a.proxyUser, "proxy-user-header", "", "header in which they say that user's name, for the audit log")
	flags.StringSliceVar(&a.secretReaders, "secret-readers", nil, "roles whose answers show the values of secrets; every such read is in the audit log (none)")
	flags.IntVar(&a.auditDays, "audit-retention-days", 400, "how long the audit log is kept (1 to 36500)")
	flags.BoolVar(&a.deploymentsOff, "disable-deployments", false, "answer 403 to whatever is about deployments; access goes on being managed")
}

// check refuses settings that cannot be meant.
func (a *accessSettings) check() error {
	trusted, err := a.networks()
	if err != nil {
		return err
	}
	if a.proxyRole != "" && len(trusted) == 0 {
		return fmt.Errorf("--proxy-role-header %q needs --trusted-proxy: name the proxies that may send it", a.proxyRole)
	}
	for _, role := range a.readers() {
		if !role.Valid() {
			return fmt.Errorf("--secret-readers %q is no role; name some of %v", role, slipway.Roles())
		}
	}
	if a.auditDays < 1 || a.auditDays > 36500 {
		return fmt.Errorf("--audit-retention-days is %d; give a number from 1 to 36500", a.auditDays)
	}
	return nil
}

// networks reads --trusted-proxy.
func (a *accessSettings) networks() ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, text := range a.proxies {
		prefix, err := network(text)
		if err != nil {
			return nil, fmt.Errorf("--trusted-proxy %q is no address or network; give one such as 10.0.0.5 or 10.0.0.0/24", text)
		}
		out = append(out, prefix)
	}
	return out, nil
}

func (a *accessSettings) readers() []slipway.Role {
	out := make([]slipway.Role, len(a.secretReaders))
	for i, role := range a.secretReaders {
		out[i] = slipway.Role(role)
	}
	return out
}

// network reads "10.0.0.0/24" or one address.
func network(text string) (netip.Prefix, error) {
	if prefix, err := netip.ParsePrefix(text); err == nil {
		return prefix.Masked(), nil
	}
	address, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Prefix{}, err
	}
	return netip.PrefixFrom(address, address.BitLen()), nil
}

func (a *accessSettings) authn() (authn.Config, error) {
	trusted, err := a.networks()
	return authn.Config{TrustedProxies: trusted, ProxyRoleHeader: a.proxyRole, ProxyUserHeader: a.proxyUser}, err
}

// apply puts the settings into those of the control service.
func (a *accessSettings) apply(cfg control.Config) control.Config {
	cfg.DeploymentsOff, cfg.SecretReaders = a.deploymentsOff, a.readers()
	cfg.AuditRetention = time.Duration(a.auditDays) * 24 * time.Hour
	return cfg
}
