package beaconapi_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/slipway-dev/slipway/api/beaconapi"
	"github.com/slipway-dev/slipway/beacon"
	"github.com/slipway-dev/slipway/intake"
	"github.com/slipway-dev/slipway/seal"
	"github.com/slipway-dev/slipway/store/sqlite"
)

// clock is a time that tests move.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.at }

func (c *clock) advance(d time.Duration) { c.mu.Lock(); defer c.mu.Unlock(); c.at = c.at.Add(d) }

// server is a collector on real stores, and a client of it.
type server struct {
	t     testing.TB
	http  *httptest.Server
	svc   *intake.Service
	store *sqlite.BeaconStore
	clock *clock
	key   string
	id    string
}

type options struct {
	api    beaconapi.Config
	intake intake.Config
}

func newServer(t testing.TB, set ...func(*options)) *server {
	t.Helper()
	dir := t.TempDir()
	store, err := sqlite.OpenBeacon(filepath.Join(dir, "collector.db"))
	if err != nil {
		t.Fatal(err)
	}
	c := &clock{at: time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC)}
	keys, err := seal.OpenIssuerKeys(filepath.Join(dir, "keys.json"), c.now)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	o := options{api: beaconapi.Config{Log: log}, intake: intake.Config{Now: c.now, IDs: uuid.NewString, Log: log, Rate: 1 << 20}}
	for _, fn := range set {
		fn(&o)
	}
	s := &server{t: t, svc: intake.New(store, keys, o.intake), store: store, clock: c}
	s.http = httptest.NewServer(beaconapi.New(s.svc, o.api))
	t.Cleanup(func() { s.http.Close(); _ = store.Close() })
	s.id, s.key = s.issue("Acme", beacon.Online)
	return s
}

func (s *server) issue(customer string, kind beacon.Kind) (id, key string) {
	s.t.Helper()
	l, key, err := s.svc.Issue(context.Background(), intake.LicenceRequest{Customer: customer, Kind: kind, Days: 30})
	if err != nil {
		s.t.Fatal(err)
	}
	return l.ID, key
}

// answer is what a request got.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a answer) String() string { return fmt.Sprintf("%d %s", a.status, a.body) }

// member returns a member of a JSON answer.
func (a answer) member(name string) any {
	var m map[string]any
	_ = json.Unmarshal(a.body, &m)
	return m[name]
}

func (s *server) send(method, path string, body []byte, headers ...string) answer {
	s.t.Helper()
	r, err := http.NewRequest(method, s.http.URL+path, bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, text}
}

func (s *server) get(path string) answer { s.t.Helper(); return s.send("GET", path, nil) }

// post sends JSON; KEY in it stands for the licence.
func (s *server) post(path, body string, headers ...string) answer {
	s.t.Helper()
	return s.send("POST", path, []byte(strings.ReplaceAll(body, "KEY", s.key)), append([]string{"Content-Type", "application/json"}, headers...)...)
}

// otlp sends JSON with the licence in its header.
func (s *server) otlp(kind, body string) answer {
	s.t.Helper()
	return s.post("/v1/beacon/v1/"+kind, body, "X-License-Key", s.key)
}

func zipped(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(b)
	_ = z.Close()
	return out.Bytes()
}

func (s *server) usage() intake.LicenceUsage {
	s.t.Helper()
	list, err := s.svc.Usage(context.Background(), beacon.UsageQuery{LicenceID: s.id})
	if err != nil || len(list) != 1 {
		s.t.Fatalf("usage: %v, %v", list, err)
	}
	return list[0]
}
