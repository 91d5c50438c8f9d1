// Package seal encrypts secrets at rest: AES-256-GCM with a fresh data key per value, itself wrapped by a key-encryption
// key, both bound to tenant, deployment and name (architecture 4).
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/slipway-dev/slipway"
)

// KeySize is the length of a master key in bytes.
const KeySize = 32

const (
	version  = 1
	idSize   = 8
	tagSize  = 16
	wrapSize = KeySize + tagSize // a data key, sealed
	ivSize   = 12
	header   = 1 + idSize + ivSize + wrapSize + ivSize
)

// ErrSealed is what every value that cannot be opened answers, whatever the cause.
var ErrSealed = errors.New("the sealed value was altered, moved, or sealed with another master key")

// Key is a master key: it seals data keys and derives keys for other purposes. It is safe for concurrent use.
type Key struct {
	id     [idSize]byte
	master [KeySize]byte
	aead   cipher.AEAD
}

var _ slipway.Sealer = (*Key)(nil)

// New makes a Key of KeySize random bytes.
func New(master []byte) (*Key, error) {
	if len(master) != KeySize {
		return nil, fmt.Errorf("a master key has %d bytes, not %d", KeySize, len(master))
	}
	aead, err := gcm(master)
	if err != nil {
		return nil, err
	}
	k := &Key{aead: aead}
	copy(k.master[:], master)
	copy(k.id[:], k.Derive("key id"))
	return k, nil
}

// ID returns the public name of the key; it is part of every sealed value.
func (k *Key) ID() string { return hex.EncodeToString(k.id[:]) }

// Derive returns KeySize bytes that belong to this key and purpose and tell nothing about the key.
func (k *Key) Derive(purpose string) []byte {
	mac := hmac.New(sha256.New, k.master[:])
	mac.Write([]byte("slipway " + purpose))
	return mac.Sum(nil)
}

// Seal implements slipway.Sealer. Layout: version, key id, nonce, wrapped data key, nonce, ciphertext.
func (k *Key) Seal(tenantID, deploymentID, name, value string) ([]byte, error) {
	out := make([]byte, 1, header+len(value)+tagSize)
	out[0] = version
	out = append(out, k.id[:]...)
	var dataKey [KeySize]byte
	if _, err := rand.Read(dataKey[:]); err != nil {
		return nil, fmt.Errorf("seal: draw a data key: %w", err)
	}
	bound := binding(tenantID, deploymentID, name)
	out, err := seal(out, k.aead, dataKey[:], bound)
	if err != nil {
		return nil, err
	}
	aead, err := gcm(dataKey[:])
	if err != nil {
		return nil, err
	}
	return seal(out, aead, []byte(value), bound)
}

// Open implements slipway.Sealer.
func (k *Key) Open(tenantID, deploymentID, name string, sealed []byte) (string, error) {
	if len(sealed) < header+tagSize || sealed[0] != version || string(sealed[1:1+idSize]) != string(k.id[:]) {
		return "", ErrSealed
	}
	bound := binding(tenantID, deploymentID, name)
	rest := sealed[1+idSize:]
	dataKey, err := k.aead.Open(nil, rest[:ivSize], rest[ivSize:ivSize+wrapSize], bound)
	if err != nil {
		return "", ErrSealed
	}
	aead, err := gcm(dataKey)
	if err != nil {
		return "", err
	}
	rest = rest[ivSize+wrapSize:]
	value, err := aead.Open(nil, rest[:ivSize], rest[ivSize:], bound)
	if err != nil {
		return "", ErrSealed
	}
	return string(value), nil
}

func seal(out []byte, aead cipher.AEAD, plain, bound []byte) ([]byte, error) {
	var nonce [ivSize]byte
	if _, err := rand.Read(nonce[:]); err != nil {
		return nil, fmt.Errorf("seal: draw a nonce: %w", err)
	}
	return aead.Seal(append(out, nonce[:]...), nonce[:], plain, bound), nil
}

// binding is the additional data: lengths keep the parts apart.
func binding(parts ...string) []byte {
	var b []byte
	for _, p := range parts {
		b = binary.BigEndian.AppendUint32(b, uint32(len(p)))
		b = append(b, p...)
	}
	return b
}

func gcm(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return cipher.NewGCM(block)
}
