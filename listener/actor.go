package listener

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/plan"
)

var errReread = errors.New("the desired state is to be read again")

// actor does the work on one deployment, one pass at a time. What it remembers between passes are acknowledged facts
// only; the plan itself is made anew each time.
type actor struct {
	l    *Listener
	id   string
	log  *slog.Logger
	kick chan struct{}

	mu    sync.Mutex
	wish  *slipway.DesiredDeployment // newest desired state; nil = none yet
	fresh bool                       // wish was not looked at yet

	reported map[string]slipway.RevisionStatus // accepted by the control service, by revision
	refused  map[string]slipway.Observed       // workloads the runtime would not start
	gone     int64                             // the generation for which Gone was reported
	route    plan.Step                         // the last switch
	routed   time.Time                         // when it was made
	retry    time.Duration
}

func newActor(l *Listener, id string) *actor {
	return &actor{
		l: l, id: id, kick: make(chan struct{}, 1), log: l.log.With("deployment_id", id), retry: l.cfg.RetryMin, gone: -1,
		reported: map[string]slipway.RevisionStatus{}, refused: map[string]slipway.Observed{},
	}
}

func (a *actor) want(d slipway.DesiredDeployment) {
	a.mu.Lock()
	a.wish, a.fresh = &d, true
	a.mu.Unlock()
	a.wake()
}

func (a *actor) wake() {
	select {
	case a.kick <- struct{}{}:
	default:
	}
}

func (a *actor) pending() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.fresh
}

func (a *actor) current() *slipway.DesiredDeployment {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fresh = false
	return a.wish
}

// run makes a pass whenever there is a reason to, until ctx ends or nothing is left of the deployment.
func (a *actor) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.kick:
		case <-timer.C:
		}
		next, finished := a.pass(ctx)
		if finished && a.l.retire(a) {
			return
		}
		timer.Stop()
		if next > 0 {
			timer.Reset(next)
		}
	}
}

// pass looks at the world once and takes the steps that are due. It returns when to look again (0 = when something
// changes) and whether the deployment is no longer wanted and nothing is left of it.
func (a *actor) pass(ctx context.Context) (next time.Duration, finished bool) {
	wish := a.current()
	if wish == nil || ((wish.Deleted || wish.Retired) && a.gone == wish.Generation) {
		return 0, wish != nil && wish.Name == ""
	}
	observed, err := a.observe(ctx)
	if err != nil {
		return a.later(ctx, "workloads not observed", err), false
	}
	desired := a.overlay(*wish)
	steps := plan.Next(desired, observed, a.l.now(), a.l.cfg.Plan)
	for _, s := range steps {
		wait, err := a.do(ctx, desired, s)
		if err != nil {
			return a.later(ctx, "step failed", fmt.Errorf("%s %s: %w", s.Verb, s.RevisionID, err)), false
		}
		if wait > 0 && (next == 0 || wait < next) {
			next = wait
		}
	}
	a.retry = a.l.cfg.RetryMin
	if desired.Name == "" && len(observed) == 0 { // not in the desired state any more
		a.l.router.Unroute(a.id)
		return 0, true
	}
	return next, false
}

// later logs err and returns when to try again.
func (a *actor) later(ctx context.Context, what string, err error) time.Duration {
	if ctx.Err() != nil {
		return 0
	}
	if slipway.ErrorCode(err) == slipway.CodeStale {
		a.log.Info("report refused as stale, reading the desired state again")
		a.l.rereadDesired()
	} else {
		a.log.Warn(what, "error", err.Error(), "retry_in", a.retry.String())
	}
	wait := a.retry
	a.retry = min(2*a.retry, a.l.cfg.RetryMax)
	return wait
}

// observe asks the runtime and adds what it refused to start, as if that had exited.
func (a *actor) observe(ctx context.Context) ([]slipway.Observed, error) {
	observed, err := a.l.runtime.Observe(ctx, a.id)
	if err != nil {
		return nil, fmt.Errorf("observe: %w", err)
	}
	for i, o := range observed {
		r, ok := a.refused[o.RevisionID]
		if ok && o.Phase == slipway.PhaseExited && r.ExitedAt.After(o.ExitedAt) {
			r.Restarts = max(r.Restarts, o.Restarts)
			observed[i] = r
		} else if ok {
			delete(a.refused, o.RevisionID)
		}
	}
	return append(observed, a.unseen(observed)...), nil
}

// unseen returns the refused workloads of which the runtime knows nothing.
func (a *actor) unseen(observed []slipway.Observed) []slipway.Observed {
	var out []slipway.Observed
	for id, o := range a.refused {
		if !slices.ContainsFunc(observed, func(x slipway.Observed) bool { return x.RevisionID == id }) {
			out = append(out, o)
		}
	}
	return out
}

// overlay lays acknowledged reports over a desired state that may be older than they are: what was accepted as DEPLOYED
// is active, what was accepted as DEPLOY_FAILED is no candidate.
func (a *actor) overlay(d slipway.DesiredDeployment) slipway.DesiredDeployment {
	if d.Candidate == nil {
		clear(a.reported)
		return d
	}
	switch a.reported[d.Candidate.RevisionID] {
	case slipway.Deployed:
		d.Active, d.Candidate = d.Candidate, nil
	case slipway.DeployFailed:
		d.Candidate = nil
	}
	return d
}

