// Package authn reads credentials from requests and carries the principal to the handlers (control-plane reference 1).
package authn

import (
	"context"
	"strings"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/control"
)

// Credential reads what a request brought; header returns a header's value by name. A bearer token counts as an opaque
// API key; X-Api-Key goes first.
func Credential(header func(string) string) control.Credential {
	c := control.Credential{Key: strings.TrimSpace(header("X-Api-Key")), TenantID: strings.TrimSpace(header("X-Tenant-Id"))}
	if c.Key != "" {
		return c
	}
	scheme, token, _ := strings.Cut(header("Authorization"), " ")
	if strings.EqualFold(scheme, "Bearer") {
		c.Key = strings.TrimSpace(token)
	}
	return c
}

// Key is the context key of the principal.
type Key struct{}

// Principal returns who makes the request; the zero Principal, which may do nothing, where nobody was authenticated.
func Principal(ctx context.Context) slipway.Principal {
	p, _ := ctx.Value(Key{}).(slipway.Principal)
	return p
}
