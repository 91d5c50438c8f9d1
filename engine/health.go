package engine

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

// Health looks at the database and at the workers; it never waits for a worker.
func (e *Engine) Health(ctx context.Context) Health {
	h := Health{Database: "ok"}
	if _, err := e.store.CountAssistants(ctx, agent.AssistantQuery{}); err != nil {
		h.Database = err.Error()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	h.Failures, h.Parts = maps.Clone(e.failures), e.partFailures()
	h.Workers = e.workersHealth(h)
	return h
}

// workersHealth is called with mu held.
func (e *Engine) workersHealth(h Health) string {
	missing := e.partsMissing()
	for id := range e.cfg.Graphs {
		missing = missing || e.pick(id) == nil
	}
	switch {
	case len(h.Failures) > 0:
		return "graphs cannot be loaded: " + strings.Join(slices.Sorted(maps.Keys(h.Failures)), ", ")
	case len(h.Parts) > 0:
		return strings.Join(slices.Sorted(maps.Keys(h.Parts)), ", ") + " cannot be loaded"
	case !missing:
		return "ok"
	case len(e.broken) > 0:
		return "workers do not start: " + e.brokenText()
	}
	return "starting"
}

func (e *Engine) brokenText() string {
	var parts []string
	for _, l := range slices.Sorted(maps.Keys(e.broken)) {
		parts = append(parts, l+": "+e.broken[l])
	}
	return strings.Join(parts, "; ")
}

// Info describes the server (reference 9).
func (e *Engine) Info() Info {
	i := Info{Version: e.cfg.Version, RevisionID: e.cfg.RevisionID, GraphIDs: slices.Sorted(maps.Keys(e.cfg.Graphs))}
	python, node := false, false
	for _, g := range e.cfg.Graphs {
		python = python || g.Language == slipway.Python
		node = node || g.Language == slipway.Node
	}
	i.Context = map[[2]bool]string{{true, false}: "py", {false, true}: "js", {true, true}: "both"}[[2]bool{python, node}]
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.pool {
		i.WorkersAvailable += s.free
		version := s.info.Versions["langgraph"]
		if version == "" {
			continue
		}
		if s.info.Language == string(slipway.Python) {
			i.LanggraphPython = &version
		} else {
			i.LanggraphNode = &version
		}
	}
	return i
}
