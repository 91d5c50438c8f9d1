package engine_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/worker/fake"
)

// waiting makes runs of graphs that no server here serves yet, and stops the one that took them.
func waiting(w *world, graphs ...string) (runs []agent.Run) {
	w.t.Helper()
	known := map[string]fake.Graph{}
	for _, g := range graphs {
		known[g] = echo
	}
	s := w.start("before", 0, known)
	for _, g := range graphs {
		runs = append(runs, s.create(request(s.thread(), g, `{}`)))
	}
	s.stop()
	return runs
}

func failure(t *testing.T, s *server, r agent.Run) string {
	t.Helper()
	res := s.wait(r)
	if res.Outcome != agent.RunError || res.Run.Failure == nil {
		t.Fatalf("got %s (%+v), want an error", res.Outcome, res.Run.Failure)
	}
	return res.Run.Failure.Message
}

func TestARunOfAGraphThatIsGoneEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	runs := waiting(w, "agent", "old")
	s := w.start("after", 1, map[string]fake.Graph{"agent": echo})
	if got := failure(t, s, runs[1]); !strings.Contains(got, `"old" is not part of the deployment's revision`) {
		t.Errorf("got %s", got)
	}
	if res := s.wait(runs[0]); res.Outcome != agent.RunSuccess {
		t.Errorf("the run of the other graph: got %s", res.Outcome)
	}
}

func TestARunWaitsForAServerThatHasItsGraph(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := newGate()
	both := map[string]fake.Graph{"agent": echo, "old": g.graph}
	old := w.start("old", 1, both)
	busy := old.create(request(old.thread(), "old", `{}`))
	g.await(t)
	waits := old.create(request(old.thread(), "old", `{}`)) // for the only slot
	s := w.start("new", 1, map[string]fake.Graph{"agent": echo})
	next := s.create(request(s.thread(), "agent", `{}`))
	s.wait(next)
	if r, err := s.Run(t.Context(), "", waits.ID); err != nil || r.Status != agent.RunPending {
		t.Errorf("while the old server lives: got %s (%v), want it to wait", r.Status, err)
	}
	close(g.let)
	old.wait(busy)
	if res := s.wait(waits); res.Outcome != agent.RunSuccess {
		t.Errorf("got %s, want the old server to have run it", res.Outcome)
	}
}

func TestARunOfAWorkerThatNeverStartsEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := waiting(w, "agent")[0]
	s := w.start("after", 0, map[string]fake.Graph{"agent": echo})
	for range 4 {
		s.WorkerFailed("node", errors.New("no module langgraph"))
	}
	if r, err := s.Run(t.Context(), "", run.ID); err != nil || r.Status != agent.RunPending {
		t.Errorf("after a few failures: got %s (%v), want it to wait", r.Status, err)
	}
	s.WorkerFailed("node", errors.New("no module langgraph"))
	if got := failure(t, s, run); !strings.Contains(got, "no module langgraph") {
		t.Errorf("got %s", got)
	}
	if got := s.Health(t.Context()).Workers; !strings.Contains(got, "no module langgraph") {
		t.Errorf("health: got %q", got)
	}
}
