package oidc_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/oidc"
)

const audience = "slipway"

// issuer is an identity provider on this machine.
type issuer struct {
	*httptest.Server
	fetches  atomic.Int64  // of its keys
	requests atomic.Int64  // all
	hold     chan struct{} // requests wait for it; nil = they do not

	mu        sync.Mutex
	published []jose.JSONWebKey
	down      bool
	claimed   string // the issuer that discovery names; "" = the true one
	body      string // in place of the keys
}

func newIssuer(t *testing.T, published ...jose.JSONWebKey) *issuer {
	i := &issuer{published: published}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		name := i.URL
		if i.claimed != "" {
			name = i.claimed
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": name, "jwks_uri": i.URL + "/keys"})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		i.fetches.Add(1)
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.body != "" {
			_, _ = w.Write([]byte(i.body))
			return
		}
		_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: i.published})
	})
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.requests.Add(1)
		if i.hold != nil {
			<-i.hold
		}
		i.mu.Lock()
		down := i.down
		i.mu.Unlock()
		if down {
			http.Error(w, "no", http.StatusBadGateway)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(i.Close)
	return i
}

func (i *issuer) set(change func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	change()
}

// clock is a time that stands still until it is moved.
type clock struct{ at atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.at.Store(time.Date(2031, 5, 1, 12, 0, 0, 0, time.UTC).UnixNano())
	return c
}
func (c *clock) now() time.Time          { return time.Unix(0, c.at.Load()).UTC() }
func (c *clock) advance(d time.Duration) { c.at.Add(int64(d)) }

func verifier(i *issuer, c *clock, change func(*oidc.Config)) *oidc.Verifier {
	cfg := oidc.Config{Issuer: i.URL, Audiences: []string{audience}, Skew: time.Minute, Claims: oidc.Claims{Role: "roles", Tenant: "tenant"}}
	if change != nil {
		change(&cfg)
	}
	return oidc.New(cfg, oidc.Deps{Clock: c.now, Log: slog.New(slog.DiscardHandler)})
}

