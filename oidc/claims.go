package oidc

import (
	"slices"
	"strings"
	"unicode"

	"github.com/slipway-dev/slipway"
)

const (
	// EveryTenant in place of a tenant's id stands for the whole organisation.
	EveryTenant = "*"

	subjectLimit = 255  // of the subject, in bytes (OpenID Connect Core 2)
	valuesLimit  = 1000 // of the values of one claim
)

// Claims says what the claims of a token mean. A claim is a text or a list of texts; a name such as "realm_access.roles" also
// reaches into objects.
type Claims struct {
	// Role is the claim with the user's roles, and Roles what its values stand for; without Roles they are admin, editor and
	// viewer. The highest counts.
	Role  string
	Roles map[string]slipway.Role
	// Tenant is the claim with the user's tenants, and Tenants the tenants' ids, or EveryTenant, that its values stand for;
	// without Tenants they are ids.
	Tenant  string
	Tenants map[string]string
	// All is the tenant of all users, or EveryTenant, in place of Tenant.
	All string
}

// identity reads whom a valid token stands for. CodeForbidden, with the subject, if it gives no role or no tenant.
func (c Claims) identity(subject string, claims map[string]any) (slipway.Identity, error) {
	if !printable(subject) {
		return slipway.Identity{}, refused("the bearer token has no sub of 1 to %d printable characters; let the issuer name its users", subjectLimit)
	}
	out := slipway.Identity{Subject: subject}
	if out.Role = c.role(claims); out.Role == "" {
		return slipway.Identity{Subject: subject}, slipway.Errorf(slipway.CodeForbidden,
			"the claim %q of the bearer token gives its user no role here; have the identity provider put one of %s into it", c.Role, strings.Join(c.roleNames(), ", "))
	}
	if out.Tenants = c.tenants(claims); slices.Contains(out.Tenants, EveryTenant) {
		out.Tenants, out.Organisation = nil, true
	}
	if len(out.Tenants) == 0 && !out.Organisation {
		return slipway.Identity{Subject: subject}, slipway.Errorf(slipway.CodeForbidden,
			"the claim %q of the bearer token gives its user no tenant here; have the identity provider put one into it", c.Tenant)
	}
	return out, nil
}

// printable says whether a subject is fit for the audit log.
func printable(subject string) bool {
	return subject != "" && len(subject) <= subjectLimit && !strings.ContainsFunc(subject, func(r rune) bool { return !unicode.IsPrint(r) })
}

func (c Claims) role(claims map[string]any) slipway.Role {
	given := values(claims, c.Role)
	for _, role := range slipway.Roles() {
		for _, value := range given {
			if c.Roles == nil && value == string(role) || c.Roles[value] == role {
				return role
			}
		}
	}
	return ""
}

func (c Claims) roleNames() []string {
	var out []string
	for value := range c.Roles {
		out = append(out, value)
	}
	if c.Roles == nil {
		for _, role := range slipway.Roles() {
			out = append(out, string(role))
		}
	}
	slices.Sort(out)
	return out
}

// tenants never takes EveryTenant from a token: only the settings can say it.
func (c Claims) tenants(claims map[string]any) []string {
	if c.All != "" {
		return []string{c.All}
	}
	var out []string
	for _, value := range values(claims, c.Tenant) {
		if c.Tenants != nil {
			value = c.Tenants[value]
		} else if value == EveryTenant {
			value = ""
		}
		if value != "" && !slices.Contains(out, value) {
			out = append(out, value)
		}
	}
	return out
}

// values returns the texts of a claim.
func values(claims map[string]any, name string) []string {
	switch found := find(claims, name).(type) {
	case string:
		return []string{found}
	case []any:
		var out []string
		for _, v := range found[:min(len(found), valuesLimit)] {
			if text, ok := v.(string); ok {
				out = append(out, text)
			}
		}
		return out
	}
	return nil
}

// find looks for a claim of that very name, which may hold dots as addresses do, before it takes it for a path.
func find(claims map[string]any, name string) any {
	if found, ok := claims[name]; ok {
		return found
	}
	for at := 0; at < len(name); at++ {
		if name[at] != '.' {
			continue
		}
		if inner, ok := claims[name[:at]].(map[string]any); ok {
			return find(inner, name[at+1:])
		}
	}
	return nil
}
