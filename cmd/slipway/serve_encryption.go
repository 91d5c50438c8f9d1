package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/seal"
	"github.com/slipway-dev/slipway/worker/supervise"
)

const (
	aesKeyEnv = "LANGGRAPH_AES_KEY"
	// proofText is what a store's proof opens to.
	proofText = "slipway"
)

// sealStore makes the store encrypt what it keeps, where the deployment asks for it (reference 13, custom parts): with
// LANGGRAPH_AES_KEY, or with a key of the server's own that only the application's handlers can open. A key that is not the
// one the data were written with is refused.
func (s agentServer) sealStore(ctx context.Context, store agent.SealedStore, getenv func(string) string) error {
	remembered, err := store.Sealing(ctx)
	if err != nil {
		return fmt.Errorf("read how the data are encrypted: %w", err)
	}
	secret, key, err := s.secret(ctx, store, remembered, getenv)
	if err != nil {
		return err
	}
	if secret == nil {
		if remembered.Proof != nil {
			return errors.New("the data of this deployment are encrypted and no key is set; set " + aesKeyEnv + " as a secret, or encryption.path in the graph configuration, as it was")
		}
		return nil
	}
	cipher, err := seal.NewValues(secret)
	if err != nil {
		return err
	}
	if remembered.Proof == nil {
		if remembered.Proof, err = cipher.Seal([]byte(proofText)); err != nil {
			return err
		}
		remembered.Key = key
		if remembered, err = store.RememberSealing(ctx, remembered); err != nil {
			return fmt.Errorf("keep how the data are encrypted: %w", err)
		}
		if string(remembered.Key) != string(key) { // another server was faster
			return s.sealStore(ctx, store, getenv)
		}
	}
	if proof, err := cipher.Open(remembered.Proof); err != nil || string(proof) != proofText {
		return errors.New("the data of this deployment are encrypted with another key; set " + aesKeyEnv + ", or encryption.path, to what it was when they were written")
	}
	store.SealWith(cipher)
	return nil
}

// secret returns the secret of the store's cipher, nil for none, and how it is to be remembered.
func (s agentServer) secret(ctx context.Context, store agent.Store, r agent.SealRecord, getenv func(string) string) (secret []byte, key json.RawMessage, err error) {
	for language, parts := range s.parts {
		if p := parts.Encryption; p != nil && p.Path != "" {
			return s.handled(ctx, store, language, *p, r)
		}
	}
	text := getenv(aesKeyEnv)
	switch len(text) {
	case 0:
		return nil, nil, nil
	case 16, 24, 32:
		return []byte(text), nil, nil
	}
	return nil, nil, fmt.Errorf("%s has %d bytes; give it 16, 24 or 32", aesKeyEnv, len(text))
}

// wrappedKey is the store's key as handlers of the application have encrypted it.
type wrappedKey struct {
	Kind  string          `json:"kind"` // "blob" or "json"
	Value json.RawMessage `json:"value"`
}

// handled has the application's handlers open the remembered key, or encrypt a new one. They run in a worker that lives for
// this alone: nothing of the store can be read before.
func (s agentServer) handled(ctx context.Context, store agent.Store, language slipway.Language, p agent.EncryptionPart, r agent.SealRecord) ([]byte, json.RawMessage, error) {
	if r.Proof != nil && r.Key == nil {
		return nil, nil, errors.New("the data of this deployment are encrypted with " + aesKeyEnv + "; encryption.path cannot take its place: remove it from the graph configuration")
	}
	w, stop, err := s.encrypter(ctx, store, language, p)
	if err != nil {
		return nil, nil, err
	}
	defer stop()
	if r.Key != nil {
		secret, err := unwrapKey(ctx, w, r.Key)
		return secret, r.Key, err
	}
	info := w.Info().Loaded(agent.PartEncryption)
	if !info.Blob && !info.JSON {
		s.log.Warn("encryption.path has no handlers; nothing is encrypted", "path", p.Path)
		return nil, nil, nil
	}
	secret := make([]byte, seal.KeySize)
	if _, err := rand.Read(secret); err != nil {
		return nil, nil, fmt.Errorf("draw a key: %w", err)
	}
	key, err := wrapKey(ctx, w, secret, info.Blob)
	return secret, key, err
}