// rsaKey makes a key pair; every test that needs no more than one shares the first.
func rsaKey(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func ecKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func public(id string, key *ecdsa.PrivateKey) jose.JSONWebKey {
	return jose.JSONWebKey{Key: key.Public(), KeyID: id, Use: "sig"}
}

// claims are those of a valid token.
func claims(i *issuer, c *clock) map[string]any {
	return map[string]any{
		"iss": i.URL, "aud": audience, "sub": "ann", "exp": c.now().Add(time.Hour).Unix(), "iat": c.now().Unix(), "roles": []string{"editor"},
		"tenant": "t1",
	}
}

// sign makes a token; id "" leaves kid out.
func sign(t *testing.T, alg jose.SignatureAlgorithm, id string, key any, claims map[string]any) string {
	t.Helper()
	options := (&jose.SignerOptions{}).WithType("JWT")
	if id != "" {
		options = options.WithHeader("kid", id)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, options)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// verify checks a token and that no error tells it.
func verify(t *testing.T, v *oidc.Verifier, token string) (slipway.Identity, error) {
	t.Helper()
	identity, err := v.Verify(t.Context(), token)
	if err != nil && token != "" && strings.Contains(err.Error(), token) {
		t.Errorf("the error holds the token: %v", err)
	}
	return identity, err
}

func TestClaims(t *testing.T) {
	t.Parallel()
	key, c := ecKey(t), newClock()
	i := newIssuer(t, public("k", key))
	mapped := func(cfg *oidc.Config) {
		cfg.Claims = oidc.Claims{
			Role: "realm_access.roles", Roles: map[string]slipway.Role{"ops": slipway.RoleAdmin, "dev": slipway.RoleEditor},
			Tenant: "https://example.com/groups", Tenants: map[string]string{"team-a": "t1", "team-b": "t2", "staff": oidc.EveryTenant},
		}
	}
	everybody := func(id string) func(*oidc.Config) {
		return func(cfg *oidc.Config) { cfg.Claims = oidc.Claims{Role: "roles", All: id} }
	}
	realm := func(roles ...string) map[string]any { return map[string]any{"roles": roles} }
	for name, test := range map[string]struct {
		config func(*oidc.Config)
		claims map[string]any
		want   slipway.Identity
		code   slipway.Code
	}{
		"plain":                   {nil, nil, slipway.Identity{Subject: "ann", Role: "editor", Tenants: []string{"t1"}}, ""},
		"role as one text":        {nil, map[string]any{"roles": "viewer"}, slipway.Identity{Subject: "ann", Role: "viewer", Tenants: []string{"t1"}}, ""},
		"the highest role":        {nil, map[string]any{"roles": []any{"viewer", 7, "admin", "x"}}, slipway.Identity{Subject: "ann", Role: "admin", Tenants: []string{"t1"}}, ""},
		"two tenants":             {nil, map[string]any{"tenant": []string{"t1", "t2", "t1"}}, slipway.Identity{Subject: "ann", Role: "editor", Tenants: []string{"t1", "t2"}}, ""},
		"two audiences":           {nil, map[string]any{"aud": []string{"other", audience}}, slipway.Identity{Subject: "ann", Role: "editor", Tenants: []string{"t1"}}, ""},
		"no role":                 {nil, map[string]any{"roles": []string{"Admin"}}, slipway.Identity{Subject: "ann"}, slipway.CodeForbidden},
		"no tenant":               {nil, map[string]any{"tenant": nil}, slipway.Identity{Subject: "ann"}, slipway.CodeForbidden},
		"all tenants by itself":   {nil, map[string]any{"tenant": "*"}, slipway.Identity{Subject: "ann"}, slipway.CodeForbidden},
		"no subject":              {nil, map[string]any{"sub": ""}, slipway.Identity{}, slipway.CodeUnauthenticated},
		"a subject of two lines":  {nil, map[string]any{"sub": "a\nb"}, slipway.Identity{}, slipway.CodeUnauthenticated},
		"mapped":                  {mapped, map[string]any{"realm_access": realm("dev", "ops"), "https://example.com/groups": []string{"team-b", "x"}}, slipway.Identity{Subject: "ann", Role: "admin", Tenants: []string{"t2"}}, ""},
		"mapped to all":           {mapped, map[string]any{"realm_access": realm("dev"), "https://example.com/groups": []string{"team-b", "staff"}}, slipway.Identity{Subject: "ann", Role: "editor", Organisation: true}, ""},
		"unmapped role":           {mapped, map[string]any{"realm_access": realm("admin"), "https://example.com/groups": "team-a"}, slipway.Identity{Subject: "ann"}, slipway.CodeForbidden},
		"unmapped tenant":         {mapped, map[string]any{"realm_access": realm("ops"), "https://example.com/groups": "t1"}, slipway.Identity{Subject: "ann"}, slipway.CodeForbidden},
		"one tenant for all":      {everybody("t9"), nil, slipway.Identity{Subject: "ann", Role: "editor", Tenants: []string{"t9"}}, ""},
		"every tenant for all":    {everybody("*"), nil, slipway.Identity{Subject: "ann", Role: "editor", Organisation: true}, ""},
		"role claim of odd shape": {nil, map[string]any{"roles": map[string]any{"admin": true}}, slipway.Identity{Subject: "ann"}, slipway.CodeForbidden},
	} {
		given := claims(i, c)
		for name, value := range test.claims {
			given[name] = value
		}
		got, err := verify(t, verifier(i, c, test.config), sign(t, jose.ES256, "k", key, given))
		if slipway.ErrorCode(err) != test.code || got.Subject != test.want.Subject || got.Role != test.want.Role ||
			got.Organisation != test.want.Organisation || !slices.Equal(got.Tenants, test.want.Tenants) {
			t.Errorf("%s: %+v, %v; want %+v, code %q", name, got, err, test.want, test.code)
		}
	}
}

func TestTokensThatAreRefused(t *testing.T) {
	t.Parallel()
	key, c := rsaKey(t), newClock()
	i := newIssuer(t, jose.JSONWebKey{Key: key.Public(), KeyID: "k", Use: "sig"})
	v := verifier(i, c, nil)
	with := func(name string, value any) string {
		given := claims(i, c)
		given[name] = value
		return sign(t, jose.RS256, "k", key, given)
	}
	if _, err := verify(t, v, with("x", 1)); err != nil {
		t.Fatalf("a valid token: %v", err)
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	file := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	valid := with("x", 1)
	parts := strings.Split(valid, ".")
	segment := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	for name, test := range map[string]struct{ token, mentions string }{
		"expired":                    {with("exp", c.now().Add(-2*time.Minute).Unix()), "expired at 2031-05-01T11:58:00Z"},
		"no exp":                     {with("exp", nil), "no exp"},
		"exp of another kind":        {with("exp", "tomorrow"), "RFC 7519"},
		"not yet valid":              {with("nbf", c.now().Add(2*time.Minute).Unix()), "not valid yet"},
		"issued in the future":       {with("iat", c.now().Add(2*time.Minute).Unix()), "not valid yet"},
		"wrong audience":             {with("aud", "billing"), `"billing"`},
		"no audience":                {with("aud", []string{}), "audience"},
		"wrong issuer":               {with("iss", "https://evil.example"), `"https://evil.example"`},
		"no signature":               {segment(`{"alg":"none","kid":"k"}`) + "." + parts[1] + ".", "neither an API key"},
		"no signature in other case": {segment(`{"alg":"nOnE"}`) + "." + parts[1] + ".", "neither an API key"},
		"HS256 with the public key":  {sign(t, jose.HS256, "k", file, claims(i, c)), "neither an API key"},
		"HS256 with the key's DER":   {sign(t, jose.HS256, "k", der, claims(i, c)), "neither an API key"},
		"another's key":              {sign(t, jose.RS256, "k", rsaKey(t), claims(i, c)), "not signed with a key"},
		"another's key, no kid":      {sign(t, jose.ES256, "", ecKey(t), claims(i, c)), "not signed with a key"},
		"unknown kid":                {sign(t, jose.RS256, "other", key, claims(i, c)), "not signed with a key"},
		"changed claims":             {parts[0] + "." + segment(`{"iss":"`+i.URL+`","roles":["admin"]}`) + "." + parts[2], "not signed with a key"},
		"no claims":                  {sign(t, jose.RS256, "k", key, nil), ""},
		"nonsense":                   {"x.y.z", "neither an API key"},
		"empty":                      {"", "neither an API key"},
		"too long":                   {strings.Repeat("a", 16<<10+1), "more than 16384 bytes"},
	} {
		if got, err := verify(t, v, test.token); slipway.ErrorCode(err) != slipway.CodeUnauthenticated || !strings.Contains(err.Error(), test.mentions) {
			t.Errorf("%s: %+v, %v; want CodeUnauthenticated that mentions %q", name, got, err, test.mentions)
		}
	}
}

func TestSkewIsForgiven(t *testing.T) {
	t.Parallel()
	key, c := ecKey(t), newClock()
	i := newIssuer(t, public("k", key))
	v := verifier(i, c, nil)
	for name, at := range map[string]time.Duration{"exp": -59 * time.Second, "nbf": 59 * time.Second, "iat": 59 * time.Second} {
		given := claims(i, c)
		given[name] = c.now().Add(at).Unix()
		if _, err := verify(t, v, sign(t, jose.ES256, "k", key, given)); err != nil {
			t.Errorf("%s %s off: %v", name, at, err)
		}
	}
}

func TestOnlyAlgorithmsOfTheSettings(t *testing.T) {
	t.Parallel()
	key, c := ecKey(t), newClock()
	i := newIssuer(t, public("k", key))
	v := verifier(i, c, func(cfg *oidc.Config) { cfg.Algorithms = []string{"RS256"} })
	if _, err := verify(t, v, sign(t, jose.ES256, "k", key, claims(i, c))); slipway.ErrorCode(err) != slipway.CodeUnauthenticated {
		t.Errorf("ES256 where RS256 is accepted: %v", err)
	}
}

func TestRotation(t *testing.T) {
	t.Parallel()
	first, second, c := ecKey(t), ecKey(t), newClock()
	i := newIssuer(t, public("1", first))
	v := verifier(i, c, nil)
	for range 3 {
		if _, err := verify(t, v, sign(t, jose.ES256, "1", first, claims(i, c))); err != nil {
			t.Fatal(err)
		}
	}
	if n := i.fetches.Load(); n != 1 {
		t.Errorf("three tokens of one key took %d fetches, want 1", n)
	}
	i.set(func() { i.published = []jose.JSONWebKey{public("2", second)} })
	c.advance(5 * time.Second)
	if _, err := verify(t, v, sign(t, jose.ES256, "2", second, claims(i, c))); err != nil {
		t.Errorf("a token of the new key: %v", err)
	}
	if _, err := verify(t, v, sign(t, jose.ES256, "1", first, claims(i, c))); slipway.ErrorCode(err) != slipway.CodeUnauthenticated {
		t.Errorf("a token of the key that was taken back: %v", err)
	}
}

func TestKeysThatWereTakenBackStopCounting(t *testing.T) {
	t.Parallel()
	first, second, c := ecKey(t), ecKey(t), newClock()
	i := newIssuer(t, public("1", first))
	v := verifier(i, c, nil)
	if _, err := verify(t, v, sign(t, jose.ES256, "1", first, claims(i, c))); err != nil {
		t.Fatal(err)
	}
	i.set(func() { i.published = []jose.JSONWebKey{public("2", second)} })
	c.advance(time.Hour)
	for deadline := time.Now().Add(10 * time.Second); ; { // the renewal runs beside the first token after the hour
		_, err := verify(t, v, sign(t, jose.ES256, "1", first, claims(i, c)))
		if slipway.ErrorCode(err) == slipway.CodeUnauthenticated {
			return
		}
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("after an hour: %v, want CodeUnauthenticated", err)
		}
	}
}

func TestMadeUpKeysAskTheIssuerSeldom(t *testing.T) {
	t.Parallel()
	key, c := ecKey(t), newClock()
	i := newIssuer(t, public("k", key))
	v := verifier(i, c, nil)
	for n := range 50 {
		token := sign(t, jose.ES256, "made-up-"+string(rune('a'+n)), key, claims(i, c))
		if _, err := verify(t, v, token); slipway.ErrorCode(err) != slipway.CodeUnauthenticated {
			t.Fatal(err)
		}
	}
	if n := i.fetches.Load(); n != 1 {
		t.Errorf("50 made-up keys took %d fetches, want 1", n)
	}
	if _, err := verify(t, v, sign(t, jose.ES256, "k", key, claims(i, c))); err != nil {
		t.Errorf("meanwhile a valid token: %v", err)
	}
}

func TestManyWaitForOneFetch(t *testing.T) {
	t.Parallel()
	key, c := ecKey(t), newClock()
	i := newIssuer(t, public("k", key))
	i.hold = make(chan struct{})
	v := verifier(i, c, nil)
	token := sign(t, jose.ES256, "k", key, claims(i, c))
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := v.Verify(impatient, token); err == nil {
		t.Error("who goes away gets no answer")
	}
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if _, err := v.Verify(t.Context(), token); err != nil {
				t.Error(err)
			}
		})
	}
	close(i.hold)
	group.Wait()
	if n := i.requests.Load(); n != 2 {
		t.Errorf("20 at once made %d requests, want discovery and keys", n)
	}
}

