package engine

import (
	"context"
	"encoding/json"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

func noAssistant() error { return slipway.Errorf(slipway.CodeNotFound, "Assistant not found") }

// assistant returns an assistant that the user may do this to.
func (g *Guard) assistant(ctx context.Context, action, id string, value map[string]any) (agent.Assistant, verdict, error) {
	id = g.e.assistantID(id)
	value["assistant_id"] = id
	v, err := g.ask(ctx, "assistants", action, value)
	if err != nil {
		return agent.Assistant{}, v, err
	}
	a, err := g.e.Assistant(ctx, id)
	if err == nil && !v.filter.Allows(object(a.Metadata)) {
		err = noAssistant()
	}
	if err != nil {
		return agent.Assistant{}, v, err
	}
	return a, v, nil
}

// Assistant is Engine.Assistant with assistants:read.
func (g *Guard) Assistant(ctx context.Context, id string) (agent.Assistant, error) {
	a, _, err := g.assistant(ctx, "read", id, map[string]any{})
	return a, err
}

// searching is assistants:search, laid over a query.
func (g *Guard) searchingAssistants(ctx context.Context, q agent.AssistantQuery) (agent.AssistantQuery, error) {
	v, err := g.ask(ctx, "assistants", "search", map[string]any{
		"graph_id": text(q.GraphID), "metadata": object(q.Metadata), "limit": q.Limit, "offset": q.Offset,
	})
	q.Metadata, q.Filter = v.over("metadata", q.Metadata), v.filter
	return q, err
}

// Assistants is Engine.Assistants with assistants:search.
func (g *Guard) Assistants(ctx context.Context, q agent.AssistantQuery) ([]agent.Assistant, error) {
	q, err := g.searchingAssistants(ctx, q)
	if err != nil {
		return nil, err
	}
	return g.e.Assistants(ctx, q)
}

// CountAssistants is Engine.CountAssistants with assistants:search.
func (g *Guard) CountAssistants(ctx context.Context, q agent.AssistantQuery) (int, error) {
	q, err := g.searchingAssistants(ctx, q)
	if err != nil {
		return 0, err
	}
	return g.e.CountAssistants(ctx, q)
}

// CreateAssistant is Engine.CreateAssistant with assistants:create.
func (g *Guard) CreateAssistant(ctx context.Context, a agent.Assistant, reuse bool) (agent.Assistant, error) {
	a.ID = or(a.ID, g.e.ids())
	v, err := g.ask(ctx, "assistants", "create", map[string]any{
		"assistant_id": a.ID, "graph_id": a.GraphID, "config": object(a.Config), "context": object(a.Context), "metadata": object(a.Metadata),
		"if_exists": ifExists(reuse), "name": a.Name,
	})
	if err != nil {
		return agent.Assistant{}, err
	}
	a.Metadata, a.Config, a.Context = v.over("metadata", a.Metadata), v.over("config", a.Config), v.over("context", a.Context)
	a.Name = v.name("name", a.Name)
	create := func(reuse bool) (agent.Assistant, error) { return g.e.CreateAssistant(ctx, a, reuse) }
	return reusable(reuse, v.filter, create, func() (agent.Assistant, json.RawMessage, error) {
		found, err := g.e.Assistant(ctx, a.ID)
		return found, object(found.Metadata), err
	})
}

// PatchAssistant is Engine.PatchAssistant with assistants:update.
func (g *Guard) PatchAssistant(ctx context.Context, id string, p agent.AssistantPatch) (agent.Assistant, error) {
	value := map[string]any{"metadata": object(p.Metadata)}
	set(value, "config", p.Config)
	set(value, "context", p.Context)
	for key, given := range map[string]*string{"graph_id": p.GraphID, "name": p.Name, "description": p.Description} {
		if given != nil {
			value[key] = *given
		}
	}
	a, v, err := g.assistant(ctx, "update", id, value)
	if err != nil {
		return agent.Assistant{}, err
	}
	p.Metadata, p.Config, p.Context = v.over("metadata", p.Metadata), v.over("config", p.Config), v.over("context", p.Context)
	return g.e.PatchAssistant(ctx, a.ID, p)
}

// AssistantVersions is Engine.AssistantVersions with assistants:read.
func (g *Guard) AssistantVersions(ctx context.Context, q agent.VersionQuery) ([]agent.Assistant, error) {
	a, _, err := g.assistant(ctx, "read", q.AssistantID, map[string]any{})
	if err != nil {
		return nil, err
	}
	q.AssistantID = a.ID
	return g.e.AssistantVersions(ctx, q)
}

// SetLatestVersion is Engine.SetLatestVersion with assistants:update.
func (g *Guard) SetLatestVersion(ctx context.Context, id string, version int) (agent.Assistant, error) {
	a, _, err := g.assistant(ctx, "update", id, map[string]any{"version": version})
	if err != nil {
		return agent.Assistant{}, err
	}
	return g.e.SetLatestVersion(ctx, a.ID, version)
}

// DeleteAssistant is Engine.DeleteAssistant with assistants:delete; of its threads those go that the user may see
// (threads:search) and delete (threads:delete).
func (g *Guard) DeleteAssistant(ctx context.Context, id string, threads bool) error {
	a, _, err := g.assistant(ctx, "delete", id, map[string]any{})
	if err != nil || !threads || !g.e.guarded() {
		if err == nil {
			err = g.e.DeleteAssistant(ctx, a.ID, threads)
		}
		return err
	}
	q, err := g.searchingThreads(ctx, agent.ThreadQuery{Metadata: fields{"assistant_id": quote(a.ID)}.json(), Limit: 100})
	if err != nil {
		return err
	}
	if err := g.e.DeleteAssistant(ctx, a.ID, false); err != nil {
		return err
	}
	return g.deleteThreads(ctx, q)
}

// deleteThreads deletes what a query finds and the user may delete; the rest stays.
func (g *Guard) deleteThreads(ctx context.Context, q agent.ThreadQuery) error {
	q.SortBy = "thread_id"
	for {
		found, err := g.e.Threads(ctx, q)
		if err != nil || len(found) == 0 {
			return err
		}
		for _, t := range found {
			err := g.DeleteThread(ctx, t.ID)
			switch slipway.ErrorCode(err) {
			case slipway.CodeForbidden:
				q.Offset++
			case slipway.CodeNotFound:
				if _, gone := g.e.Thread(ctx, t.ID); gone == nil {
					q.Offset++ // hidden from deletion, not gone
				}
			case "":
			default:
				return err
			}
		}
	}
}

// described returns the assistant whose graph is described, with assistants:read.
func (g *Guard) described(ctx context.Context, id string) (string, error) {
	a, err := g.Assistant(ctx, id)
	return a.ID, err
}

// Schemas is Engine.Schemas with assistants:read.
func (g *Guard) Schemas(ctx context.Context, assistantID string) (json.RawMessage, error) {
	id, err := g.described(ctx, assistantID)
	if err != nil {
		return nil, err
	}
	return g.e.Schemas(ctx, id)
}

// Drawing is Engine.Drawing with assistants:read.
func (g *Guard) Drawing(ctx context.Context, assistantID string, xray Xray) (json.RawMessage, error) {
	id, err := g.described(ctx, assistantID)
	if err != nil {
		return nil, err
	}
	return g.e.Drawing(ctx, id, xray)
}

// Subgraphs is Engine.Subgraphs with assistants:read.
func (g *Guard) Subgraphs(ctx context.Context, assistantID, namespace string, recurse bool) (json.RawMessage, error) {
	id, err := g.described(ctx, assistantID)
	if err != nil {
		return nil, err
	}
	return g.e.Subgraphs(ctx, id, namespace, recurse)
}
