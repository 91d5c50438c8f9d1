package listener_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/listener"
	"github.com/slipway-dev/slipway/runtime/fake"
)

// feed is a control service in miniature: it moves desired state as reports come in and fences them by generation.
type feed struct {
	mu      sync.Mutex
	version int
	changed chan struct{}
	state   map[string]slipway.DesiredDeployment
	reports []string
	logged  []slipway.LogEntry
	broken  int // so many calls fail
	stale   int // so many reports are refused
}

func newFeed() *feed {
	return &feed{changed: make(chan struct{}), state: map[string]slipway.DesiredDeployment{}}
}

func (f *feed) bump() {
	f.version++
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *feed) set(d slipway.DesiredDeployment) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d.Generation = f.state[d.DeploymentID].Generation + 1
	f.state[d.DeploymentID] = d
	f.bump()
}

func (f *feed) drop(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.state, id)
	f.bump()
}

func (f *feed) get(id string) slipway.DesiredDeployment {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state[id]
}

func (f *feed) Desired(ctx context.Context, cursor string) (slipway.DesiredState, error) {
	for {
		f.mu.Lock()
		if f.broken > 0 {
			f.broken--
			f.mu.Unlock()
			return slipway.DesiredState{}, errors.New("control service is away")
		}
		if cursor != strconv.Itoa(f.version) {
			s := slipway.DesiredState{Cursor: strconv.Itoa(f.version)}
			for _, d := range f.state {
				s.Deployments = append(s.Deployments, d)
			}
			f.mu.Unlock()
			return s, nil
		}
		changed := f.changed
		f.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return slipway.DesiredState{}, ctx.Err()
		}
	}
}

func (f *feed) Report(_ context.Context, r slipway.Report) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.state[r.DeploymentID]
	if f.stale > 0 || r.Generation != d.Generation {
		f.stale = max(0, f.stale-1)
		return slipway.Errorf(slipway.CodeStale, "generation %d is not the current one", r.Generation)
	}
	text := fmt.Sprintf("%s %s %s", r.RevisionID, r.Status, r.Reason)
	if r.Gone {
		text = "gone"
	}
	f.reports = append(f.reports, strings.TrimSpace(text))
	switch r.Status {
	case slipway.Deployed:
		d.Active, d.Candidate = d.Candidate, nil
		d.Generation++
	case slipway.DeployFailed:
		d.Candidate = nil
		d.Generation++
	}
	f.state[r.DeploymentID] = d
	f.bump()
	return nil
}

func (f *feed) AppendLogs(_ context.Context, entries []slipway.LogEntry) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.logged = append(f.logged, entries...)
	return nil
}

func (f *feed) lines() []slipway.LogEntry {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.logged)
}

func (f *feed) told() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.reports)
}

// router records where requests would go.
type router struct {
	mu     sync.Mutex
	routes map[string]string
	log    []string
}

func (r *router) Route(name, _, _, endpoint string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.routes[name] = endpoint
	r.log = append(r.log, endpoint)
}

func (r *router) Unroute(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.routes)
	r.log = append(r.log, "unroute "+id)
}

func (r *router) to(name string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.routes[name]
}

type bench struct {
	feed   *feed
	rt     *fake.Runtime
	router *router
	stop   func()
}

// run executes fn in a bubble with a running listener; time stands still while anybody works.
func run(t *testing.T, scripts map[string]fake.Script, prepare func(*bench), fn func(*bench)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{feed: newFeed(), router: &router{routes: map[string]string{}}}
		b.rt = fake.New(time.Now, scripts)
		if prepare != nil {
			prepare(b)
		}
		b.begin(t)
		synctest.Wait()
		fn(b)
		b.stop()
	})
}

func (b *bench) begin(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	l := listener.New(b.feed, b.rt, b.router, listener.Config{}, time.Now, slog.New(slog.DiscardHandler))
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	b.stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
		b.rt.Close()
	}
}

func pass(d time.Duration) {
	time.Sleep(d) // of the bubble
	synctest.Wait()
}

