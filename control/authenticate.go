package control

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway"
)

// Credential is what a request brought to prove who it is (control-plane reference 1).
type Credential struct {
	Key      string // X-Api-Key; "" = none
	Bearer   string // the bearer token, an API key or a JWT; "" = none; Key goes first
	TenantID string // X-Tenant-Id; "" = none
	// Proxy is what an authenticating proxy says about its user; nil unless the request came from one that is configured.
	Proxy *ProxyUser

	Address   string // where the request came from, as far as it can be trusted
	RequestID string // the request's name; "" = one is made
}

// ProxyUser is a user whom an authenticating proxy vouches for.
type ProxyUser struct {
	Name string // "" = the proxy names nobody
	Role slipway.Role
}

// holder is a credential that was found valid: who it is, and the tenants it may choose from.
type holder struct {
	who     slipway.Principal // without TenantID
	tenants []string          // besides Organisation
	home    string            // the tenant if none is asked for; "" = it must be asked for unless there is only one
	own     bool              // tenants holds the owner of the credential, which goes when its tenant goes
}

// Admit finds out who makes a request and whether it may make this call at all: CodeUnauthenticated without a valid
// credential, CodeForbidden if the credential and the tenant do not go together, and what a role may do remains the matter
// of each use case. With CodeForbidden and CodeNotFound the principal is returned too, as far as it is known.
func (s *Service) Admit(ctx context.Context, c Credential, call Call) (slipway.Principal, error) {
	h, err := s.identify(ctx, c)
	if err != nil {
		return slipway.Principal{ID: h.who.ID, Address: c.Address, RequestID: c.RequestID}, err
	}
	who := h.who
	who.Address, who.RequestID = c.Address, c.RequestID
	if who.RequestID == "" {
		who.RequestID = s.ids()
	}
	if call.Reach == ReachOrganisation && c.TenantID == "" && h.home == "" && len(h.tenants) != 1 {
		return who, s.admitted(who, call)
	}
	if who.TenantID, err = s.selectTenant(ctx, h, c.TenantID); err != nil {
		return who, err
	}
	return who, s.admitted(who, call)
}

// Authenticate is Admit for a caller that asks for nothing in particular yet.
func (s *Service) Authenticate(ctx context.Context, c Credential) (slipway.Principal, error) {
	return s.Admit(ctx, c, Call{Operation: "authenticate", Reach: ReachDeployments})
}

func (s *Service) identify(ctx context.Context, c Credential) (holder, error) {
	switch {
	case c.Key != "":
		return s.keyHolder(ctx, c.Key)
	case strings.HasPrefix(c.Bearer, keyMark):
		return s.keyHolder(ctx, c.Bearer)
	case c.Bearer != "" && s.tokens != nil:
		return s.tokenHolder(ctx, c.Bearer)
	case c.Bearer != "":
		return holder{}, slipway.Errorf(slipway.CodeUnauthenticated, "the bearer token is no API key of this installation, and no identity provider is configured; check the token and the address")
	case c.TenantID != "" && c.Proxy != nil && c.Proxy.Role.Valid():
		return proxyHolder(c), nil
	}
	return holder{}, slipway.Errorf(slipway.CodeUnauthenticated, "no credential: send an API key as X-Api-Key, or as Authorization: Bearer")
}

// keyHolder finds the key among those in memory; the database is asked when it is not there or was not checked lately.
func (s *Service) keyHolder(ctx context.Context, key string) (holder, error) {
	unknown := slipway.Errorf(slipway.CodeUnauthenticated, "the API key is not known here or was revoked; check the key and the address")
	if !strings.HasPrefix(key, keyMark) {
		return holder{}, unknown
	}
	k, err := s.access.key(ctx, hashKey(key))
	if slipway.ErrorCode(err) == slipway.CodeNotFound || err == nil && !k.RevokedAt.IsZero() {
		return holder{}, unknown
	}
	if err != nil {
		return holder{}, fmt.Errorf("authenticate: %w", err)
	}
	now := s.clock()
	if k.Expired(now) {
		return holder{}, slipway.Errorf(slipway.CodeUnauthenticated, "the API key %s expired at %s; use another", k.Prefix, k.ExpiresAt.UTC().Format("2006-01-02T15:04:05Z"))
	}
	s.access.used(k.ID, now)
	h := holder{who: slipway.Principal{ID: "key:" + k.Prefix, Role: k.Role, Organisation: k.Organisation(), DeploymentID: k.DeploymentID, ListenerID: k.ListenerID}, home: k.DefaultTenantID}
	if !k.Organisation() {
		h.tenants, h.own = []string{k.TenantID}, true
	}
	return h, nil
}

func (s *Service) tokenHolder(ctx context.Context, token string) (holder, error) {
	identity, err := s.tokens.Verify(ctx, token)
	if slipway.ErrorCode(err) == slipway.CodeForbidden {
		return holder{who: slipway.Principal{ID: "user:" + identity.Subject}}, err
	}
	if err != nil {
		return holder{}, err
	}
	who := slipway.Principal{ID: "user:" + identity.Subject, Role: identity.Role, Organisation: identity.Organisation}
	return holder{who: who, tenants: identity.Tenants}, nil
}

// proxyHolder is the user of an authenticating proxy: X-Tenant-Id is its credential (control-plane reference 1).
func proxyHolder(c Credential) holder {
	name := c.Proxy.Name
	if name == "" {
		name = c.Address
	}
	return holder{who: slipway.Principal{ID: "proxy:" + name, Role: c.Proxy.Role}, tenants: []string{c.TenantID}}
}

// selectTenant applies the X-Tenant-Id rule: it selects among the tenants of the credential and must not name another. The
// words "requires workspace specification" are what clients look for.
func (s *Service) selectTenant(ctx context.Context, h holder, asked string) (string, error) {
	wide := h.who.Organisation
	switch {
	case asked == "" && wide && h.home != "":
		asked = h.home
	case asked == "" && !wide && len(h.tenants) == 1:
		asked = h.tenants[0]
	case asked == "" && wide:
		return "", slipway.Errorf(slipway.CodeForbidden, "this organisation-wide key requires workspace specification: send X-Tenant-Id")
	case asked == "":
		return "", slipway.Errorf(slipway.CodeForbidden, "this credential is valid in %d tenants and requires workspace specification: send X-Tenant-Id", len(h.tenants))
	case !wide && !slices.Contains(h.tenants, asked):
		return "", slipway.Errorf(slipway.CodeForbidden, "the credential does not belong to the tenant of X-Tenant-Id; leave the header out")
	}
	if h.own {
		return asked, nil
	}
	known, err := s.access.tenant(ctx, asked)
	if err != nil {
		return "", fmt.Errorf("select tenant: %w", err)
	}
	if !known {
		return "", slipway.Errorf(slipway.CodeForbidden, "there is no tenant %q here; check X-Tenant-Id, or choose one of GET /v2/tenants", asked)
	}
	return asked, nil
}
