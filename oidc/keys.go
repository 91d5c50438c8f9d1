package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"

	"github.com/slipway-dev/slipway"
)

const (
	// fetchLimit bounds how long the issuer may take for one document, and answerLimit how long the document may be, in bytes.
	fetchLimit  = 10 * time.Second
	answerLimit = 1 << 20
	// fetchEvery is the least time between two successful fetches: a token with a made-up key costs the issuer nothing.
	fetchEvery = 5 * time.Second
	// keysAge is when keys that still verify are fetched anew, so that one that the issuer took back stops counting.
	keysAge = time.Hour
	// After a failure nothing is asked for patienceFirst, then twice as long each time up to patienceMost.
	patienceFirst = time.Second
	patienceMost  = time.Minute
)

// keySet are keys that a token may be signed with.
type keySet []jose.JSONWebKey

// verify returns what one of the keys signed.
func (s keySet) verify(jws *jose.JSONWebSignature) ([]byte, bool) {
	for _, key := range s {
		if key.Algorithm != "" && key.Algorithm != jws.Signatures[0].Header.Algorithm {
			continue
		}
		if payload, err := jws.Verify(key); err == nil {
			return payload, true
		}
	}
	return nil, false
}

// keys are those that the issuer publishes, as far as they are known. One fetch runs at a time, for all who wait for it, and
// after a failure the issuer is left in peace for a while. It is safe for concurrent use.
type keys struct {
	issuer string
	http   *http.Client
	clock  slipway.Clock
	log    *slog.Logger

	mu       sync.Mutex
	address  string // of the keys, as discovery told; "" = not known yet
	set      keySet
	version  uint64    // rises with every successful fetch
	fetched  time.Time // the last successful fetch; zero = none
	failed   error     // of the last fetch; nil = it went well
	next     time.Time // nothing is fetched before
	patience time.Duration
	running  chan struct{} // closed when the fetch that runs has ended; nil = none runs
}

func newKeys(issuer string, deps Deps) *keys {
	base := deps.HTTP
	if base == nil {
		base = &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}
	}
	guarded := *base
	guarded.Timeout = fetchLimit
	guarded.Transport = bounded{base.Transport}
	guarded.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		if len(via) >= 5 || !Safe(req.URL) {
			return fmt.Errorf("redirected to %s, which is not followed", req.URL.Redacted())
		}
		return nil
	}
	return &keys{issuer: issuer, http: &guarded, clock: deps.Clock, log: deps.Log}
}

// known returns the keys by an id, all for "", and which version of the set they are of. Old ones are renewed in the background.
func (k *keys) known(id string) (keySet, uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.clock()
	if k.version > 0 && now.Sub(k.fetched) >= keysAge && k.running == nil && !now.Before(k.next) {
		k.start()
	}
	if id == "" {
		return k.set, k.version
	}
	var out keySet
	for _, key := range k.set {
		if key.KeyID == id {
			out = append(out, key)
		}
	}
	return out, k.version
}

// renew makes sure that the keys are newer than the version that the caller has tried, unless it is too early to ask the issuer
// again. CodeUnavailable: they cannot be had now.
func (k *keys) renew(ctx context.Context, tried uint64) (newer bool, err error) {
	k.mu.Lock()
	if k.version == tried && k.running == nil && !k.clock().Before(k.next) {
		k.start()
	}
	running := k.running
	k.mu.Unlock()
	if running != nil {
		select {
		case <-running:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.version != tried {
		return true, nil
	}
	if k.failed != nil {
		return false, slipway.Errorf(slipway.CodeUnavailable, "the identity provider %s cannot be reached to check the bearer token; try again in a moment, or use an API key", k.issuer)
	}
	return false, nil
}

// start begins a fetch, which outlives whoever asked for it. The caller holds mu.
func (k *keys) start() {
	done := make(chan struct{})
	k.running = done
	address := k.address
	go func() {
		set, address, err := k.fetch(address)
		k.mu.Lock()
		defer k.mu.Unlock()
		k.settle(set, address, err)
		k.running = nil
		close(done)
	}()
}

// settle takes over what a fetch came to.
func (k *keys) settle(set keySet, address string, err error) {
	now := k.clock()
	if k.failed = err; err != nil {
		k.patience = min(max(2*k.patience, patienceFirst), patienceMost)
		k.next = now.Add(k.patience)
		k.address = "" // it may have moved
		k.log.Warn("the keys of the identity provider cannot be fetched", "issuer", k.issuer, "retry_after", k.patience.String(), "error", err)
		return
	}
	k.set, k.address, k.fetched, k.next, k.patience = set, address, now, now.Add(fetchEvery), 0
	k.version++
}

// fetch asks the issuer for its keys, and before that, if it is not known, where they are.
func (k *keys) fetch(address string) (keySet, string, error) {
	ctx, cancel := context.WithTimeout(oidc.ClientContext(context.Background(), k.http), 2*fetchLimit)
	defer cancel()
	if address == "" {
		var err error
		if address, err = k.discover(ctx); err != nil {
			return nil, "", err
		}
	}
	set, err := k.download(ctx, address)
	return set, address, err
}

func (k *keys) discover(ctx context.Context) (string, error) {
	provider, err := oidc.NewProvider(ctx, k.issuer)
	if err != nil {
		return "", fmt.Errorf("discover: %w", err)
	}
	var at struct {
		Keys string `json:"jwks_uri"`
	}
	if err := provider.Claims(&at); err != nil {
		return "", fmt.Errorf("discover: %w", err)
	}
	if _, err := Address(at.Keys); err != nil {
		return "", fmt.Errorf("discover: jwks_uri: %w", err)
	}
	return at.Keys, nil
}

func (k *keys) download(ctx context.Context, address string) (keySet, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("fetch keys: %w", err)
	}
	res, err := k.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("fetch keys: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("fetch keys: %s answers %s", address, res.Status)
	}
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, fmt.Errorf("fetch keys: %w", err)
	}
	return readKeys(raw)
}

// readKeys keeps the public keys that verify signatures; of kinds that are not known here, others may make use.
func readKeys(raw []byte) (keySet, error) {
	var list struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("fetch keys: %w", err)
	}
	var out keySet
	for _, text := range list.Keys {
		var key jose.JSONWebKey
		if json.Unmarshal(text, &key) == nil && key.Valid() && key.IsPublic() && key.Use != "enc" {
			out = append(out, key)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("fetch keys: there is none that verifies signatures")
	}
	return out, nil
}

// bounded cuts answers that are too long.
type bounded struct{ inner http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	inner := b.inner
	if inner == nil {
		inner = http.DefaultTransport
	}
	res, err := inner.RoundTrip(req)
	if err == nil {
		res.Body = http.MaxBytesReader(nil, res.Body, answerLimit)
	}
	return res, err
}
