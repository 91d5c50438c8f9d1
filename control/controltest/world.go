package controltest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/control"
)

// World is a control service over memory, with a clock that tests move.
type World struct {
	*control.Service
	Admin slipway.Principal
	Key   string // of Admin
	Hosts Hosts  // what every integration leads to
	// Images are the images there are.
	Images Images

	mu  sync.Mutex
	now time.Time
	ids int

	cfg  control.Config
	deps control.Deps
}

// SetLogLimit restarts the service with another bound of a deployment's log, in bytes.
func (w *World) SetLogLimit(limit int64) {
	w.cfg.LogLimit = limit
	w.Restart()
}

// Restart replaces the service by a new one over the same store, as after a crash.
func (w *World) Restart() { w.Service = control.New(w.cfg, w.deps) }

// New returns a bootstrapped service over any store. sealer is the real one of package seal, which this package may not
// know. The options change its settings.
func New(t testing.TB, store slipway.Store, sealer slipway.Sealer, baseURL string, options ...func(*control.Config)) *World {
	t.Helper()
	w := &World{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	cfg := control.Config{
		BaseURL: baseURL, Templates: templates(), UploadKey: []byte("test"), UploadLimit: 1 << 20, PushKey: []byte("push"),
		Deletion: slipway.DeletionTerms{Retention: 168 * time.Hour},
		Sources: []slipway.Source{
			slipway.SourceGithost, slipway.SourceInternalSource, slipway.SourceInternalTemplate, slipway.SourceInternalContainer,
		},
	}
	for _, option := range options {
		option(&cfg)
	}
	w.cfg = cfg
	w.deps = control.Deps{
		Store: store, Blob: &Blob{Clock: w.Now}, Sealer: sealer, Hosts: &w.Hosts, Clock: w.Now, IDs: w.NextID, Random: &counting{}, Log: slog.New(slog.DiscardHandler), Images: &w.Images,
	}
	w.Restart()
	first, err := w.Bootstrap(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.Key, w.Admin = first.Key, slipway.Principal{ID: "key:admin", TenantID: first.TenantID, Role: slipway.RoleAdmin}
	return w
}

func templates() []slipway.Template {
	return []slipway.Template{
		{ID: "chat-x", Title: "X", Description: "Prints X.", Language: slipway.Node},
		{ID: "chat-y", Title: "Y", Description: "Prints Y.", Language: slipway.Python},
	}
}

// Now is the clock; it moves by a millisecond with every look.
func (w *World) Now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(time.Millisecond)
	return w.now
}

// Advance moves the clock.
func (w *World) Advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// NextID makes rising uuids.
func (w *World) NextID() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ids++
	return fmt.Sprintf("01900000-0000-7000-8000-%012d", w.ids)
}

// counting yields bytes that never repeat within a key's length.
type counting struct {
	mu   sync.Mutex
	next uint32
}

func (c *counting) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	sum := sha256.Sum256([]byte{byte(c.next), byte(c.next >> 8)})
	return copy(p, sum[:]), nil
}

// Blob is a slipway.Blob in memory. Its zero value is empty.
type Blob struct {
	Clock slipway.Clock // nil = the machine's

	mu   sync.Mutex
	all  map[string][]byte
	used map[string]time.Time
}

func (b *Blob) use(digest string) {
	if b.used == nil {
		b.used = map[string]time.Time{}
	}
	if b.Clock == nil {
		b.Clock = time.Now
	}
	b.used[digest] = b.Clock()
}

var _ slipway.Blob = (*Blob)(nil)

// Put implements slipway.Blob.
func (b *Blob) Put(_ context.Context, r io.Reader, limit int64) (string, int64, error) {
	body, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return "", 0, err
	}
	if int64(len(body)) > limit {
		return "", 0, slipway.Errorf(slipway.CodeTooLarge, "more than %d bytes", limit)
	}
	sum := sha256.Sum256(body)
	digest := "sha256:" + hex.EncodeToString(sum[:])
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all == nil {
		b.all = map[string][]byte{}
	}
	b.all[digest] = body
	b.use(digest)
	return digest, int64(len(body)), nil
}

// Open implements slipway.Blob.
func (b *Blob) Open(_ context.Context, digest string) (io.ReadCloser, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	body, ok := b.all[digest]
	if !ok {
		return nil, none("blob", digest)
	}
	return io.NopCloser(bytes.NewReader(body)), nil
}

// Delete implements slipway.Blob.
func (b *Blob) Delete(_ context.Context, digest string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.all, digest)
	return nil
}

// Touch implements slipway.Blob.
func (b *Blob) Touch(_ context.Context, digest string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.all[digest]; !ok {
		return none("blob", digest)
	}
	b.use(digest)
	return nil
}

// Expire implements slipway.Blob.
func (b *Blob) Expire(_ context.Context, digest string, before time.Time) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used[digest].After(before) {
		return false, nil
	}
	delete(b.all, digest)
	return true, nil
}

// List implements slipway.Blob.
func (b *Blob) List(_ context.Context, fn func(slipway.BlobInfo) error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for digest, body := range b.all {
		if err := fn(slipway.BlobInfo{Digest: digest, Size: int64(len(body)), UsedAt: b.used[digest]}); err != nil {
			return err
		}
	}
	return nil
}

// With restarts the service with other settings and other things to work with.
func (w *World) With(change func(*control.Config, *control.Deps)) {
	change(&w.cfg, &w.deps)
	w.Restart()
}