// do takes one step and returns after which time to look again, 0 = no wish.
func (a *actor) do(ctx context.Context, d slipway.DesiredDeployment, s plan.Step) (time.Duration, error) {
	switch s.Verb {
	case plan.Switch:
		a.switchTo(d, s)
	case plan.Unroute:
		a.l.router.Unroute(a.id)
		a.route = plan.Step{}
	case plan.Ensure:
		return a.ensure(ctx, d, s)
	case plan.Drain:
		if left := a.l.cfg.Settle - a.l.now().Sub(a.routed); !a.routed.IsZero() && left > 0 {
			return left, nil
		}
		return 0, a.l.runtime.Drain(ctx, a.id, s.RevisionID)
	case plan.Remove:
		delete(a.refused, s.RevisionID)
		return 0, a.l.runtime.Remove(ctx, a.id, s.RevisionID)
	case plan.Destroy:
		return 0, a.l.runtime.Destroy(ctx, a.id)
	case plan.Report:
		return a.report(ctx, d, s)
	case plan.Gone:
		return 0, a.reportGone(ctx, d)
	case plan.Wait:
		return max(s.Until.Sub(a.l.now()), time.Millisecond), nil
	}
	return 0, nil
}

// switchTo makes the route what the step says, unless it is that already.
func (a *actor) switchTo(d slipway.DesiredDeployment, s plan.Step) {
	if d.Name == "" || (a.route == s && !a.routed.IsZero()) {
		return
	}
	a.l.router.Route(d.Route(), a.id, s.RevisionID, s.Endpoint)
	a.route, a.routed = s, a.l.now()
	a.log.Info("route changed", "deployment", d.Name, "revision_id", s.RevisionID, "endpoint", s.Endpoint)
}

// ensure starts a workload. That it cannot be started is no error of the pass: the planner sees it as an exit, so that
// a candidate fails after some attempts and the active revision is tried again with back-off.
func (a *actor) ensure(ctx context.Context, d slipway.DesiredDeployment, s plan.Step) (time.Duration, error) {
	w := slipway.Workload{DeploymentID: a.id, TenantID: d.TenantID, Name: d.Name, Blueprint: *s.Blueprint}
	err := a.start(ctx, w)
	switch {
	case err == nil:
		delete(a.refused, s.RevisionID)
		return 0, nil
	case ctx.Err() != nil:
		return 0, err
	}
	a.log.Warn("workload not started", "revision_id", s.RevisionID, "error", err.Error())
	o, again := a.refused[s.RevisionID]
	if again {
		o.Restarts++
	}
	o.DeploymentID, o.RevisionID, o.Phase = a.id, s.RevisionID, slipway.PhaseExited
	o.ExitedAt, o.ExitCode, o.Probe = a.l.now(), -1, "the agent server could not be started: "+err.Error()
	if slipway.ErrorCode(err) == slipway.CodeInvalid {
		o.Failure = "the agent server could not be started: " + err.Error()
	}
	a.refused[s.RevisionID] = o
	if !again {
		a.tell(ctx, o)
	}
	return time.Millisecond, nil
}

// start brings the workload up. One whose blueprint is broken is left as it is if it runs, else refused.
func (a *actor) start(ctx context.Context, w slipway.Workload) error {
	if w.Broken == "" {
		return a.l.runtime.Ensure(ctx, w)
	}
	observed, err := a.l.runtime.Observe(ctx, a.id)
	if err != nil {
		return fmt.Errorf("observe: %w", err)
	}
	for _, o := range observed {
		if o.RevisionID == w.RevisionID && o.Phase != slipway.PhaseExited {
			return nil
		}
	}
	return slipway.Errorf(slipway.CodeInvalid, "%s", w.Broken)
}

// tell puts into the deploy log why a workload was not started: for an active revision, which keeps its status, that is
// where a user reads it.
func (a *actor) tell(ctx context.Context, o slipway.Observed) {
	line := slipway.LogEntry{
		DeploymentID: a.id, RevisionID: o.RevisionID, Kind: slipway.LogDeploy, At: o.ExitedAt, Level: "ERROR", Message: o.Probe,
	}
	if err := a.l.feed.AppendLogs(ctx, []slipway.LogEntry{line}); err != nil {
		a.log.Warn("log line not delivered", "error", err.Error())
	}
}

// report tells the control service what it does not know yet.
func (a *actor) report(ctx context.Context, d slipway.DesiredDeployment, s plan.Step) (time.Duration, error) {
	if a.reported[s.RevisionID] == s.Status {
		return 0, nil
	}
	r := slipway.Report{
		DeploymentID: a.id, Generation: d.Generation, RevisionID: s.RevisionID, Status: s.Status, Reason: s.Reason,
	}
	if err := a.l.feed.Report(ctx, r); err != nil {
		return 0, err
	}
	a.reported[s.RevisionID] = s.Status
	a.log.Info("revision reported", "deployment", d.Name, "revision_id", s.RevisionID, "status", string(s.Status), "reason", s.Reason)
	return time.Millisecond, nil // the world is another one now: look again at once
}

func (a *actor) reportGone(ctx context.Context, d slipway.DesiredDeployment) error {
	r := slipway.Report{DeploymentID: a.id, Generation: d.Generation, Gone: true}
	if err := a.l.feed.Report(ctx, r); err != nil {
		return err
	}
	a.gone = d.Generation
	a.log.Info("deployment gone", "deployment", d.Name, "data_kept", d.Retired)
	return nil
}
