package main

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/oidc"
)

// oidcSettings say which identity provider's users are let in, and what the claims of their tokens mean.
type oidcSettings struct {
	issuer      string
	audiences   []string
	algorithms  []string
	skew        time.Duration
	roleClaim   string
	roleMap     []string
	tenantClaim string
	tenantMap   []string
	tenant      string
}

func (o *oidcSettings) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.issuer, "oidc-issuer", "", "identity provider (OpenID Connect issuer) whose users' bearer tokens are valid here")
	flags.StringSliceVar(&o.audiences, "oidc-audience", nil, "aud that its tokens must bear (repeatable: one of them)")
	flags.StringSliceVar(&o.algorithms, "oidc-algorithms", oidc.Algorithms(), "signatures that are accepted")
	flags.DurationVar(&o.skew, "oidc-clock-skew", time.Minute, "how far its clock may be off (0s to 10m)")
	flags.StringVar(&o.roleClaim, "oidc-role-claim", "roles", "claim with a user's roles; realm_access.roles reaches into an object")
	flags.StringArrayVar(&o.roleMap, "oidc-role-map", nil, "what a value of that claim stands for, as VALUE=admin, editor or viewer (repeatable); without it these words themselves")
	flags.StringVar(&o.tenantClaim, "oidc-tenant-claim", "", "claim with the ids of a user's tenants")
	flags.StringArrayVar(&o.tenantMap, "oidc-tenant-map", nil, "what a value of that claim stands for, as VALUE=tenant id, or VALUE=* for every tenant (repeatable)")
	flags.StringVar(&o.tenant, "oidc-tenant", "", "id of the tenant of all its users in place of --oidc-tenant-claim; * = every tenant")
}

// config is nil without an issuer.
func (o *oidcSettings) config() (*oidc.Config, error) {
	if o.issuer == "" {
		if len(o.audiences)+len(o.roleMap)+len(o.tenantMap) > 0 || o.tenantClaim != "" || o.tenant != "" {
			return nil, fmt.Errorf("there are --oidc settings but no --oidc-issuer; name the identity provider")
		}
		return nil, nil
	}
	tenants, err := pairs("--oidc-tenant-map", o.tenantMap, func(text string) string { return text })
	if err != nil {
		return nil, err
	}
	roles, err := pairs("--oidc-role-map", o.roleMap, func(text string) slipway.Role { return slipway.Role(text) })
	if err != nil {
		return nil, err
	}
	c := oidc.Config{
		Issuer: o.issuer, Audiences: o.audiences, Algorithms: o.algorithms, Skew: o.skew,
		Claims: oidc.Claims{Role: o.roleClaim, Roles: roles, Tenant: o.tenantClaim, Tenants: tenants, All: o.tenant},
	}
	if err := c.Check(); err != nil {
		return nil, fmt.Errorf("--oidc: %w", err)
	}
	return &c, nil
}

// pairs reads "value=meaning"s, nil for none. The value may hold "=" itself, as names in directories do.
func pairs[T any](flag string, texts []string, meaning func(string) T) (map[string]T, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	out := make(map[string]T, len(texts))
	for _, text := range texts {
		at := strings.LastIndexByte(text, '=')
		if at < 1 || at == len(text)-1 {
			return nil, fmt.Errorf("%s %q is not of the form VALUE=MEANING", flag, text)
		}
		if _, twice := out[text[:at]]; twice {
			return nil, fmt.Errorf("%s says twice what %q stands for; leave one out", flag, text[:at])
		}
		out[text[:at]] = meaning(text[at+1:])
	}
	return out, nil
}

// verifier is nil without an issuer.
func (o *oidcSettings) verifier(log *slog.Logger) (slipway.TokenVerifier, error) {
	c, err := o.config()
	if c == nil || err != nil {
		return nil, err
	}
	return oidc.New(*c, oidc.Deps{Clock: now, Log: log}), nil
}
