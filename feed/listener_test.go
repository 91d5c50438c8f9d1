package feed_test

import (
	"context"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/feed"
	"github.com/slipway-dev/slipway/listener"
	"github.com/slipway-dev/slipway/runtime/fake"
)

// patience bounds what hangs only if it is broken.
const patience = 30 * time.Second

// routes says where requests for the one deployment go.
type routes chan string

func (r routes) Route(_, _, _, endpoint string) { r <- endpoint }
func (r routes) Unroute(string)                 {}

// listen runs a listener over the site's network until the test ends.
func (s *site) listen(t *testing.T, rt *fake.Runtime) routes {
	t.Helper()
	to, f := make(routes, 100), s.feed(feed.Config{})
	l := listener.New(f, rt, to, listener.Config{Settle: time.Millisecond, RetryMin: time.Millisecond, RetryMax: 20 * time.Millisecond}, time.Now, quiet())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- l.Run(ctx) }()
	go func() { ended <- f.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		for range 2 {
			if err := <-ended; err != nil {
				t.Errorf("run: %v", err)
			}
		}
		rt.Close()
	})
	return to
}

// until follows the service's own view until the deployment is as wanted.
func (s *site) until(t *testing.T, what, id string, wanted func(slipway.DesiredDeployment) bool) slipway.DesiredDeployment {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	f, last := s.inProcess(t), slipway.DesiredDeployment{}
	for state := (slipway.DesiredState{}); ; {
		var err error
		if state, err = f.Desired(ctx, state.Cursor); err != nil {
			t.Fatalf("%s: %v; the deployment is %+v", what, err, last)
		}
		for _, d := range state.Deployments {
			if last = d; d.DeploymentID == id && wanted(d) {
				return d
			}
		}
	}
}

func live(number int64) func(slipway.DesiredDeployment) bool {
	return func(d slipway.DesiredDeployment) bool {
		return d.Active != nil && d.Active.Number == number && d.Candidate == nil
	}
}

func (s *site) change(t *testing.T, id, image string) {
	t.Helper()
	in := slipway.DeploymentPatch{SourceRevisionConfig: slipway.SourceRevisionConfig{ImageURI: &image}}
	if _, err := s.Patch(t.Context(), s.Admin, id, in); err != nil {
		t.Fatal(err)
	}
}

// lands waits until requests go to an endpoint.
func (r routes) lands(t *testing.T, want string) {
	t.Helper()
	for late := time.After(patience); ; {
		select {
		case got := <-r:
			if got == want {
				return
			}
		case <-late:
			t.Fatalf("requests never went to %s", want)
		}
	}
}

func TestARevisionGoesLiveOverTheNetwork(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	rt := fake.New(time.Now, nil)
	to := s.listen(t, rt)
	id := s.create(t, "desk", s.listener)
	first := s.until(t, "the first revision", id, live(1)).Active.RevisionID
	to.lands(t, "http://"+first+".1.test")

	s.restart() // the cursor is of a service that is no more
	s.change(t, id, "r.example/a:2")
	second := s.until(t, "the revision after the restart", id, live(2)).Active.RevisionID
	to.lands(t, "http://"+second+".1.test")

	s.cut()
	s.change(t, id, "r.example/a:3")
	s.refused(t, 3)
	if rt.Starts(second) != 1 {
		t.Errorf("without network the active revision was started %d times, want it left alone", rt.Starts(second))
	}
	s.connect()
	third := s.until(t, "the revision after the cut", id, live(3)).Active.RevisionID
	to.lands(t, "http://"+third+".1.test")
	if l, err := s.Listener(t.Context(), s.Admin, s.listener); err != nil || !l.Online || l.Version != "0.1.0" {
		t.Errorf("listener = %+v, %v; want it online with its version", l, err)
	}
}

// refused waits until so many calls more ran into the cut network.
func (s *site) refused(t *testing.T, n int64) {
	t.Helper()
	for late, from := time.After(patience), s.refusals.Load(); s.refusals.Load() < from+n; {
		select {
		case <-s.tried:
		case <-late:
			t.Fatal("nobody tried to reach the service")
		}
	}
}

func TestAReportThatFellIntoTheCutIsMadeAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	rt := fake.New(time.Now, nil)
	s.listen(t, rt)
	id := s.create(t, "desk", s.listener)
	first := s.until(t, "the first revision", id, live(1)).Active.RevisionID
	s.change(t, id, "r.example/a:2")
	second := s.until(t, "a candidate", id, func(d slipway.DesiredDeployment) bool { return d.Candidate != nil || d.Active.RevisionID != first })
	s.cut()
	s.refused(t, 3) // whatever was about to be reported
	s.connect()
	d := s.until(t, "the revision", id, live(2))
	if second.Candidate != nil && rt.Starts(d.Active.RevisionID) != 1 {
		t.Errorf("the candidate was started %d times, want once", rt.Starts(d.Active.RevisionID))
	}
}
