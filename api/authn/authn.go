// Package authn reads credentials from requests and carries the principal to the handlers (control-plane reference 1).
package authn

import (
	"context"
	"net/http"
	"net/netip"
	"strings"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/control"
)

// Config holds the settings of authentication. The zero value trusts no proxy.
type Config struct {
	// TrustedProxies are the addresses whose X-Forwarded-For is believed.
	TrustedProxies []netip.Prefix
	// ProxyRoleHeader is the header in which the trusted proxies say the role of a user whom they have authenticated
	// (admin, editor or viewer); with it X-Tenant-Id alone authenticates from them. The proxy must remove the header, and
	// X-Tenant-Id, from what its clients send. "" = proxies authenticate nobody.
	ProxyRoleHeader string
	// ProxyUserHeader is the header in which they say the user's name, for the audit log; "" = none.
	ProxyUserHeader string
}

// requestIDLimit bounds a request id that a client gives, in bytes.
const requestIDLimit = 128

// Credential reads what a request brought; X-Api-Key goes before a bearer token, and both before what a proxy says.
func (c Config) Credential(r *http.Request) control.Credential {
	peer := address(r.RemoteAddr)
	out := control.Credential{
		Key: strings.TrimSpace(r.Header.Get("X-Api-Key")), Bearer: bearer(r.Header.Get("Authorization")),
		TenantID: strings.TrimSpace(r.Header.Get("X-Tenant-Id")), RequestID: requestID(r.Header.Get("X-Request-Id")),
		Address: c.client(r, peer),
	}
	if c.ProxyRoleHeader != "" && c.trusts(peer) {
		out.Proxy = &control.ProxyUser{Role: slipway.Role(strings.TrimSpace(r.Header.Get(c.ProxyRoleHeader)))}
		if c.ProxyUserHeader != "" {
			out.Proxy.Name = strings.TrimSpace(r.Header.Get(c.ProxyUserHeader))
		}
	}
	return out
}

func bearer(authorization string) string {
	scheme, token, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// client is the address of whoever made the request: the last one of X-Forwarded-For that no trusted proxy has, since what
// stands before it may be anybody's invention.
func (c Config) client(r *http.Request, peer netip.Addr) string {
	if !peer.IsValid() {
		return ""
	}
	at := peer
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && c.trusts(at); i-- {
		hop := address(strings.TrimSpace(hops[i]))
		if !hop.IsValid() {
			break
		}
		at = hop
	}
	return at.String()
}

func (c Config) trusts(a netip.Addr) bool {
	for _, prefix := range c.TrustedProxies {
		if prefix.Contains(a) {
			return true
		}
	}
	return false
}

// address reads an address with or without a port; the zero Addr if it is none.
func address(text string) netip.Addr {
	if with, err := netip.ParseAddrPort(text); err == nil {
		return with.Addr().Unmap().WithZone("")
	}
	a, err := netip.ParseAddr(strings.Trim(text, "[]"))
	if err != nil {
		return netip.Addr{}
	}
	return a.Unmap().WithZone("")
}

// requestID is the client's name for the request, "" if it is not fit to be one.
func requestID(text string) string {
	if len(text) > requestIDLimit || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return ""
	}
	return text
}

// Key is the context key of the principal.
type Key struct{}

// Principal returns who makes the request; the zero Principal, which may do nothing, where nobody was authenticated.
func Principal(ctx context.Context) slipway.Principal {
	p, _ := ctx.Value(Key{}).(slipway.Principal)
	return p
}
