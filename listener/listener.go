// Package listener is the reconcile loop of one data plane: it pulls the desired state, compares it with what its runtime
// observes, takes the steps that plan names, and reports. It works over two ports, so the embedded listener of a single
// machine and a remote one are the same code (architecture 1).
package listener

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/plan"
)

// Config are the settings of a Listener. Zero values of the durations mean the defaults named.
type Config struct {
	// Plan are the planner's settings; all zero means plan.Defaults().
	Plan plan.Settings
	// Settle is how long after a switch of routes nothing is drained, so that a request which was just sent to the old
	// revision is read by it before it is told to finish; 500 ms.
	Settle time.Duration
	// RetryMin and RetryMax bound the pauses after errors of the feed or the runtime; 200 ms and 10 s.
	RetryMin, RetryMax time.Duration
}

func (c Config) withDefaults() Config {
	if c.Plan == (plan.Settings{}) {
		c.Plan = plan.Defaults()
	}
	if c.Settle == 0 {
		c.Settle = 500 * time.Millisecond
	}
	if c.RetryMin == 0 {
		c.RetryMin = 200 * time.Millisecond
	}
	if c.RetryMax == 0 {
		c.RetryMax = 10 * time.Second
	}
	return c
}

// Listener reconciles one data plane. The work on one deployment is serial, deployments do not wait for each other, and
// no error ends the loop.
type Listener struct {
	feed    slipway.Feed
	runtime slipway.Runtime
	router  slipway.Router
	cfg     Config
	now     slipway.Clock
	log     *slog.Logger

	mu      sync.Mutex
	actors  map[string]*actor
	orphans map[string]bool // found by Recover, not yet seen in a desired state
	reread  context.CancelFunc

	synced   chan struct{}
	syncOnce sync.Once
}

// New returns a Listener that does nothing until Run.
func New(feed slipway.Feed, rt slipway.Runtime, router slipway.Router, cfg Config, clock slipway.Clock, log *slog.Logger) *Listener {
	return &Listener{
		feed: feed, runtime: rt, router: router, cfg: cfg.withDefaults(), now: clock, log: log,
		actors: map[string]*actor{}, orphans: map[string]bool{}, synced: make(chan struct{}),
	}
}

// Synced is closed once the router knows every deployment of the first desired state. Before that nobody can say that a
// deployment does not exist.
func (l *Listener) Synced() <-chan struct{} { return l.synced }

// Run recovers what the runtime still runs and then reconciles until ctx ends. It returns nil then; workloads live on.
func (l *Listener) Run(ctx context.Context) error {
	if !l.recover(ctx) {
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { l.followFeed(ctx, group); return nil })
	group.Go(func() error { l.followRuntime(ctx); return nil })
	return group.Wait()
}

// recover adopts running workloads before anything else is done; false means ctx ended.
func (l *Listener) recover(ctx context.Context) bool {
	for wait := l.cfg.RetryMin; ; wait = min(2*wait, l.cfg.RetryMax) {
		found, err := l.runtime.Recover(ctx)
		if err == nil {
			for _, o := range found {
				l.orphans[o.DeploymentID] = true
			}
			return true
		}
		l.log.Error("workloads not recovered", "error", err.Error())
		if !pause(ctx, wait) {
			return false
		}
	}
}

// followFeed hands each desired state to the deployments' actors.
func (l *Listener) followFeed(ctx context.Context, group *errgroup.Group) {
	cursor, wait := "", l.cfg.RetryMin
	for ctx.Err() == nil {
		state, err := l.desired(ctx, cursor)
		switch {
		case err == nil:
			cursor, wait = state.Cursor, l.cfg.RetryMin
			l.spread(ctx, group, state)
		case ctx.Err() != nil:
			return
		case l.wantsReread(err):
			cursor = ""
		default:
			l.log.Warn("desired state not read", "error", err.Error())
			pause(ctx, wait)
			cursor, wait = "", min(2*wait, l.cfg.RetryMax)
		}
	}
}

// desired asks the feed; rereadDesired interrupts it.
func (l *Listener) desired(ctx context.Context, cursor string) (slipway.DesiredState, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l.mu.Lock()
	l.reread = func() { cancel(errReread) }
	l.mu.Unlock()
	state, err := l.feed.Desired(ctx, cursor)
	if err != nil && errors.Is(context.Cause(ctx), errReread) {
		return state, errReread
	}
	return state, err
}

// rereadDesired makes the feed loop read the whole desired state again: a report was refused as stale.
func (l *Listener) rereadDesired() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reread != nil {
		l.reread()
	}
}

func (l *Listener) wantsReread(err error) bool { return errors.Is(err, errReread) }

// spread gives every deployment its part of the state. Deployments that are not in it any more, and workloads that
// belong to none, get an empty wish: their workloads end, their data stays.
func (l *Listener) spread(ctx context.Context, group *errgroup.Group, state slipway.DesiredState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	wanted := map[string]bool{}
	for _, d := range state.Deployments {
		wanted[d.DeploymentID] = true
		if l.actors[d.DeploymentID] == nil && !d.Deleted && !d.Retired {
			l.router.Route(d.Route(), d.DeploymentID, "", "")
		}
		l.actorOf(ctx, group, d.DeploymentID).want(d)
	}
	if state.Partial {
		l.abandon(state.Absent)
		return
	}
	l.syncOnce.Do(func() { close(l.synced) })
	for id := range l.orphans {
		if !wanted[id] {
			l.actorOf(ctx, group, id)
		}
		delete(l.orphans, id)
	}
	for id, a := range l.actors {
		if !wanted[id] {
			a.want(slipway.DesiredDeployment{DeploymentID: id})
		}
	}
}

// abandon gives an empty wish to deployments that are no more; l.mu is held.
func (l *Listener) abandon(ids []string) {
	for _, id := range ids {
		if a := l.actors[id]; a != nil {
			a.want(slipway.DesiredDeployment{DeploymentID: id})
		}
	}
}

// actorOf returns the deployment's actor, starting it if there is none; l.mu is held.
func (l *Listener) actorOf(ctx context.Context, group *errgroup.Group, deploymentID string) *actor {
	a := l.actors[deploymentID]
	if a == nil {
		a = newActor(l, deploymentID)
		l.actors[deploymentID] = a
		group.Go(func() error { a.run(ctx); return nil })
	}
	return a
}

// followRuntime wakes the actor of each deployment that changed.
func (l *Listener) followRuntime(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case id := <-l.runtime.Changes():
			l.mu.Lock()
			a := l.actors[id]
			l.mu.Unlock()
			if a != nil {
				a.wake()
			}
		}
	}
}

// retire forgets an actor that has nothing left to do; false means it was given a new wish meanwhile.
func (l *Listener) retire(a *actor) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a.pending() {
		return false
	}
	delete(l.actors, a.id)
	return true
}

// pause reports whether d passed before ctx ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
