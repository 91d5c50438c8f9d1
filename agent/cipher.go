package agent

import (
	"context"
	"encoding/json"
)

// Cipher encrypts what a Store keeps of the values of threads, runs and items, so that nobody reads them from the
// database's files (reference 13, custom parts). It is safe for concurrent use.
type Cipher interface {
	Seal(plain []byte) ([]byte, error)
	Open(sealed []byte) ([]byte, error)
}

// SealRecord is what a store remembers of its encryption.
type SealRecord struct {
	// Proof is a known text, sealed: it tells whether a cipher is the one that the data were written with. nil = nothing was
	// ever sealed.
	Proof []byte
	// Key is the key of the cipher as the application's own handlers have encrypted it; nil = the key is elsewhere.
	Key json.RawMessage
}

// SealedStore is a Store that can encrypt.
type SealedStore interface {
	Store
	// Sealing returns what is remembered.
	Sealing(ctx context.Context) (SealRecord, error)
	// RememberSealing keeps s unless something is remembered already, and returns what is.
	RememberSealing(ctx context.Context, s SealRecord) (SealRecord, error)
	// SealWith makes the store seal everything it writes from now on. It is called before the store is used.
	SealWith(c Cipher)
}

// encryptionKey is where a context keeps what WithEncryptionContext was given.
type encryptionKey struct{}

// WithEncryptionContext makes what a client says to the application's encryption handlers (X-Encryption-Context, a JSON
// object) part of a request's context.
func WithEncryptionContext(ctx context.Context, said json.RawMessage) context.Context {
	return context.WithValue(ctx, encryptionKey{}, said)
}

// EncryptionContextFrom returns what the client said; nil = nothing.
func EncryptionContextFrom(ctx context.Context) json.RawMessage {
	said, _ := ctx.Value(encryptionKey{}).(json.RawMessage)
	return said
}