func desk(active, candidate string) slipway.DesiredDeployment {
	d := slipway.DesiredDeployment{DeploymentID: "d1", Name: "desk"}
	if active != "" {
		d.Active = &slipway.Blueprint{RevisionID: active}
	}
	if candidate != "" {
		d.Candidate = &slipway.Blueprint{RevisionID: candidate}
	}
	return d
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestARevisionGoesLiveAndReplacesAnother(t *testing.T) {
	run(t, nil, nil, func(b *bench) {
		b.feed.set(desk("", "r1"))
		pass(time.Second)
		same(t, "reports", b.feed.told(), []string{"r1 DEPLOYING", "r1 DEPLOYED"})
		d := b.feed.get("d1")
		d.Candidate = &slipway.Blueprint{RevisionID: "r2"}
		b.feed.set(d)
		pass(100 * time.Millisecond)
		same(t, "route", b.router.to("desk"), "http://r2.1.test")
		same(t, "calls before the routes settled", b.rt.Calls(), []string{"start r1", "start r2"})
		pass(time.Second)
		same(t, "calls", b.rt.Calls(), []string{"start r1", "start r2", "drain r1", "remove r1"})
		same(t, "reports", b.feed.told(), []string{"r1 DEPLOYING", "r1 DEPLOYED", "r2 DEPLOYING", "r2 DEPLOYED"})
	})
}

func TestAFailedCandidateChangesNothing(t *testing.T) {
	scripts := map[string]fake.Script{"r2": {ExitCode: 1, Lines: []string{"no module named 'requests'"}}, "r3": {Failure: "no such graph"}, "r4": {Manual: true}}
	run(t, scripts, func(b *bench) { b.feed.set(desk("r1", "")) }, func(b *bench) {
		for _, id := range []string{"r2", "r3", "r4"} {
			d := b.feed.get("d1")
			d.Candidate = &slipway.Blueprint{RevisionID: id}
			b.feed.set(d)
			pass(6 * time.Minute)
			same(t, "route", b.router.to("desk"), "http://r1.1.test")
		}
		same(t, "reports", b.feed.told(), []string{
			"r2 DEPLOYING", "r2 DEPLOY_FAILED the agent server exited with code 1 before it was ready (attempt 3 of 3); last log lines: no module named 'requests'",
			"r3 DEPLOYING", "r3 DEPLOY_FAILED no such graph",
			"r4 DEPLOYING", "r4 DEPLOY_FAILED the agent server was not ready after 5m0s; last probe: not listening yet",
		})
		same(t, "starts", []int{b.rt.Starts("r1"), b.rt.Starts("r2"), b.rt.Starts("r3"), b.rt.Starts("r4")}, []int{1, 3, 1, 1})
	})
}

func TestWhatCannotBeStartedFails(t *testing.T) {
	run(t, nil, func(b *bench) {
		b.rt.FailEnsure("r1", slipway.Errorf(slipway.CodeInvalid, "the artifact is not on this machine"))
		b.rt.FailEnsure("r2", errors.New("out of processes"))
	}, func(b *bench) {
		b.feed.set(desk("", "r1"))
		pass(time.Second)
		b.feed.set(desk("", "r2"))
		pass(time.Minute)
		same(t, "reports", b.feed.told(), []string{
			"r1 DEPLOYING", "r1 DEPLOY_FAILED the agent server could not be started: the artifact is not on this machine",
			"r2 DEPLOYING", "r2 DEPLOY_FAILED the agent server ended by a signal or with an unknown exit code before it was ready (attempt 3 of 3); last probe: the agent server could not be started: out of processes",
		})
	})
}

func TestACrashedActiveRevisionIsStartedAgainWithBackoff(t *testing.T) {
	run(t, nil, func(b *bench) { b.feed.set(desk("r1", "")) }, func(b *bench) {
		b.rt.Exit("r1", 137)
		synctest.Wait()
		same(t, "route while down", b.router.to("desk"), "")
		pass(900 * time.Millisecond)
		same(t, "starts before the pause is over", b.rt.Starts("r1"), 1)
		pass(200 * time.Millisecond)
		same(t, "starts", b.rt.Starts("r1"), 2)
		same(t, "route", b.router.to("desk"), "http://r1.2.test")
		same(t, "reports", b.feed.told(), []string(nil))
	})
}

func TestAnActiveRevisionThatCannotBeStartedIsTriedAtEase(t *testing.T) {
	run(t, nil, func(b *bench) { b.feed.set(desk("r1", "")) }, func(b *bench) {
		b.rt.FailEnsure("r1", slipway.Errorf(slipway.CodeInvalid, "no artifact"))
		b.rt.Exit("r1", 1)
		pass(10 * time.Minute) // a hot loop would never let the bubble's time pass
		b.rt.FailEnsure("r1", nil)
		pass(time.Minute)
		same(t, "starts", b.rt.Starts("r1"), 2)
	})
}

func TestADeletedDeploymentIsTornDown(t *testing.T) {
	run(t, nil, func(b *bench) { b.feed.set(desk("r1", "")) }, func(b *bench) {
		d := b.feed.get("d1")
		d.Deleted, d.Active = true, nil
		b.feed.set(d)
		pass(time.Second)
		same(t, "calls", b.rt.Calls(), []string{"start r1", "remove r1", "destroy d1"})
		same(t, "reports", b.feed.told(), []string{"gone"})
		b.feed.drop("d1")
		pass(time.Minute)
		same(t, "reports", b.feed.told(), []string{"gone"})
	})
}

func TestARetiredDeploymentComesBack(t *testing.T) {
	run(t, nil, func(b *bench) { b.feed.set(desk("r1", "")) }, func(b *bench) {
		d := b.feed.get("d1")
		active := d.Active
		d.Retired, d.Active, d.Generation = true, nil, d.Generation+1
		b.feed.set(d)
		pass(time.Minute)
		same(t, "calls", b.rt.Calls(), []string{"start r1", "remove r1"})
		same(t, "reports", b.feed.told(), []string{"gone"})
		d.Retired, d.Active, d.Generation = false, active, d.Generation+1
		b.feed.set(d)
		pass(time.Minute)
		same(t, "calls", b.rt.Calls(), []string{"start r1", "remove r1", "start r1"})
		d.Retired, d.Active, d.Generation = true, nil, d.Generation+1
		b.feed.set(d)
		pass(time.Minute)
		d.Retired, d.Deleted, d.Generation = false, true, d.Generation+1
		b.feed.set(d)
		pass(time.Minute)
		same(t, "calls", b.rt.Calls(), []string{"start r1", "remove r1", "start r1", "remove r1", "destroy d1"})
		same(t, "reports", b.feed.told(), []string{"gone", "gone", "gone"})
	})
}

func TestADeploymentThatVanishesLosesItsWorkloadsNotItsData(t *testing.T) {
	run(t, nil, func(b *bench) { b.feed.set(desk("r1", "")) }, func(b *bench) {
		b.feed.drop("d1")
		pass(time.Minute)
		same(t, "calls", b.rt.Calls(), []string{"start r1", "drain r1", "remove r1"})
		same(t, "data", b.rt.HasData("d1"), true)
		b.feed.set(desk("r1", ""))
		pass(time.Second)
		same(t, "route after it came back", b.router.to("desk"), "http://r1.2.test")
	})
}

func TestARestartKeepsWorkloadsAndRoutes(t *testing.T) {
	run(t, nil, func(b *bench) { b.feed.set(desk("r1", "")) }, func(b *bench) {
		b.stop()
		b.rt = b.rt.Restart()
		b.router = &router{routes: map[string]string{}}
		b.begin(t)
		synctest.Wait()
		same(t, "route", b.router.to("desk"), "http://r1.1.test")
		pass(time.Minute)
		same(t, "calls", b.rt.Calls(), []string{"start r1"})
	})
}

func TestErrorsOfTheFeedEndNothing(t *testing.T) {
	run(t, nil, func(b *bench) { b.feed.broken, b.feed.stale = 5, 3 }, func(b *bench) {
		b.feed.set(desk("", "r1"))
		pass(time.Minute)
		same(t, "reports", b.feed.told(), []string{"r1 DEPLOYING", "r1 DEPLOYED"})
	})
}

func TestAnInterruptedCandidateEndsAndTheRouteStays(t *testing.T) {
	run(t, map[string]fake.Script{"r2": {Manual: true}}, func(b *bench) { b.feed.set(desk("r1", "r2")) }, func(b *bench) {
		b.feed.set(desk("r1", ""))
		pass(time.Second)
		same(t, "calls", b.rt.Calls(), []string{"start r1", "start r2", "remove r2"})
		same(t, "route", b.router.to("desk"), "http://r1.1.test")
	})
}
