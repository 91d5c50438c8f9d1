package feed_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/api/controlapi"
	"github.com/slipway-dev/slipway/client"
	"github.com/slipway-dev/slipway/control"
	"github.com/slipway-dev/slipway/control/controltest"
	"github.com/slipway-dev/slipway/feed"
	"github.com/slipway-dev/slipway/feed/feedtest"
	"github.com/slipway-dev/slipway/seal"
	"github.com/slipway-dev/slipway/store/sqlite"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// site is a control service with its API on the network, and one listener.
type site struct {
	*controltest.World
	server   *httptest.Server
	handler  atomic.Pointer[http.Handler] // nil = the network is cut
	listener string
	key      string        // of the listener
	refusals atomic.Int64  // calls that ran into the cut network
	tried    chan struct{} // one of them may have come
}

func newSite(t *testing.T) *site {
	t.Helper()
	key, err := seal.New(bytes.Repeat([]byte{7}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	store, err := sqlite.OpenControl(filepath.Join(t.TempDir(), "control.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	s := &site{World: controltest.New(t, store, key, "http://slipway.test", func(c *control.Config) {
		c.Sources = []slipway.Source{slipway.SourceExternalContainer}
	})}
	s.tried = make(chan struct{}, 1)
	s.server = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.server.Start()
	t.Cleanup(s.server.Close)
	s.connect()
	l, err := s.CreateListener(t.Context(), s.Admin, slipway.ListenerCreate{ComputeType: slipway.ComputeCluster, ComputeID: "east"})
	if err != nil {
		t.Fatal(err)
	}
	s.listener = l.ID
	made, err := s.CreateKey(t.Context(), s.Admin, slipway.APIKeyCreate{Role: slipway.RoleListener, ListenerID: l.ID})
	if err != nil {
		t.Fatal(err)
	}
	s.key = made.Key
	return s
}

// connect puts the present service on the network.
func (s *site) connect() {
	h := controlapi.New(s.Service, controlapi.Config{BaseURL: "http://slipway.test", Version: "test", Log: quiet()})
	s.handler.Store(&h)
}

// cut takes the service off the network in the middle of whatever it answers.
func (s *site) cut() {
	s.handler.Store(nil)
	s.server.CloseClientConnections()
}

func (s *site) serve(w http.ResponseWriter, r *http.Request) {
	h := s.handler.Load()
	if h == nil {
		s.refusals.Add(1)
		select {
		case s.tried <- struct{}{}:
		default:
		}
		panic(http.ErrAbortHandler)
	}
	(*h).ServeHTTP(w, r)
}

// feed is the listener's line to the service.
func (s *site) feed(cfg feed.Config) *feed.Feed {
	cfg.ListenerID, cfg.Version = s.listener, "0.1.0"
	if cfg.RetryMin == 0 {
		cfg.RetryMin, cfg.RetryMax = time.Millisecond, 20*time.Millisecond
	}
	return feed.New(client.New(s.server.URL, s.key), cfg, quiet())
}

func (s *site) create(t *testing.T, name, listenerID string) string {
	t.Helper()
	cpu, image := 1.0, "r.example/a:1"
	in := slipway.DeploymentCreate{
		Name: name, Source: slipway.SourceExternalContainer, SourceConfig: slipway.SourceConfig{ResourceSpec: &slipway.ResourceSpec{CPU: &cpu}},
		SourceRevisionConfig: slipway.SourceRevisionConfig{ImageURI: &image}, Secrets: []slipway.Secret{{Name: "TOKEN", Value: "canary-1"}},
	}
	if listenerID != "" {
		in.SourceConfig.ListenerID = &listenerID
	}
	d, err := s.Create(t.Context(), s.Admin, in)
	if err != nil {
		t.Fatal(err)
	}
	return d.ID
}

// bench is the site as the suite sees it.
func (s *site) bench(t *testing.T) *feedtest.Bench {
	latest := func(t *testing.T, id string) slipway.Revision {
		t.Helper()
		found, err := s.Revisions(t.Context(), s.Admin, slipway.RevisionQuery{DeploymentID: id, Limit: 1})
		if err != nil || len(found) != 1 {
			t.Fatalf("revisions = %v, %v", found, err)
		}
		return found[0]
	}
	done := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	return &feedtest.Bench{
		Create:    func(t *testing.T, name string) string { return s.create(t, name, s.listener) },
		Elsewhere: func(t *testing.T, name string) { s.create(t, name, "") },
		Change: func(t *testing.T, id string) {
			image := "r.example/a:2"
			_, err := s.Patch(t.Context(), s.Admin, id, slipway.DeploymentPatch{SourceRevisionConfig: slipway.SourceRevisionConfig{ImageURI: &image}})
			done(t, err)
		},
		Delete: func(t *testing.T, id string) { done(t, s.Delete(t.Context(), s.Admin, id, control.Deletion{})) },
		Purge:  func(t *testing.T, id string) { done(t, s.Purge(t.Context(), s.Admin, id)) },
		Active: func(t *testing.T, id string) int64 {
			d, err := s.Get(t.Context(), s.Admin, id)
			done(t, err)
			found, err := s.Revisions(t.Context(), s.Admin, slipway.RevisionQuery{DeploymentID: id, Limit: 10})
			done(t, err)
			for _, r := range found {
				if r.ID == d.ActiveRevisionID {
					return r.Number
				}
			}
			return 0
		},
		Latest: func(t *testing.T, id string) (slipway.RevisionStatus, string) {
			r := latest(t, id)
			return r.Status, r.StatusReason
		},
		Flush: func(context.Context) error { return nil },
		Lines: func(t *testing.T, id string) []string { return s.lines(t, id) },
	}
}

func (s *site) lines(t *testing.T, id string) (out []string) {
	t.Helper()
	page, err := s.Logs(t.Context(), s.Admin, slipway.LogQuery{DeploymentID: id, Kind: slipway.LogDeploy, Limit: 1000}, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range page.Entries {
		out = append(out, e.Message)
	}
	return out
}

func TestTheFeedInTheServicesProcess(t *testing.T) {
	t.Parallel()
	feedtest.Run(t, func(t *testing.T) *feedtest.Bench {
		s := newSite(t)
		b := s.bench(t)
		b.Create, b.Elsewhere = func(t *testing.T, name string) string { return s.create(t, name, "") }, func(t *testing.T, name string) { s.create(t, name, s.listener) }
		b.Feed = s.Service
		b.Restart = func(*testing.T) slipway.Feed {
			s.World.Restart()
			return s.Service
		}
		return b
	})
}

func TestTheFeedOfAListener(t *testing.T) {
	t.Parallel()
	feedtest.Run(t, func(t *testing.T) *feedtest.Bench {
		s := newSite(t)
		b := s.bench(t)
		let := func(t *testing.T) slipway.Feed { return s.inProcess(t) }
		b.Feed = let(t)
		b.Restart = func(t *testing.T) slipway.Feed {
			s.World.Restart()
			return let(t)
		}
		return b
	})
}

// inProcess is what the listener sees, without the network.
func (s *site) inProcess(t *testing.T) slipway.Feed {
	t.Helper()
	f, err := s.ListenerFeed(t.Context(), control.Caller{Principal: s.Admin, ListenerID: s.listener})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestTheFeedOverHTTP(t *testing.T) {
	t.Parallel()
	feedtest.Run(t, func(t *testing.T) *feedtest.Bench {
		s := newSite(t)
		b, f := s.bench(t), s.feed(feed.Config{})
		b.Feed, b.Flush = f, f.Flush
		b.Restart = func(*testing.T) slipway.Feed {
			s.restart()
			return f
		}
		return b
	})
}

// restart is what a restart of the service looks like from the network.
func (s *site) restart() {
	s.cut()
	s.World.Restart()
	s.connect()
}
