package beacon_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/beacon"
)

var now = time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC)

func key(b byte) beacon.SigningKey {
	return beacon.NewSigningKey(bytes.Repeat([]byte{b}, ed25519.SeedSize), now)
}

func licence(kind beacon.Kind) beacon.Licence {
	return beacon.Licence{
		ID: "0192f000-0000-7000-8000-000000000001", Customer: "Acme & Söhne", Kind: kind, Entitlements: []string{"sso", "audit"},
		IssuedAt: now, ExpiresAt: now.AddDate(1, 0, 0),
	}
}

func TestAKeyOfEachKindVerifiesAlsoAfterARotation(t *testing.T) {
	t.Parallel()
	old, current := key(1), key(2)
	for _, kind := range []beacon.Kind{beacon.Online, beacon.Offline} {
		text := old.Sign(licence(kind))
		if beacon.KindOf(text) != kind || !strings.HasPrefix(text, kind.Prefix()) {
			t.Errorf("%s: key %q has another kind", kind, text)
		}
		got, err := beacon.KeyRing{current, old}.Public().VerifyKey(text)
		if err != nil || got.ID != licence(kind).ID || got.Customer != "Acme & Söhne" || !got.Entitled("sso") || !got.ExpiresAt.Equal(licence(kind).ExpiresAt) {
			t.Errorf("%s: got %+v, %v", kind, got, err)
		}
	}
}

