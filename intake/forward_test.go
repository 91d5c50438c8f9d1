package intake_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/slipway-dev/slipway/beacon"
	"github.com/slipway-dev/slipway/intake"
	"github.com/slipway-dev/slipway/seal"
	"github.com/slipway-dev/slipway/store/sqlite"
)

// backend is a scripted beacon.Exporter: it answers what the script says, then nil.
type backend struct {
	mu     sync.Mutex
	script []error
	got    []byte
	calls  int
	called chan struct{}
}

func (b *backend) Export(_ context.Context, _ beacon.SignalKind, payload []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer func() { b.called <- struct{}{} }()
	b.calls++
	if len(b.script) > 0 {
		err := b.script[0]
		b.script = b.script[1:]
		return err
	}
	b.got = append(b.got, payload...)
	return nil
}

type fixture struct {
	*intake.Service
	caller intake.Caller
	store  *sqlite.BeaconStore
}

func newFixture(t *testing.T, cfg intake.Config) fixture {
	t.Helper()
	dir := t.TempDir()
	store, err := sqlite.OpenBeacon(filepath.Join(dir, "collector.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	keys, err := seal.OpenIssuerKeys(filepath.Join(dir, "keys"), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Now, cfg.IDs, cfg.Log = time.Now, uuid.NewString, slog.New(slog.DiscardHandler)
	f := fixture{Service: intake.New(store, keys, cfg), store: store}
	_, key, err := f.Issue(t.Context(), intake.LicenceRequest{Customer: "Acme", Kind: beacon.Online, Days: 1})
	if err != nil {
		t.Fatal(err)
	}
	if f.caller, err = f.Identify(key); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f fixture) add(t *testing.T, payload string) {
	t.Helper()
	if err := f.AddSignals(t.Context(), f.caller, beacon.Signals{Kind: beacon.Traces, Items: 1, Payload: []byte(payload)}, 0); err != nil {
		t.Fatal(err)
	}
}

func (f fixture) stats(t *testing.T) intake.Stats {
	t.Helper()
	s, err := f.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// run runs the service until the test ends.
func (f fixture) run(t *testing.T, b beacon.Exporter) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := f.Run(ctx, b); err != nil {
			t.Error(err)
		}
	}()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

func TestSignalsAreForwardedInOrderAndJoined(t *testing.T) {
	t.Parallel()
	f := newFixture(t, intake.Config{})
	want := ""
	for i := range 50 {
		f.add(t, fmt.Sprintf("[%d]", i))
		want += fmt.Sprintf("[%d]", i)
	}
	b := &backend{called: make(chan struct{}, 100)}
	stop := f.run(t, b)
	<-b.called
	f.add(t, "late")
	<-b.called
	stop()
	if string(b.got) != want+"late" || b.calls != 2 {
		t.Errorf("got %q in %d calls", b.got, b.calls)
	}
	if s := f.stats(t); s.Kinds[beacon.Traces].Forwarded != 51 || s.Queue.Batches != 0 {
		t.Errorf("stats %+v", s)
	}
}

func TestABackendThatFailsIsTriedAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t, intake.Config{})
	f.add(t, "first")
	b := &backend{called: make(chan struct{}, 100), script: []error{&beacon.Delay{Err: errors.New("busy"), After: time.Millisecond}, &beacon.Delay{Err: errors.New("busy"), After: time.Millisecond}}}
	stop := f.run(t, b)
	for range 3 {
		<-b.called
	}
	stop()
	if string(b.got) != "first" {
		t.Errorf("got %q", b.got)
	}
	if s := f.stats(t); s.Kinds[beacon.Traces].Retries != 2 || s.Kinds[beacon.Traces].Forwarded != 1 || s.Queue.Batches != 0 {
		t.Errorf("stats %+v", s)
	}
}

func TestWhatABackendRefusesForGoodIsDroppedAndCounted(t *testing.T) {
	t.Parallel()
	f := newFixture(t, intake.Config{})
	f.add(t, "poison")
	b := &backend{called: make(chan struct{}, 100), script: []error{errors.New("400")}}
	stop := f.run(t, b)
	<-b.called
	f.add(t, "good")
	<-b.called
	stop()
	if string(b.got) != "good" {
		t.Errorf("got %q", b.got)
	}
	if s := f.stats(t); s.Kinds[beacon.Traces].Undeliverable != 1 || s.Kinds[beacon.Traces].Forwarded != 1 {
		t.Errorf("stats %+v", s)
	}
}

func TestAFullQueueDropsTheOldestAndNeverRefuses(t *testing.T) {
	t.Parallel()
	f := newFixture(t, intake.Config{QueueBytes: 1000})
	for i := range 40 {
		f.add(t, fmt.Sprintf("%02d", i)+strings.Repeat("x", 98))
	}
	if err := f.SweepQueue(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := f.stats(t)
	if s.Queue.Bytes != 1000 || s.Dropped != 30 || s.Kinds[beacon.Traces].Items != 40 {
		t.Errorf("stats %+v, want 1000 bytes, 30 dropped, 40 accepted", s)
	}
	f.add(t, "newest")
	if err := f.SweepQueue(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := &backend{called: make(chan struct{}, 100)}
	f.run(t, b)
	<-b.called
	if !bytes.HasSuffix(b.got, []byte("newest")) {
		t.Errorf("the newest batch was dropped: %.20q", b.got)
	}
}

func TestBillingExport(t *testing.T) {
	t.Parallel()
	list := []intake.LicenceUsage{{LicenceID: "l1", Customer: "=cmd()", Kind: beacon.Online, Months: []beacon.MonthUsage{
		{Month: "2026-01", TraceCount: 7, Transactions: 2, Snapshots: 1, Measures: map[string]int64{"users": 3}, Peaks: map[string]int64{"users": 5, "newer": 1}},
	}}}
	var out bytes.Buffer
	if err := intake.BillingCSV(&out, list); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	if !strings.HasPrefix(lines[0], "license_id,customer,kind,month,trace_count,transactions,snapshots,workspaces,workspaces_peak,users,users_peak") || !strings.HasSuffix(lines[0], "newer,newer_peak") {
		t.Errorf("header %s", lines[0])
	}
	if !strings.HasPrefix(lines[1], "l1,'=cmd(),online,2026-01,7,2,1,0,0,3,5,") || !strings.HasSuffix(lines[1], ",0,1") {
		t.Errorf("row %s", lines[1])
	}
}
