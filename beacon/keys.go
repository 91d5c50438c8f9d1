package beacon

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"slices"
	"time"

	"github.com/slipway-dev/slipway"
)

// PublicKey verifies what its private half signed.
type PublicKey struct {
	ID  string // RFC 7638 thumbprint
	Key ed25519.PublicKey
}

// PublicKeys are all keys whose signatures count: the current one and those before it, which keep verifying.
type PublicKeys []PublicKey

// Find returns the key with an id.
func (k PublicKeys) Find(id string) (PublicKey, bool) {
	i := slices.IndexFunc(k, func(p PublicKey) bool { return p.ID == id })
	if i < 0 {
		return PublicKey{}, false
	}
	return k[i], true
}

// SigningKey is a private key of an issuer.
type SigningKey struct {
	PublicKey
	Private   ed25519.PrivateKey
	CreatedAt time.Time
}

// NewSigningKey makes a key of a secret seed of ed25519.SeedSize bytes.
func NewSigningKey(seed []byte, now time.Time) SigningKey {
	private := ed25519.NewKeyFromSeed(seed)
	public := private.Public().(ed25519.PublicKey)
	return SigningKey{PublicKey: PublicKey{ID: Thumbprint(public), Key: public}, Private: private, CreatedAt: now}
}

// KeyRing holds an issuer's keys, newest first: the first one signs, all of them verify.
type KeyRing []SigningKey

// Current is the key that signs; the ring is never empty.
func (r KeyRing) Current() SigningKey { return r[0] }

// Public lists what others need to verify.
func (r KeyRing) Public() PublicKeys {
	out := make(PublicKeys, len(r))
	for i, k := range r {
		out[i] = k.PublicKey
	}
	return out
}

// jwk is an Ed25519 key as RFC 8037 writes it. The order of the members is that of RFC 7638.
type jwk struct {
	Curve string `json:"crv"`
	Type  string `json:"kty"`
	X     string `json:"x"`
	ID    string `json:"kid,omitempty"`
	Use   string `json:"use,omitempty"`
	Alg   string `json:"alg,omitempty"`
}

// Thumbprint is the RFC 7638 identifier of a public key.
func Thumbprint(key ed25519.PublicKey) string {
	text, _ := json.Marshal(jwk{Curve: "Ed25519", Type: "OKP", X: base64.RawURLEncoding.EncodeToString(key)}) // always marshals
	sum := sha256.Sum256(text)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// JWKS writes the keys as a JSON Web Key Set (RFC 7517).
func (k PublicKeys) JWKS() []byte {
	set := struct {
		Keys []jwk `json:"keys"`
	}{Keys: []jwk{}}
	for _, p := range k {
		x := base64.RawURLEncoding.EncodeToString(p.Key)
		set.Keys = append(set.Keys, jwk{Curve: "Ed25519", Type: "OKP", X: x, ID: p.ID, Use: "sig", Alg: "EdDSA"})
	}
	text, _ := json.Marshal(set) // always marshals
	return text
}

// ParseJWKS reads a key set and keeps its Ed25519 keys; a set without one is an error.
func ParseJWKS(text []byte) (PublicKeys, error) {
	var set struct {
		Keys []jwk `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil {
		return nil, slipway.Errorf(slipway.CodeInvalid, "this is no JSON Web Key Set: %w; take the collector's /.well-known/jwks.json", err)
	}
	var keys PublicKeys
	for _, k := range set.Keys {
		x, err := base64.RawURLEncoding.DecodeString(k.X)
		if k.Type == "OKP" && k.Curve == "Ed25519" && err == nil && len(x) == ed25519.PublicKeySize {
			keys = append(keys, PublicKey{ID: Thumbprint(x), Key: x})
		}
	}
	if len(keys) == 0 {
		return nil, slipway.Errorf(slipway.CodeInvalid, "the JSON Web Key Set holds no Ed25519 key; take the collector's /.well-known/jwks.json")
	}
	return keys, nil
}