func TestIssuerDown(t *testing.T) {
	t.Parallel()
	first, second, c := ecKey(t), ecKey(t), newClock()
	i := newIssuer(t, public("1", first))
	i.down = true
	v := verifier(i, c, nil)
	known, unknown := sign(t, jose.ES256, "1", first, claims(i, c)), sign(t, jose.ES256, "2", second, claims(i, c))
	want := func(what, token string, code slipway.Code) {
		t.Helper()
		if _, err := verify(t, v, token); slipway.ErrorCode(err) != code {
			t.Errorf("%s: %v, want %q", what, err, code)
		}
	}
	for range 20 {
		want("from the start", known, slipway.CodeUnavailable)
	}
	if n := i.requests.Load(); n != 1 {
		t.Errorf("20 tokens asked %d times, want 1", n)
	}
	c.advance(time.Second)
	want("after a second", known, slipway.CodeUnavailable)
	c.advance(time.Second)
	want("within the second pause, which is longer", known, slipway.CodeUnavailable)
	if n := i.requests.Load(); n != 2 {
		t.Errorf("after a pause of one second and half of the next it was asked %d times, want 2", n)
	}
	i.set(func() { i.down = false })
	c.advance(time.Second)
	want("back again", known, "")
	i.set(func() { i.down = true })
	c.advance(2 * time.Hour)
	known = sign(t, jose.ES256, "1", first, claims(i, c))
	want("a known key while it is down", known, "")
	want("an unknown key while it is down", unknown, slipway.CodeUnavailable)
	want("a bad signature while it is down", sign(t, jose.ES256, "1", second, claims(i, c)), slipway.CodeUnauthenticated)
	for range 20 {
		want("a known key while it is down", known, "")
	}
}

