// Package oidc lets in the users of an OpenID Connect issuer: it verifies their bearer tokens with the keys that the issuer
// publishes and reads role and tenants from the claims (spec 5.1; control-plane reference 1). Nothing here waits for the issuer
// at a start, and keys that are known go on verifying while it cannot be reached.
package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/slipway-dev/slipway"
)

// tokenLimit bounds a bearer token in bytes; longer ones are not even parsed.
const tokenLimit = 16 << 10

// Config says which tokens are valid and whom they stand for. Check it before New.
type Config struct {
	// Issuer is the address that discovery begins at and that tokens must bear as iss.
	Issuer string
	// Audiences are those of which a token must bear one as aud.
	Audiences []string
	// Algorithms are the signatures that are accepted; empty = Algorithms().
	Algorithms []string
	// Skew is how far the issuer's clock may be from this one.
	Skew time.Duration
	// Claims says what the claims mean.
	Claims Claims
}

// Deps are what a Verifier works with.
type Deps struct {
	HTTP  *http.Client // nil = one with the proxy settings and certificates of the environment
	Clock slipway.Clock
	Log   *slog.Logger
}

// Algorithms lists the signatures that may be accepted. All are of key pairs: a shared secret, or no signature at all, would
// let in whoever knows what the issuer publishes.
func Algorithms() []string {
	return []string{
		oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA,
	}
}

// Verifier is a slipway.TokenVerifier.
type Verifier struct {
	cfg   Config
	algs  []jose.SignatureAlgorithm
	keys  *keys
	clock slipway.Clock
}

// New returns a verifier; it asks the issuer for nothing before the first token comes.
func New(cfg Config, deps Deps) *Verifier {
	if len(cfg.Algorithms) == 0 {
		cfg.Algorithms = Algorithms()
	}
	v := &Verifier{cfg: cfg, clock: deps.Clock, keys: newKeys(cfg.Issuer, deps)}
	for _, alg := range cfg.Algorithms {
		v.algs = append(v.algs, jose.SignatureAlgorithm(alg))
	}
	return v
}

func refused(format string, args ...any) error {
	return slipway.Errorf(slipway.CodeUnauthenticated, format, args...)
}

// Verify implements slipway.TokenVerifier.
func (v *Verifier) Verify(ctx context.Context, token string) (slipway.Identity, error) {
	if len(token) > tokenLimit {
		return slipway.Identity{}, refused("the bearer token has more than %d bytes; send an access token of %s, or an API key", tokenLimit, v.cfg.Issuer)
	}
	jws, err := jose.ParseSignedCompact(token, v.algs)
	if err != nil {
		return slipway.Identity{}, refused("the bearer token is neither an API key of this installation nor a JWT signed with one of %s; get one from %s",
			strings.Join(v.cfg.Algorithms, ", "), v.cfg.Issuer)
	}
	payload, err := v.genuine(ctx, jws)
	if err != nil {
		return slipway.Identity{}, err
	}
	var said jwt.Claims
	var all map[string]any
	if err := errors.Join(json.Unmarshal(payload, &said), json.Unmarshal(payload, &all)); err != nil {
		return slipway.Identity{}, refused("the bearer token's claims are not what RFC 7519 says; correct the settings of %s", v.cfg.Issuer)
	}
	if err := v.valid(said); err != nil {
		return slipway.Identity{}, err
	}
	return v.cfg.Claims.identity(said.Subject, all)
}

// genuine returns what the issuer signed. If no key that is known did, it may be that there are new ones.
func (v *Verifier) genuine(ctx context.Context, jws *jose.JSONWebSignature) ([]byte, error) {
	id := jws.Signatures[0].Header.KeyID
	known, version := v.keys.known(id)
	if payload, ok := known.verify(jws); ok {
		return payload, nil
	}
	renewed, err := v.keys.renew(ctx, version)
	if err != nil && len(known) == 0 {
		return nil, err
	}
	if renewed {
		known, _ = v.keys.known(id)
		if payload, ok := known.verify(jws); ok {
			return payload, nil
		}
	}
	return nil, refused("the bearer token is not signed with a key that %s publishes; get a new one from there", v.cfg.Issuer)
}

// valid checks what a genuine token says of itself.
func (v *Verifier) valid(t jwt.Claims) error {
	now := v.clock()
	early := now.Add(v.cfg.Skew)
	switch {
	case t.Issuer != v.cfg.Issuer:
		return refused("the bearer token is of the issuer %q; get one from %s", t.Issuer, v.cfg.Issuer)
	case !slices.ContainsFunc(v.cfg.Audiences, t.Audience.Contains):
		return refused("the bearer token is for the audience %q; get one for %s", []string(t.Audience), strings.Join(v.cfg.Audiences, " or "))
	case t.Expiry == nil:
		return refused("the bearer token has no exp; let %s issue tokens that expire", v.cfg.Issuer)
	case !t.Expiry.Time().After(now.Add(-v.cfg.Skew)):
		return refused("the bearer token expired at %s; get a new one", t.Expiry.Time().UTC().Format(time.RFC3339))
	case t.NotBefore != nil && t.NotBefore.Time().After(early), t.IssuedAt != nil && t.IssuedAt.Time().After(early):
		return refused("the bearer token is not valid yet; check the clocks of this machine and of %s", v.cfg.Issuer)
	}
	return nil
}
