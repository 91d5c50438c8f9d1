// Package runtimetest is the suite that every slipway.Runtime passes: each sentence of the port's comments is a case.
package runtimetest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
)

// Kind is how a workload of the suite behaves.
type Kind string

// The kinds.
const (
	Good     Kind = "good"     // becomes ready; exits 0 when drained; prints "hello from <revision id>"
	Crashing Kind = "crashing" // prints "boom" and exits 3 before it is ready
	Hopeless Kind = "hopeless" // announces that graph "agent" can never be loaded: "no module named nope"
	Stubborn Kind = "stubborn" // becomes ready; ignores being drained
	Invalid  Kind = "invalid"  // cannot be run at all: Ensure answers CodeInvalid
)

// Harness is one runtime under test, empty at first.
type Harness interface {
	// Runtime returns the runtime; after Restart another one over the same workloads.
	Runtime() slipway.Runtime
	// Workload returns a workload that behaves as kind; every call makes another revision of the named deployment.
	Workload(t *testing.T, deploymentID string, kind Kind) slipway.Workload
	// Restart ends the platform's part and begins it again; the workloads live on. Recover is called by the suite.
	Restart(t *testing.T)
	// Kill ends the process of a workload from outside.
	Kill(t *testing.T, revisionID string)
	// HasData reports whether the deployment's data exists.
	HasData(deploymentID string) bool
}

const patience = 30 * time.Second

// Run runs the suite; open makes a new harness for each case.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	cases := []struct {
		name string
		run  func(t *testing.T, h Harness)
	}{
		{"a workload becomes ready and has an endpoint", becomesReady},
		{"ensure of a running workload does nothing", ensureIdempotent},
		{"nothing is observed of an unknown deployment", observeNothing},
		{"an early exit is seen with code and last lines, and ensure starts again", exitAndAgain},
		{"a hopeless workload says why", hopeless},
		{"what can never run is CodeInvalid", invalid},
		{"drain lets a workload exit", drain},
		{"a stubborn workload drains until its grace is over and remove ends it", stubborn},
		{"drain and remove of an unknown workload are no errors", unknown},
		{"remove ends and forgets a workload, twice", remove},
		{"a workload killed from outside is seen as exited", killed},
		{"destroy removes the data", destroy},
		{"a restart of the platform keeps workloads and their phase", restart},
		{"a workload that ends after a restart is seen as exited", endAfterRestart},
		{"a drained workload stays draining over a restart", drainOverRestart},
		{"deployments do not see each other", apart},
	}
	for _, c := range cases {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			c.run(t, open(t))
		})
	}
}

// Await observes the deployment after each change until ok says yes about the revision; missing ones are zero.
func Await(t *testing.T, rt slipway.Runtime, w slipway.Workload, what string, ok func(slipway.Observed) bool) slipway.Observed {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		o := look(t, rt, w)
		if ok(o) {
			return o
		}
		select {
		case <-rt.Changes():
		case <-ctx.Done():
			t.Fatalf("revision %s is not %s: %+v", w.RevisionID, what, o)
		}
	}
}

// InPhase returns a condition for Await.
func InPhase(p slipway.Phase) func(slipway.Observed) bool {
	return func(o slipway.Observed) bool { return o.Phase == p }
}

func look(t *testing.T, rt slipway.Runtime, w slipway.Workload) slipway.Observed {
	t.Helper()
	all, err := rt.Observe(t.Context(), w.DeploymentID)
	if err != nil {
		t.Fatalf("observe: %v", err)
	}
	for _, o := range all {
		if o.RevisionID == w.RevisionID {
			return o
		}
	}
	return slipway.Observed{}
}

func start(t *testing.T, h Harness, kind Kind) slipway.Workload {
	t.Helper()
	w := h.Workload(t, "d1", kind)
	ensure(t, h, w)
	return w
}

func ensure(t *testing.T, h Harness, w slipway.Workload) {
	t.Helper()
	must(t, "ensure", h.Runtime().Ensure(t.Context(), w))
}