func TestIssuersThatAreNotWhatTheySay(t *testing.T) {
	t.Parallel()
	key, c := ecKey(t), newClock()
	for name, change := range map[string]func(*issuer){
		"another issuer":  func(i *issuer) { i.claimed = "https://other.example" },
		"no keys":         func(i *issuer) { i.body = `{"keys":[]}` },
		"no JSON":         func(i *issuer) { i.body = `<html>` },
		"private keys":    func(i *issuer) { i.published = []jose.JSONWebKey{{Key: key, KeyID: "k"}} },
		"shared secrets":  func(i *issuer) { i.body = `{"keys":[{"kty":"oct","k":"c2VjcmV0","kid":"k"}]}` },
		"encryption keys": func(i *issuer) { i.published[0].Use = "enc" },
		"endless keys":    func(i *issuer) { i.body = strings.Repeat(" ", 2<<20) },
	} {
		i := newIssuer(t, public("k", key))
		change(i)
		_, err := verify(t, verifier(i, c, nil), sign(t, jose.ES256, "k", key, claims(i, c)))
		if slipway.ErrorCode(err) != slipway.CodeUnavailable {
			t.Errorf("%s: %v, want CodeUnavailable", name, err)
		}
	}
	i := newIssuer(t, public("k", key))
	i.body = `{"keys":[{"kty":"OKP","crv":"X448","x":"AA","kid":"new"},` + marshal(t, public("k", key)) + `]}`
	if _, err := verify(t, verifier(i, c, nil), sign(t, jose.ES256, "k", key, claims(i, c))); err != nil {
		t.Errorf("beside a key of a kind that is not known here: %v", err)
	}
}

