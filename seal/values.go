package seal

import (
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
)

// Values seals what an agent server keeps of its threads, with one key. It implements agent.Cipher.
type Values struct{ aead cipher.AEAD }

// NewValues makes the cipher of a secret of any length; everything sealed with it is opened with the same secret only.
func NewValues(secret []byte) (*Values, error) {
	key := sha256.Sum256(append([]byte("slipway values\x00"), secret...))
	aead, err := gcm(key[:])
	if err != nil {
		return nil, err
	}
	return &Values{aead: aead}, nil
}

// Seal encrypts. The nonce is drawn anew each time and stands in front.
func (v *Values) Seal(plain []byte) ([]byte, error) {
	out := make([]byte, v.aead.NonceSize(), v.aead.NonceSize()+len(plain)+tagSize)
	if _, err := rand.Read(out); err != nil {
		return nil, fmt.Errorf("seal: draw a nonce: %w", err)
	}
	return v.aead.Seal(out, out, plain, nil), nil
}

// Open returns what Seal was given, or ErrSealed.
func (v *Values) Open(sealed []byte) ([]byte, error) {
	n := v.aead.NonceSize()
	if len(sealed) < n+tagSize {
		return nil, ErrSealed
	}
	plain, err := v.aead.Open(nil, sealed[:n], sealed[n:], nil)
	if err != nil {
		return nil, ErrSealed
	}
	return plain, nil
}