func TestEveryAlteredKeyIsRefused(t *testing.T) {
	t.Parallel()
	keys := beacon.KeyRing{key(1)}.Public()
	good := key(1).Sign(licence(beacon.Online))
	alphabet := "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	for i := range good {
		for _, c := range []byte{alphabet[i%64], alphabet[(i+31)%64], '.', '='} {
			if c == good[i] {
				continue
			}
			if _, err := keys.VerifyKey(good[:i] + string(c) + good[i+1:]); slipway.ErrorCode(err) != slipway.CodeUnauthenticated {
				t.Fatalf("byte %d as %q: %v", i, c, err)
			}
		}
	}
	for name, text := range map[string]string{
		"another signer": key(9).Sign(licence(beacon.Online)), "other prefix": beacon.OfflinePrefix + strings.TrimPrefix(good, beacon.OnlinePrefix),
		"no prefix": strings.TrimPrefix(good, beacon.OnlinePrefix), "a token": beacon.OnlinePrefix + key(1).SignToken(licence(beacon.Online), now),
		"empty": "", "huge": strings.Repeat("a", 1<<20), "offline without prefix": strings.TrimPrefix(key(1).Sign(licence(beacon.Offline)), beacon.OfflinePrefix),
	} {
		if _, err := keys.VerifyKey(text); slipway.ErrorCode(err) != slipway.CodeUnauthenticated {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A library of others must read our tokens and key set, and we must refuse what it makes with another algorithm.
func TestTokensAreJWTs(t *testing.T) {
	t.Parallel()
	ring := beacon.KeyRing{key(2), key(1)}
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(ring.Public().JWKS(), &set); err != nil || len(set.Keys) != 2 || !set.Keys[0].Valid() {
		t.Fatalf("key set: %v, %v", set, err)
	}
	print, err := set.Keys[0].Thumbprint(5) // crypto.SHA256
	if err != nil || set.Keys[0].KeyID != beacon.Thumbprint(ring[0].Key) {
		t.Errorf("thumbprint %x, %v", print, err)
	}
	token := ring.Current().SignToken(licence(beacon.Online), now)
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil {
		t.Fatal(err)
	}
	var claims jwt.Claims
	if err := parsed.Claims(set, &claims); err != nil {
		t.Fatal(err)
	}
	if err := claims.ValidateWithLeeway(jwt.Expected{Issuer: beacon.Issuer, AnyAudience: jwt.Audience{beacon.Audience}, Time: now}, 0); err != nil {
		t.Error(err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: bytes.Repeat([]byte{1}, 32)}, (&jose.SignerOptions{}).WithType("JWT").WithHeader("kid", ring[0].ID))
	if err != nil {
		t.Fatal(err)
	}
	forged, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ring.Public().VerifyToken(forged, now); slipway.ErrorCode(err) != slipway.CodeUnauthenticated {
		t.Errorf("HS256: %v", err)
	}
}

func TestATokenIsShortLivedAndDoesNotOutliveItsLicence(t *testing.T) {
	t.Parallel()
	ring := beacon.KeyRing{key(1)}
	l := licence(beacon.Online)
	token, err := ring.Public().VerifyToken(ring.Current().SignToken(l, now), now)
	if err != nil || token.ExpiresAt.Sub(now) != beacon.TokenLifetime || !token.Licence.ExpiresAt.Equal(l.ExpiresAt) {
		t.Errorf("token %+v, %v", token, err)
	}
	if _, err := ring.Public().VerifyToken(ring.Current().SignToken(l, now), now.Add(beacon.TokenLifetime)); slipway.ErrorCode(err) != slipway.CodeUnauthenticated {
		t.Errorf("expired: %v", err)
	}
	l.ExpiresAt = now.Add(time.Minute)
	if token, err = ring.Public().VerifyToken(ring.Current().SignToken(l, now), now); err != nil || !token.ExpiresAt.Equal(l.ExpiresAt) {
		t.Errorf("token ends %v, want %v (%v)", token.ExpiresAt, l.ExpiresAt, err)
	}
	if _, err := ring.Public().VerifyToken(key(1).Sign(l), now); slipway.ErrorCode(err) != slipway.CodeUnauthenticated {
		t.Errorf("a licence key passes for a token: %v", err)
	}
}

func TestKeySetsRoundTrip(t *testing.T) {
	t.Parallel()
	want := beacon.KeyRing{key(2), key(1)}.Public()
	got, err := beacon.ParseJWKS(want.JWKS())
	if err != nil || len(got) != 2 || got[0].ID != want[0].ID || !got[1].Key.Equal(want[1].Key) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range []string{``, `{}`, `{"keys":[{"kty":"RSA"}]}`, `{"keys":[{"kty":"OKP","crv":"Ed25519","x":"AA"}]}`} {
		if _, err := beacon.ParseJWKS([]byte(bad)); slipway.ErrorCode(err) != slipway.CodeInvalid {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if want.SignerKnown(key(7).Sign(licence(beacon.Online))) || !want.SignerKnown(key(1).Sign(licence(beacon.Offline))) || !want.SignerKnown("junk") {
		t.Error("SignerKnown mistakes a signer")
	}
}

func TestALicenceIsGoodUntilItExpiresOrIsRevoked(t *testing.T) {
	t.Parallel()
	l := licence(beacon.Online)
	if err := l.Check(now); err != nil || l.Status(now) != "active" {
		t.Errorf("%v, %s", err, l.Status(now))
	}
	if err := l.Check(l.ExpiresAt); slipway.ErrorCode(err) != slipway.CodeForbidden || l.Status(l.ExpiresAt) != "expired" {
		t.Errorf("%v, %s", err, l.Status(l.ExpiresAt))
	}
	l.RevokedAt = now
	if err := l.Check(now); slipway.ErrorCode(err) != slipway.CodeForbidden || l.Status(now) != "revoked" {
		t.Errorf("%v, %s", err, l.Status(now))
	}
}

func TestALicenceThatCannotBeMeantIsNotIssued(t *testing.T) {
	t.Parallel()
	for field, break1 := range map[string]func(*beacon.Licence){
		"customer": func(l *beacon.Licence) { l.Customer = " " }, "kind": func(l *beacon.Licence) { l.Kind = "floating" },
		"days": func(l *beacon.Licence) { l.ExpiresAt = l.IssuedAt }, "entitlements": func(l *beacon.Licence) { l.Entitlements = []string{"a b"} },
	} {
		l := licence(beacon.Online)
		if err := l.Validate(); err != nil {
			t.Fatal(err)
		}
		break1(&l)
		if err := l.Validate(); slipway.ErrorCode(err) != slipway.CodeInvalid || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func FuzzVerify(f *testing.F) {
	keys := beacon.KeyRing{key(1)}.Public()
	f.Add(key(1).Sign(licence(beacon.Online)))
	f.Add(key(1).SignToken(licence(beacon.Online), now))
	f.Add("lcl_a.b.c")
	f.Fuzz(func(t *testing.T, text string) {
		if l, err := keys.VerifyKey(text); err == nil && key(1).Sign(l) != text {
			t.Errorf("%q verifies as %+v", text, l)
		}
		_, _ = keys.VerifyToken(text, now)
		keys.SignerKnown(text)
	})
}
