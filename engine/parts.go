package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

// place is a part in the workers of one language.
type place struct {
	language string
	part     agent.PartName
}

// noteParts remembers which parts a new worker could not load and says whether its runs need one of them. It is called with
// mu held.
func (e *Engine) noteParts(info agent.WorkerInfo) (crippled bool) {
	if app := info.Loaded(agent.PartApp); app != nil {
		e.app.Store(app)
	}
	for name, part := range info.Parts {
		at := place{info.Language, name}
		if part == nil || part.Failure == nil {
			delete(e.faults, at)
			continue
		}
		e.faults[at] = part.Failure.Message
		crippled = crippled || name.KeepsRuns()
	}
	return crippled
}

// hasPart says whether the deployment has a part.
func (e *Engine) hasPart(name agent.PartName) bool {
	for _, names := range e.cfg.Parts {
		if slices.Contains(names, name) {
			return true
		}
	}
	return false
}

// partWorker returns a worker that has loaded a part, waiting a while for one; CodeUnavailable without.
func (e *Engine) partWorker(ctx context.Context, name agent.PartName) (agent.Worker, error) {
	return e.awaitWorker(ctx, name.Key(), func() (*seat, string) { return e.pickPart(name), e.faultOf(name) })
}

// awaitWorker waits a while for the worker that pick returns, or for the reason why there is none; pick is called with mu
// held. what is what the worker is wanted for.
func (e *Engine) awaitWorker(ctx context.Context, what string, pick func() (*seat, string)) (agent.Worker, error) {
	late := time.NewTimer(workerPatience)
	defer late.Stop()
	for {
		e.mu.Lock()
		s, failure := pick()
		arrival := e.arrival
		e.mu.Unlock()
		switch {
		case s != nil:
			return s.w, nil
		case failure != "":
			return nil, slipway.Errorf(slipway.CodeUnavailable, "%s cannot be loaded: %s", what, failure)
		}
		select {
		case <-arrival:
		case <-late.C:
			return nil, slipway.Errorf(slipway.CodeUnavailable, "no worker is ready for %s; try again shortly", what)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// pickPart returns the worker with the most free slots that has loaded a part; called with mu held.
func (e *Engine) pickPart(name agent.PartName) *seat {
	var best *seat
	for _, s := range e.pool {
		if s.info.Loaded(name) != nil && (best == nil || s.free > best.free) {
			best = s
		}
	}
	return best
}

// faultOf says why no worker can load a part, "" if nothing is known against it; called with mu held.
func (e *Engine) faultOf(name agent.PartName) string {
	for at, fault := range e.faults {
		if at.part == name {
			return fault
		}
	}
	return ""
}

// unable says why a graph cannot run: itself, or a part that its runs need, cannot be loaded. Called with mu held.
func (e *Engine) unable(graph string) string {
	if failure := e.failures[graph]; failure != "" {
		return failure
	}
	for at, fault := range e.faults {
		if at.language == string(e.cfg.Graphs[graph].Language) && at.part.KeepsRuns() {
			return fmt.Sprintf("%s cannot be loaded: %s", at.part.Key(), fault)
		}
	}
	return ""
}

// partsMissing says whether a part is still to be loaded by the workers of its language; called with mu held.
func (e *Engine) partsMissing() bool {
	for language, names := range e.cfg.Parts {
		for _, name := range names {
			if !e.partUp(string(language), name) {
				return true
			}
		}
	}
	return false
}

func (e *Engine) partUp(language string, name agent.PartName) bool {
	for _, s := range e.pool {
		if s.info.Language == language && s.info.Loaded(name) != nil {
			return true
		}
	}
	return false
}

// partFailures are the configuration's keys of the parts that cannot be loaded; called with mu held.
func (e *Engine) partFailures() map[string]string {
	all := map[string]string{}
	for at, fault := range e.faults {
		all[at.part.Key()] = fault
	}
	return all
}
