package githost_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/githost"
	"github.com/slipway-dev/slipway/githost/githosttest"
)

func open(t *testing.T, s *githosttest.Server) slipway.GitHost {
	t.Helper()
	host, err := githost.New(time.Now).Open(s.Integration(), s.Secrets())
	if err != nil {
		t.Fatal(err)
	}
	return host
}

func TestHostsThatWantToBeLeftAlone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		header map[string]string
		want   string
	}{
		"too many requests": {429, map[string]string{"Retry-After": "60"}, "1m0s"},
		"GitHub's limit":    {403, map[string]string{"X-RateLimit-Remaining": "0", "Retry-After": "120"}, "2m0s"},
		"trouble":           {502, nil, "502"},
		"no JSON":           {200, nil, "check its address"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := githosttest.NewServer(t, slipway.HostGitea)
			s.Refuse(func(w http.ResponseWriter, _ *http.Request) bool {
				for k, v := range c.header {
					w.Header().Set(k, v)
				}
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte("<html>"))
				return true
			})
			_, err := open(t, s).Repository(t.Context(), s.URL+"/a/b")
			if slipway.ErrorCode(err) != slipway.CodeUnavailable || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want CodeUnavailable with %q", err, c.want)
			}
		})
	}
}

func TestAFailureOfAMomentIsTriedAgain(t *testing.T) {
	t.Parallel()
	s := githosttest.NewServer(t, slipway.HostGitLab)
	repo := s.CreateRepository(t, "a/b")
	var calls atomic.Int32
	s.Refuse(func(w http.ResponseWriter, _ *http.Request) bool {
		if calls.Add(1) > 1 {
			return false
		}
		w.WriteHeader(http.StatusBadGateway)
		return true
	})
	if _, err := open(t, s).Repository(t.Context(), repo); err != nil || calls.Load() != 2 {
		t.Errorf("%v after %d calls, want an answer after 2", err, calls.Load())
	}
}

func TestTokensAreForTheirHostOnly(t *testing.T) {
	t.Parallel()
	for _, kind := range []slipway.HostKind{slipway.HostGitHub, slipway.HostGitea, slipway.HostGitLab, slipway.HostGeneric} {
		var strangers atomic.Int32
		stranger := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { strangers.Add(1) }))
		t.Cleanup(stranger.Close)
		s := githosttest.NewServer(t, kind)
		s.Refuse(func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, stranger.URL, http.StatusFound)
			return true
		})
		_, err := open(t, s).Repository(t.Context(), s.URL+"/a/b.git")
		if slipway.ErrorCode(err) != slipway.CodeUnavailable || strangers.Load() != 0 {
			t.Errorf("%s: %v, and %d calls of another host; want it refused and none", kind, err, strangers.Load())
		}
	}
}

const tokenPath = "/api/v3/app/installations/4711/access_tokens"

func TestInstallationTokensAreKeptWhileTheyAreGood(t *testing.T) {
	t.Parallel()
	s := githosttest.NewServer(t, slipway.HostGitHub)
	repo := s.CreateRepository(t, "a/b")
	host := open(t, s)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if _, err := host.CloneCredentials(t.Context(), repo); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := s.Calls(tokenPath); got != 1 {
		t.Errorf("20 builds asked for %d tokens, want 1", got)
	}
	short := githosttest.NewServer(t, slipway.HostGitHub)
	short.Expire(5 * time.Minute) // too short for a long clone
	repo, host = short.CreateRepository(t, "a/b"), open(t, short)
	for range 2 {
		if _, err := host.CloneCredentials(t.Context(), repo); err != nil {
			t.Fatal(err)
		}
	}
	if got := short.Calls(tokenPath); got != 2 {
		t.Errorf("two builds with tokens that end soon asked for %d, want 2", got)
	}
}

func TestInstallationDeliveries(t *testing.T) {
	t.Parallel()
	s := githosttest.NewServer(t, slipway.HostGitHub)
	for action, removed := range map[string]bool{"created": false, "deleted": true} {
		d := s.InstallationDelivery(action)
		hook, err := open(t, s).ReadHook(d.Header.Get, d.Body)
		if err != nil || hook.Installation == nil || hook.Installation.ID != 4711 || hook.Installation.Removed != removed {
			t.Errorf("%s = %+v %v", action, hook.Installation, err)
		}
	}
	ping := s.Ping()
	if hook, err := open(t, s).ReadHook(ping.Header.Get, ping.Body); err != nil || hook.Push != nil || hook.About == "" {
		t.Errorf("ping = %+v %v, want a word about it", hook, err)
	}
}