func marshal(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestCheck(t *testing.T) {
	t.Parallel()
	good := oidc.Config{Issuer: "https://login.example.com/realms/a", Audiences: []string{"slipway"}, Claims: oidc.Claims{Role: "roles", Tenant: "tenant"}}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for mentions, change := range map[string]func(*oidc.Config){
		`issuer "http://login.example.com"`: func(c *oidc.Config) { c.Issuer = "http://login.example.com" },
		`issuer "login"`:                    func(c *oidc.Config) { c.Issuer = "login" },
		"audience is missing":               func(c *oidc.Config) { c.Audiences = nil },
		`algorithm "HS256"`:                 func(c *oidc.Config) { c.Algorithms = []string{"RS256", "HS256"} },
		"clock skew is 11m0s":               func(c *oidc.Config) { c.Skew = 11 * time.Minute },
		"role claim is missing":             func(c *oidc.Config) { c.Claims.Role = "" },
		`role map "a"="root"`:               func(c *oidc.Config) { c.Claims.Roles = map[string]slipway.Role{"a": "root"} },
		"give one of both":                  func(c *oidc.Config) { c.Claims.All = "t" },
		"tenant map needs": func(c *oidc.Config) {
			c.Claims = oidc.Claims{Role: "r", All: "t", Tenants: map[string]string{"a": "b"}}
		},
		`tenant map "a"=""`: func(c *oidc.Config) { c.Claims.Tenants = map[string]string{"a": ""} },
	} {
		c := good
		change(&c)
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), mentions) {
			t.Errorf("%v, want an error that mentions %q", err, mentions)
		}
	}
	local := good
	local.Issuer = "http://127.0.0.1:8080"
	if err := local.Check(); err != nil {
		t.Errorf("an issuer on this machine: %v", err)
	}
}
