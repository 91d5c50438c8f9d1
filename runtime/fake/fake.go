// Package fake is a slipway.Runtime without processes, scripted by tests. It passes runtime/runtimetest.
package fake

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/runtime/change"
)

// Script says what becomes of a workload after each start.
type Script struct {
	Manual   bool     // stay starting until Ready, Fail or Exit is called
	Failure  string   // never becomes ready, for this reason
	ExitCode int      // exits with it before it is ready, if not 0
	Lines    []string // printed at each start
	Stubborn bool     // does not exit when drained
	Endpoint string   // "" = made up
}

// Runtime is the fake. What it ran survives Restart, as processes survive the platform.
type Runtime struct {
	*world
	changes *change.Queue
}

var _ slipway.Runtime = (*Runtime)(nil)

type world struct {
	clock slipway.Clock

	mu        sync.Mutex
	scripts   map[string]Script
	workloads map[string]*slipway.Observed
	starts    map[string]int
	calls     []string
	data      map[string]bool
	errs      map[string]error
	current   *Runtime
}

// New returns a Runtime in which nothing runs; scripts are by revision id.
func New(clock slipway.Clock, scripts map[string]Script) *Runtime {
	w := &world{
		clock: clock, scripts: maps.Clone(scripts), workloads: map[string]*slipway.Observed{}, starts: map[string]int{},
		data: map[string]bool{}, errs: map[string]error{},
	}
	if w.scripts == nil {
		w.scripts = map[string]Script{}
	}
	w.current = &Runtime{world: w, changes: change.NewQueue()}
	return w.current
}

// Restart returns what a platform that starts again has: a new Runtime over the same workloads.
func (r *Runtime) Restart() *Runtime {
	r.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current = &Runtime{world: r.world, changes: change.NewQueue()}
	return r.current
}

// Close ends the announcement of changes.
func (r *Runtime) Close() { r.changes.Close() }

// SetScript replaces the script of a revision for its next starts.
func (r *Runtime) SetScript(revisionID string, s Script) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.scripts[revisionID] = s
}

// FailEnsure makes Ensure of the revision return err until it is called with nil.
func (r *Runtime) FailEnsure(revisionID string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs[revisionID] = err
}

// Ready makes a starting workload ready.
func (r *Runtime) Ready(revisionID string) {
	r.change(revisionID, func(o *slipway.Observed) { o.Phase, o.Probe = slipway.PhaseReady, "" })
}

// Fail makes a starting workload hopeless.
func (r *Runtime) Fail(revisionID, why string) {
	r.change(revisionID, func(o *slipway.Observed) { o.Failure = why })
}

// Exit ends a workload's process.
func (r *Runtime) Exit(revisionID string, code int, lines ...string) {
	r.change(revisionID, func(o *slipway.Observed) { r.exit(o, code, lines) })
}

// Starts returns how often the revision was started.
func (r *Runtime) Starts(revisionID string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.starts[revisionID]
}

// Calls returns what had an effect so far, e.g. "start r1", "drain r1", "remove r1", "destroy d1".
func (r *Runtime) Calls() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

// HasData reports whether the deployment's data is still there.
func (r *Runtime) HasData(deploymentID string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.data[deploymentID]
}

func (r *Runtime) exit(o *slipway.Observed, code int, lines []string) {
	o.Phase, o.ExitCode, o.ExitedAt, o.Probe = slipway.PhaseExited, code, r.clock(), ""
	o.LastLines = append(slices.Clone(o.LastLines), lines...)
	o.LastLines = o.LastLines[max(0, len(o.LastLines)-slipway.MaxLastLines):]
}

// change applies fn to a workload that has a process and announces it.
func (r *Runtime) change(revisionID string, fn func(*slipway.Observed)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o := r.workloads[revisionID]; o != nil && o.Phase != slipway.PhaseExited {
		fn(o)
		r.current.changes.Put(o.DeploymentID)
	}
}

// Ensure implements slipway.Runtime.
func (r *Runtime) Ensure(_ context.Context, w slipway.Workload) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.errs[w.RevisionID]; err != nil {
		return err
	}
	old := r.workloads[w.RevisionID]
	if old != nil && old.Phase != slipway.PhaseExited {
		return nil
	}
	r.starts[w.RevisionID]++
	r.calls = append(r.calls, "start "+w.RevisionID)
	r.data[w.DeploymentID] = true
	r.workloads[w.RevisionID] = r.begin(w, old)
	r.current.changes.Put(w.DeploymentID)
	return nil
}

func (r *Runtime) begin(w slipway.Workload, old *slipway.Observed) *slipway.Observed {
	s := r.scripts[w.RevisionID]
	o := &slipway.Observed{
		DeploymentID: w.DeploymentID, RevisionID: w.RevisionID, Phase: slipway.PhaseStarting, StartedAt: r.clock(),
		LastLines: slices.Clone(s.Lines), Failure: s.Failure, Probe: "not listening yet", Endpoint: s.Endpoint,
	}
	if o.Endpoint == "" {
		o.Endpoint = fmt.Sprintf("http://%s.%d.test", w.RevisionID, r.starts[w.RevisionID])
	}
	if old != nil {
		o.Restarts = old.Restarts + 1
	}
	switch {
	case s.ExitCode != 0:
		r.exit(o, s.ExitCode, nil)
	case s.Failure == "" && !s.Manual:
		o.Phase, o.Probe = slipway.PhaseReady, ""
	}
	return o
}

// Observe implements slipway.Runtime.
func (r *Runtime) Observe(_ context.Context, deploymentID string) ([]slipway.Observed, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []slipway.Observed
	for _, o := range r.workloads {
		if o.DeploymentID == deploymentID {
			out = append(out, *o)
		}
	}
	return out, nil
}

// Drain implements slipway.Runtime.
func (r *Runtime) Drain(_ context.Context, deploymentID, revisionID string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.workloads[revisionID]
	if o == nil || o.DeploymentID != deploymentID || o.Phase == slipway.PhaseExited || o.Phase == slipway.PhaseDraining {
		return nil
	}
	r.calls = append(r.calls, "drain "+revisionID)
	o.Phase, o.DrainUntil = slipway.PhaseDraining, r.clock().Add(3*time.Minute)
	if !r.scripts[revisionID].Stubborn {
		r.exit(o, 0, nil)
	}
	r.current.changes.Put(deploymentID)
	return nil
}

// Remove implements slipway.Runtime.
func (r *Runtime) Remove(_ context.Context, deploymentID, revisionID string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o := r.workloads[revisionID]; o != nil && o.DeploymentID == deploymentID {
		r.calls = append(r.calls, "remove "+revisionID)
		delete(r.workloads, revisionID)
		r.current.changes.Put(deploymentID)
	}
	return nil
}

// Destroy implements slipway.Runtime.
func (r *Runtime) Destroy(_ context.Context, deploymentID string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.data[deploymentID] {
		r.calls = append(r.calls, "destroy "+deploymentID)
		delete(r.data, deploymentID)
	}
	return nil
}

// Recover implements slipway.Runtime.
func (r *Runtime) Recover(context.Context) ([]slipway.Observed, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []slipway.Observed
	for _, o := range r.workloads {
		out = append(out, *o)
	}
	return out, nil
}

// Changes implements slipway.Runtime.
func (r *Runtime) Changes() <-chan string { return r.changes.Out() }
