package engine_test

import (
	"strings"
	"testing"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/engine"
	"github.com/slipway-dev/slipway/worker/fake"
)

// A deployment is ready only when its parts are loaded; a run never starts where a part that it needs is missing.
func TestAPartThatCannotBeLoadedKeepsTheDeploymentFromBeingReady(t *testing.T) {
	t.Parallel()
	graphs := map[string]fake.Graph{"g": echo}
	s := newWorld(t).start("a", 0, graphs, func(c *engine.Config) {
		c.Parts = map[slipway.Language][]agent.PartName{slipway.Node: {agent.PartCheckpointer, agent.PartAuth}}
	})
	if h := s.Health(t.Context()); h.Workers != "starting" {
		t.Errorf("before a worker: got %+v", h)
	}
	s.pool.Parts = map[agent.PartName]*agent.PartInfo{
		agent.PartCheckpointer: {Failure: &agent.Failure{Error: "E", Message: "no such file"}}, agent.PartAuth: {},
	}
	w := s.pool.Add(4, graphs)
	h := s.Health(t.Context())
	if !strings.Contains(h.Workers, "checkpointer.path") || h.Parts["checkpointer.path"] != "no such file" || len(h.Parts) != 1 || len(h.Failures) != 0 {
		t.Errorf("with a checkpointer that cannot be loaded: got %+v", h)
	}
	run := s.create(request(s.thread(), "g", `{}`))
	if run.Status != agent.RunPending {
		t.Errorf("a run without its checkpointer: got %s, want it to wait", run.Status)
	}
	w.Kill("replaced")
	s.pool.Parts[agent.PartCheckpointer] = &agent.PartInfo{Methods: []string{"aprune"}}
	s.pool.Parts[agent.PartAuth] = nil
	s.pool.Add(4, graphs)
	if got := s.wait(run); got.Outcome != agent.RunSuccess {
		t.Errorf("run: got %+v", got)
	}
	if h := s.Health(t.Context()); h.Workers != "starting" {
		t.Errorf("without auth: got %+v", h)
	}
	s.pool.Parts[agent.PartAuth] = &agent.PartInfo{Authenticates: true}
	s.pool.Add(4, graphs)
	if h := s.Health(t.Context()); h.Workers != "ok" || len(h.Parts) != 0 {
		t.Errorf("with everything: got %+v", h)
	}
}