func wrapKey(ctx context.Context, w agent.Worker, secret []byte, blob bool) (json.RawMessage, error) {
	k := wrappedKey{Kind: "json", Value: keyJSON(secret)}
	if blob {
		k = wrappedKey{Kind: "blob", Value: json.RawMessage(`"` + base64.StdEncoding.EncodeToString(secret) + `"`)}
	}
	var err error
	if k.Value, err = agent.Encrypt(ctx, w, agent.Sealing{Kind: k.Kind, Model: "server", Field: "key", Context: json.RawMessage(`{}`), Value: k.Value}); err != nil {
		return nil, fmt.Errorf("the encryption handler of the application refuses: %w", err)
	}
	return json.Marshal(k)
}

func keyJSON(secret []byte) json.RawMessage {
	return json.RawMessage(`{"key":"` + base64.StdEncoding.EncodeToString(secret) + `"}`)
}

func unwrapKey(ctx context.Context, w agent.Worker, key json.RawMessage) ([]byte, error) {
	var k wrappedKey
	if err := json.Unmarshal(key, &k); err != nil {
		return nil, fmt.Errorf("read the encrypted key of the data: %w", err)
	}
	plain, err := agent.Decrypt(ctx, w, agent.Sealing{Kind: k.Kind, Model: "server", Field: "key", Context: json.RawMessage(`{}`), Value: k.Value})
	if err != nil {
		return nil, fmt.Errorf("the decryption handler of the application cannot open the key of the data: %w", err)
	}
	text := struct {
		Key string `json:"key"`
	}{}
	if k.Kind == "blob" {
		err = json.Unmarshal(plain, &text.Key)
	} else {
		err = json.Unmarshal(plain, &text)
	}
	secret, broken := base64.StdEncoding.DecodeString(text.Key)
	if err = errors.Join(err, broken); err != nil || len(secret) != seal.KeySize {
		return nil, fmt.Errorf("the decryption handler of the application returned no key of %d bytes (%w)", seal.KeySize, errors.Join(err))
	}
	return secret, nil
}

// encrypter starts a worker that has only the application's encryption.
func (s agentServer) encrypter(ctx context.Context, store agent.Store, language slipway.Language, p agent.EncryptionPart) (agent.Worker, func(), error) {
	s.bundle.Graphs = nil
	programs, err := s.programs(map[slipway.Language]agent.Parts{language: {Encryption: &p}})
	if err != nil {
		return nil, nil, err
	}
	pool := supervise.New(supervise.Config{Programs: programs}, store, now, s.log, workerLines(s.log))
	h := firstWorker{up: make(chan agent.Worker, 1), failed: make(chan error, 1)}
	if err := pool.Start(h); err != nil {
		return nil, nil, fmt.Errorf("start the worker that encrypts: %w", err)
	}
	select {
	case w := <-h.up:
		if part := w.Info().Parts[agent.PartEncryption]; part == nil || part.Failure != nil {
			err = fmt.Errorf("encryption.path %s cannot be loaded", p.Path)
			if part != nil {
				err = fmt.Errorf("%w: %s", err, part.Failure.Message)
			}
			break
		}
		return w, pool.Stop, nil
	case err = <-h.failed:
		err = fmt.Errorf("the worker that encrypts does not start: %w", err)
	case <-ctx.Done():
		err = ctx.Err()
	}
	pool.Stop()
	return nil, nil, err
}

// firstWorker hears of the first worker, or of the first failure.
type firstWorker struct {
	up     chan agent.Worker
	failed chan error
}

func (f firstWorker) WorkerUp(w agent.Worker) {
	select {
	case f.up <- w:
	default:
	}
}

func (f firstWorker) WorkerDown(agent.Worker, error) {}

func (f firstWorker) WorkerFailed(_ string, err error) {
	select {
	case f.failed <- err:
	default:
	}
}

func (f firstWorker) StoreBatch(context.Context, []agent.StoreOp) ([]agent.StoreResult, error) {
	return nil, slipway.Errorf(slipway.CodeInvalid, "this worker only encrypts")
}
