package feed_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/feed"
)

// line is a log line of a deployment.
func line(id, message string) slipway.LogEntry {
	return slipway.LogEntry{
		DeploymentID: id, RevisionID: "01900000-0000-7000-8000-000000000001", Kind: slipway.LogDeploy,
		At: time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC), Level: "INFO", Message: message,
	}
}

func appendLines(t *testing.T, f *feed.Feed, entries ...slipway.LogEntry) {
	t.Helper()
	if err := f.AppendLogs(t.Context(), entries); err != nil {
		t.Fatal(err)
	}
}

func TestLinesOutliveACutNetwork(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id, f := s.create(t, "desk", s.listener), s.feed(feed.Config{})
	s.cut()
	var want []string
	for i := range 2500 { // more than one delivery holds
		want = append(want, fmt.Sprint("line ", i))
		appendLines(t, f, line(id, want[i]))
	}
	if err := f.Flush(t.Context()); slipway.ErrorCode(err) != slipway.CodeUnavailable {
		t.Fatalf("flush without network: %v, want CodeUnavailable", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	s.refused(t, 2)
	s.connect()
	cancel() // what waits is still delivered
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if got := s.lines(t, id); !slices.Equal(got, want[:1000]) { // a page
		t.Errorf("%d lines, the first %q, want all in order", len(got), got[:min(3, len(got))])
	}
	if err := f.Flush(t.Context()); err != nil {
		t.Errorf("nothing is left to deliver, but: %v", err)
	}
}

func TestTheBufferIsBounded(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id, f := s.create(t, "desk", s.listener), s.feed(feed.Config{Buffer: 10_000})
	s.cut()
	for i := range 100 {
		appendLines(t, f, line(id, fmt.Sprintf("%04d %s", i, strings.Repeat("x", 1000))))
		if i == 50 {
			if err := f.Flush(t.Context()); err == nil { // gives back what it took, within the bound
				t.Fatal("delivered without network")
			}
		}
	}
	s.connect()
	if err := f.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := s.lines(t, id)
	slices.Sort(got) // the line about the others has a later time
	if len(got) != 9 || !strings.HasPrefix(got[0], "0092 ") || got[8] != "92 earlier lines were lost: they could not be delivered to the control service" {
		t.Errorf("%d lines, the first %.4s, the last %q; want the newest 8 and how many are lost", len(got), got[0], got[len(got)-1])
	}
}

func TestALineThatIsRefusedHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id, f := s.create(t, "desk", s.listener), s.feed(feed.Config{})
	bad, long := line(id, "no level"), line(id, strings.Repeat("é", slipway.MaxLogLine))
	bad.Level = "LOUD"
	appendLines(t, f, line(id, "first"), bad, line("not-an-id", "x"), long, line("01900000-0000-7000-8000-999999999999", "of another"), line(id, "last"))
	if err := f.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := s.lines(t, id)
	if len(got) != 3 || got[0] != "first" || len(got[1]) > slipway.MaxLogLine || !strings.HasSuffix(got[1], "é…") || got[2] != "last" {
		t.Errorf("%d lines: %.40q", len(got), got)
	}
}

func TestACallerWhoIsNotWantedIsTold(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.create(t, "desk", s.listener)
	for _, c := range []struct {
		name string
		do   func() error
		want slipway.Code
	}{
		{"a listener that is not the key's", func() error { s.listener = s.NextID(); return nil }, slipway.CodeNotFound},
		{"a key that is not known", func() error { s.key = "slw_nobody"; return nil }, slipway.CodeUnauthenticated},
		{"a key without the permission", func() (err error) {
			s.key, err = s.IssueKey(t.Context(), s.Admin.TenantID, slipway.RoleViewer)
			return err
		}, slipway.CodeForbidden},
	} {
		if err := c.do(); err != nil {
			t.Fatal(err)
		}
		f := s.feed(feed.Config{})
		if _, err := f.Desired(t.Context(), ""); slipway.ErrorCode(err) != c.want {
			t.Errorf("%s: desired state: %v, want %s", c.name, err, c.want)
		}
		if err := f.Report(t.Context(), slipway.Report{DeploymentID: id, Generation: 1, Gone: true}); slipway.ErrorCode(err) != c.want {
			t.Errorf("%s: report: %v, want %s", c.name, err, c.want)
		}
		if err := f.Measure(t.Context(), []slipway.Metrics{{DeploymentID: id, At: time.Now()}}); slipway.ErrorCode(err) != c.want {
			t.Errorf("%s: metrics: %v, want %s", c.name, err, c.want)
		}
	}
}

func TestMetricsArrive(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id, f := s.create(t, "desk", s.listener), s.feed(feed.Config{})
	at := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	if err := f.Measure(t.Context(), []slipway.Metrics{{DeploymentID: id, At: at, Replicas: 3, ReadyReplicas: 2, Restarts: 1, CPUCores: 0.5, MemoryMB: 64}}); err != nil {
		t.Fatal(err)
	}
	m, ok, err := s.Metrics(t.Context(), s.Admin, id)
	if err != nil || !ok || !m.At.Equal(at) || m.Replicas != 3 || m.ReadyReplicas != 2 || m.Restarts != 1 || m.CPUCores != 0.5 || m.MemoryMB != 64 {
		t.Errorf("metrics = %+v, %v, %v", m, ok, err)
	}
}

func TestAWaitThatIsOverBeginsAnother(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	h := *s.handler.Load()
	asked := make(chan string, 100)
	var counting http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r)
		asked <- r.URL.Query().Get("cursor")
	})
	s.handler.Store(&counting)
	f := s.feed(feed.Config{Wait: time.Second})
	state, err := f.Desired(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	<-asked
	found := make(chan slipway.DesiredState, 1)
	go func() {
		next, err := f.Desired(t.Context(), state.Cursor)
		if err != nil {
			t.Errorf("wait: %v", err)
		}
		found <- next
	}()
	if got := <-asked; got != state.Cursor { // the service ended the first wait
		t.Errorf("asked with cursor %q, want %q", got, state.Cursor)
	}
	id := s.create(t, "desk", s.listener)
	if next := <-found; len(next.Deployments) != 1 || next.Deployments[0].DeploymentID != id {
		t.Errorf("found %+v, want the new deployment", next)
	}
}
