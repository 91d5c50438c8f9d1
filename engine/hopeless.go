package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/slipway-dev/slipway/agent"
)

// hopelessAfter is how often in a row workers of a language may fail to start, before one has ever come up here, until
// their runs are ended: something that goes by itself has had the time to.
const hopelessAfter = 5

// hopelessBatch is how many hopeless runs are ended at once.
const hopelessBatch = 100

// lookForHopeless is endHopeless as a loop calls it.
func (e *Engine) lookForHopeless(ctx context.Context) (time.Duration, error) {
	return e.cfg.RescueEvery, e.endHopeless(ctx)
}

// endHopeless ends pending runs that no server of the deployment will ever take, with the reason as their error: those of
// a graph that the revision no longer has, that cannot be loaded, or whose worker does not start.
func (e *Engine) endHopeless(ctx context.Context) error {
	graphs, err := e.store.PendingGraphs(ctx)
	if err != nil {
		return fmt.Errorf("look for the graphs of waiting runs: %w", err)
	}
	for _, id := range graphs {
		reason := e.hopeless(id)
		if reason == "" {
			continue
		}
		if err := e.endAll(ctx, id, reason); err != nil {
			return err
		}
	}
	return nil
}

// hopeless says why nobody will ever run a graph; "" while somebody may.
func (e *Engine) hopeless(graphID string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.draining || e.pick(graphID) != nil {
		return ""
	}
	for _, graphs := range e.peers {
		if graphs == nil || slices.Contains(graphs, graphID) { // nil = it has not said yet
			return ""
		}
	}
	return e.whyNot(graphID)
}

// whyNot says why no worker of this server will ever run a graph; called with mu held.
func (e *Engine) whyNot(graphID string) string {
	g, known := e.cfg.Graphs[graphID]
	switch {
	case !known:
		return fmt.Sprintf("graph %q is not part of the deployment's revision any more; deploy a revision that has it and start the run again", graphID)
	case e.unable(graphID) != "":
		return fmt.Sprintf("graph %q cannot be loaded: %s", graphID, e.unable(graphID))
	case e.stillborn[string(g.Language)] >= hopelessAfter:
		return fmt.Sprintf("the %s worker of graph %q does not start: %s", g.Language, graphID, e.broken[string(g.Language)])
	}
	return ""
}

// endAll ends the due pending runs of a graph.
func (e *Engine) endAll(ctx context.Context, graphID, reason string) error {
	for {
		runs, _, err := e.store.Claim(ctx, e.cfg.Instance, []string{graphID}, hopelessBatch, e.clock())
		if err != nil {
			return fmt.Errorf("take hopeless runs: %w", err)
		}
		for _, r := range runs {
			f := agent.Finish{Fence: fenceOf(r), Status: agent.RunError, Failure: &agent.Failure{Error: "GraphUnavailable", Message: reason}, Now: e.clock()}
			done, err := e.store.Finish(ctx, f)
			if err != nil {
				return fmt.Errorf("end run %s: %w", r.ID, err)
			}
			e.log.Warn("run ended because nobody can run its graph", "run_id", r.ID, "graph_id", graphID, "reason", reason)
			e.settleRemote(done, r)
		}
		if len(runs) == 0 {
			return nil
		}
	}
}

// served are the graphs that this server runs or may come to run.
func (e *Engine) served() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	graphs := []string{}
	for _, id := range slices.Sorted(maps.Keys(e.cfg.Graphs)) {
		if e.pick(id) != nil || e.whyNot(id) == "" {
			graphs = append(graphs, id)
		}
	}
	return graphs
}

// introduce tells the other servers that this one is here and what it runs.
func (e *Engine) introduce(topic string) {
	e.say(topic, note{Graphs: e.served(), Index: e.cfg.indexName()})
}
