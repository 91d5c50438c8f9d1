package beacon

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"github.com/slipway-dev/slipway"
)

// The names in tokens.
const (
	Issuer   = "slipway"
	Audience = "slipway-beacon"
	// TokenLifetime is how long a token of /v1/beacon/verify holds: two refreshes of 300 s (control-plane reference 9) fit in.
	TokenLifetime = 15 * time.Minute

	licenceType = "licence+jwt"
	tokenType   = "JWT"
)

// header is a JOSE header. The type keeps licences from passing for tokens and tokens for licences.
type header struct {
	Alg  string `json:"alg"`
	ID   string `json:"kid"`
	Type string `json:"typ"`
}

// claims is what a licence key and a token say (RFC 7519).
type claims struct {
	Issuer         string   `json:"iss"`
	Subject        string   `json:"sub"` // the licence's id
	Audience       string   `json:"aud,omitempty"`
	Issued         int64    `json:"iat"`
	Expires        int64    `json:"exp"`
	Customer       string   `json:"customer"`
	Kind           Kind     `json:"kind"`
	Entitlements   []string `json:"entitlements,omitempty"`
	LicenceExpires int64    `json:"licence_exp,omitempty"` // in tokens only
}

// Sign writes the licence's key: the kind's prefix and a compact EdDSA JWS that anybody with the public key can verify.
func (k SigningKey) Sign(l Licence) string {
	return l.Kind.Prefix() + k.jws(licenceType, claims{
		Issuer: Issuer, Subject: l.ID, Issued: l.IssuedAt.Unix(), Expires: l.ExpiresAt.Unix(),
		Customer: l.Customer, Kind: l.Kind, Entitlements: l.Entitlements,
	})
}

// Token is the short-lived proof that a collector verified a licence (spec 4.5): an EdDSA JWT.
type Token struct {
	Licence   Licence
	IssuedAt  time.Time
	ExpiresAt time.Time
}

// SignToken writes a token for a licence; it does not outlive the licence.
func (k SigningKey) SignToken(l Licence, now time.Time) string {
	expires := now.Add(TokenLifetime)
	if expires.After(l.ExpiresAt) {
		expires = l.ExpiresAt
	}
	return k.jws(tokenType, claims{
		Issuer: Issuer, Audience: Audience, Subject: l.ID, Issued: now.Unix(), Expires: expires.Unix(),
		Customer: l.Customer, Kind: l.Kind, Entitlements: l.Entitlements, LicenceExpires: l.ExpiresAt.Unix(),
	})
}

func (k SigningKey) jws(typ string, c claims) string {
	head, _ := json.Marshal(header{Alg: "EdDSA", ID: k.ID, Type: typ}) // both always marshal
	body, _ := json.Marshal(c)
	signed := encoding().EncodeToString(head) + "." + encoding().EncodeToString(body)
	return signed + "." + encoding().EncodeToString(ed25519.Sign(k.Private, []byte(signed)))
}

// VerifyKey verifies a licence key by its signature and returns its licence, also an expired one: Licence.Check decides.
// It needs no collector. A key that none of the keys signed is CodeUnauthenticated.
func (k PublicKeys) VerifyKey(key string) (Licence, error) {
	kind := KindOf(key)
	c, err := k.open(licenceType, strings.TrimPrefix(key, kind.Prefix()))
	if err != nil {
		return Licence{}, unknown(err)
	}
	if c.Kind != kind || !strings.HasPrefix(key, kind.Prefix()) {
		return Licence{}, unknown(errPrefix)
	}
	return c.licence(), nil
}

// VerifyToken verifies a token at a time. Everything that is wrong with it is CodeUnauthenticated.
func (k PublicKeys) VerifyToken(token string, now time.Time) (Token, error) {
	c, err := k.open(tokenType, token)
	if err != nil {
		return Token{}, slipway.Errorf(slipway.CodeUnauthenticated, "the token is not one of this collector; verify the licence again (%w)", err)
	}
	t := Token{Licence: c.licence(), IssuedAt: time.Unix(c.Issued, 0).UTC(), ExpiresAt: time.Unix(c.Expires, 0).UTC()}
	t.Licence.ExpiresAt = time.Unix(c.LicenceExpires, 0).UTC()
	if c.Audience != Audience || !now.Before(t.ExpiresAt) || now.Add(Skew).Before(t.IssuedAt) {
		return Token{}, slipway.Errorf(slipway.CodeUnauthenticated, "the token expired on %s; verify the licence again", day(t.ExpiresAt))
	}
	return t, nil
}

func (c claims) licence() Licence {
	return Licence{
		ID: c.Subject, Customer: c.Customer, Kind: c.Kind, Entitlements: c.Entitlements,
		IssuedAt: time.Unix(c.Issued, 0).UTC(), ExpiresAt: time.Unix(c.Expires, 0).UTC(),
	}
}

// Why a signed text is refused; the caller says it in a sentence.
var (
	errForm      = slipway.Errorf(slipway.CodeInvalid, "it is not a signed text of this house")
	errSigner    = slipway.Errorf(slipway.CodeInvalid, "its signing key is unknown here")
	errSignature = slipway.Errorf(slipway.CodeInvalid, "its signature is wrong")
	errPrefix    = slipway.Errorf(slipway.CodeInvalid, "its prefix does not fit its kind")
)

func unknown(why error) error {
	return slipway.Errorf(slipway.CodeUnauthenticated, "the licence is unknown: %w; check that the whole key was copied, and that it was issued for this collector", why)
}

// SignerKnown says whether the text names a signing key that is among the keys; the signature is not looked at. A ring that
// was rotated elsewhere can so be read again.
func (k PublicKeys) SignerKnown(signed string) bool {
	head, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(signed, OnlinePrefix), OfflinePrefix), ".")
	var h header
	if len(signed) > MaxKeyLength || decodePart(head, &h) != nil || h.ID == "" {
		return true // no key would help
	}
	_, ok := k.Find(h.ID)
	return ok
}

func (k PublicKeys) open(typ, signed string) (claims, error) {
	parts := strings.Split(signed, ".")
	var h header
	if len(signed) > MaxKeyLength || len(parts) != 3 || decodePart(parts[0], &h) != nil || h.Alg != "EdDSA" || h.Type != typ {
		return claims{}, errForm
	}
	key, ok := k.Find(h.ID)
	if !ok {
		return claims{}, errSigner
	}
	signature, err := encoding().DecodeString(parts[2])
	if err != nil || !ed25519.Verify(key.Key, []byte(parts[0]+"."+parts[1]), signature) {
		return claims{}, errSignature
	}
	var c claims
	if decodePart(parts[1], &c) != nil || c.Issuer != Issuer {
		return claims{}, errForm
	}
	return c, nil
}

func decodePart(part string, v any) error {
	text, err := encoding().DecodeString(part)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, v)
}

// encoding is strict, so that a signed text has one spelling.
func encoding() *base64.Encoding { return base64.RawURLEncoding.Strict() }