func must(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func becomesReady(t *testing.T, h Harness) {
	w := start(t, h, Good)
	o := Await(t, h.Runtime(), w, "ready", InPhase(slipway.PhaseReady))
	if o.Endpoint == "" || o.StartedAt.IsZero() || o.DeploymentID != "d1" || o.Restarts != 0 || o.Failure != "" {
		t.Errorf("ready workload is %+v", o)
	}
	if !h.HasData("d1") {
		t.Error("a running deployment has no data")
	}
}

func ensureIdempotent(t *testing.T, h Harness) {
	w := start(t, h, Good)
	before := Await(t, h.Runtime(), w, "ready", InPhase(slipway.PhaseReady))
	ensure(t, h, w)
	after := look(t, h.Runtime(), w)
	if after.Endpoint != before.Endpoint || !after.StartedAt.Equal(before.StartedAt) || after.Restarts != 0 || after.Phase != slipway.PhaseReady {
		t.Errorf("after a second ensure: got %+v, want %+v", after, before)
	}
}

func observeNothing(t *testing.T, h Harness) {
	got, err := h.Runtime().Observe(t.Context(), "nobody")
	if err != nil || len(got) != 0 {
		t.Errorf("observe: got %v, %v", got, err)
	}
}

func exitAndAgain(t *testing.T, h Harness) {
	w := start(t, h, Crashing)
	o := Await(t, h.Runtime(), w, "exited", InPhase(slipway.PhaseExited))
	if o.ExitCode != 3 || o.ExitedAt.IsZero() || !slices.Contains(o.LastLines, "boom") {
		t.Errorf("exited workload is %+v", o)
	}
	ensure(t, h, w)
	o = Await(t, h.Runtime(), w, "exited again", func(o slipway.Observed) bool { return o.Phase == slipway.PhaseExited && o.Restarts == 1 })
	if o.ExitCode != 3 {
		t.Errorf("second attempt is %+v", o)
	}
}

func hopeless(t *testing.T, h Harness) {
	w := start(t, h, Hopeless)
	o := Await(t, h.Runtime(), w, "hopeless", func(o slipway.Observed) bool { return o.Failure != "" })
	if o.Phase != slipway.PhaseStarting || !strings.Contains(o.Failure, "no module named nope") || !strings.Contains(o.Failure, `"agent"`) {
		t.Errorf("hopeless workload is %+v", o)
	}
}

func invalid(t *testing.T, h Harness) {
	w := h.Workload(t, "d1", Invalid)
	err := h.Runtime().Ensure(t.Context(), w)
	if got := slipway.ErrorCode(err); got != slipway.CodeInvalid {
		t.Errorf("ensure: got %v (code %s), want code invalid", err, got)
	}
	if o := look(t, h.Runtime(), w); o.RevisionID != "" {
		t.Errorf("observed %+v of a workload that was refused", o)
	}
}

func drain(t *testing.T, h Harness) {
	w := start(t, h, Good)
	Await(t, h.Runtime(), w, "ready", InPhase(slipway.PhaseReady))
	must(t, "drain", h.Runtime().Drain(t.Context(), "d1", w.RevisionID))
	must(t, "drain again", h.Runtime().Drain(t.Context(), "d1", w.RevisionID))
	o := Await(t, h.Runtime(), w, "exited", InPhase(slipway.PhaseExited))
	if o.ExitCode != 0 {
		t.Errorf("drained workload exited with %d, want 0", o.ExitCode)
	}
	must(t, "drain of an exited one", h.Runtime().Drain(t.Context(), "d1", w.RevisionID))
}

func stubborn(t *testing.T, h Harness) {
	w := start(t, h, Stubborn)
	Await(t, h.Runtime(), w, "ready", InPhase(slipway.PhaseReady))
	must(t, "drain", h.Runtime().Drain(t.Context(), "d1", w.RevisionID))
	o := look(t, h.Runtime(), w)
	if o.Phase != slipway.PhaseDraining || !o.DrainUntil.After(o.StartedAt) {
		t.Errorf("drained workload is %+v", o)
	}
	must(t, "remove", h.Runtime().Remove(t.Context(), "d1", w.RevisionID))
	if o := look(t, h.Runtime(), w); o.RevisionID != "" {
		t.Errorf("removed workload is observed: %+v", o)
	}
}

func unknown(t *testing.T, h Harness) {
	must(t, "drain", h.Runtime().Drain(t.Context(), "d1", "nobody"))
	must(t, "remove", h.Runtime().Remove(t.Context(), "d1", "nobody"))
}

func remove(t *testing.T, h Harness) {
	w := start(t, h, Good)
	Await(t, h.Runtime(), w, "ready", InPhase(slipway.PhaseReady))
	must(t, "remove", h.Runtime().Remove(t.Context(), "d1", w.RevisionID))
	must(t, "remove again", h.Runtime().Remove(t.Context(), "d1", w.RevisionID))
	if o := look(t, h.Runtime(), w); o.RevisionID != "" {
		t.Errorf("removed workload is observed: %+v", o)
	}
}

func killed(t *testing.T, h Harness) {
	w := start(t, h, Good)
	Await(t, h.Runtime(), w, "ready", InPhase(slipway.PhaseReady))
	h.Kill(t, w.RevisionID)
	o := Await(t, h.Runtime(), w, "exited", InPhase(slipway.PhaseExited))
	if o.ExitCode != -1 {
		t.Errorf("exit code of a killed workload: got %d, want -1", o.ExitCode)
	}
	ensure(t, h, w)
	Await(t, h.Runtime(), w, "ready again", InPhase(slipway.PhaseReady))
}

func destroy(t *testing.T, h Harness) {
	w := start(t, h, Good)
	Await(t, h.Runtime(), w, "ready", InPhase(slipway.PhaseReady))
	must(t, "remove", h.Runtime().Remove(t.Context(), "d1", w.RevisionID))
	if !h.HasData("d1") {
		t.Error("remove took the data")
	}
	must(t, "destroy", h.Runtime().Destroy(t.Context(), "d1"))
	must(t, "destroy again", h.Runtime().Destroy(t.Context(), "d1"))
	if h.HasData("d1") {
		t.Error("destroy left the data")
	}
}

func restart(t *testing.T, h Harness) {
	w := start(t, h, Good)
	before := Await(t, h.Runtime(), w, "ready", InPhase(slipway.PhaseReady))
	h.Restart(t)
	found, err := h.Runtime().Recover(t.Context())
	must(t, "recover", err)
	if len(found) != 1 || found[0].Phase != slipway.PhaseReady || found[0].Endpoint != before.Endpoint || !found[0].StartedAt.Equal(before.StartedAt) {
		t.Fatalf("recovered %+v, want %+v", found, before)
	}
	ensure(t, h, w)
	if o := look(t, h.Runtime(), w); o.Endpoint != before.Endpoint || o.Restarts != 0 {
		t.Errorf("ensure after recover restarted: %+v", o)
	}
}

func endAfterRestart(t *testing.T, h Harness) {
	w := start(t, h, Good)
	Await(t, h.Runtime(), w, "ready", InPhase(slipway.PhaseReady))
	h.Restart(t)
	_, err := h.Runtime().Recover(t.Context())
	must(t, "recover", err)
	h.Kill(t, w.RevisionID)
	o := Await(t, h.Runtime(), w, "exited", InPhase(slipway.PhaseExited))
	if o.ExitCode != -1 || o.ExitedAt.IsZero() {
		t.Errorf("workload that ended is %+v", o)
	}
}

func drainOverRestart(t *testing.T, h Harness) {
	w := start(t, h, Stubborn)
	Await(t, h.Runtime(), w, "ready", InPhase(slipway.PhaseReady))
	must(t, "drain", h.Runtime().Drain(t.Context(), "d1", w.RevisionID))
	before := look(t, h.Runtime(), w)
	h.Restart(t)
	found, err := h.Runtime().Recover(t.Context())
	must(t, "recover", err)
	if len(found) != 1 || found[0].Phase != slipway.PhaseDraining || !found[0].DrainUntil.Equal(before.DrainUntil) {
		t.Errorf("recovered %+v, want %+v", found, before)
	}
	must(t, "remove", h.Runtime().Remove(t.Context(), "d1", w.RevisionID))
}

func apart(t *testing.T, h Harness) {
	one, two := h.Workload(t, "d1", Good), h.Workload(t, "d2", Good)
	ensure(t, h, one)
	ensure(t, h, two)
	must(t, "remove in the wrong deployment", h.Runtime().Remove(t.Context(), "d1", two.RevisionID))
	Await(t, h.Runtime(), two, "ready", InPhase(slipway.PhaseReady))
	all, err := h.Runtime().Observe(t.Context(), "d1")
	if err != nil || len(all) != 1 || all[0].RevisionID != one.RevisionID {
		t.Errorf("observe d1: got %+v, %v", all, err)
	}
}
