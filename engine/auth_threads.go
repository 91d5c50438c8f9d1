package engine

import (
	"context"
	"encoding/json"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

func noThread(id string) error {
	return slipway.Errorf(slipway.CodeNotFound, "Thread with ID %s not found", id)
}

// mayThread asks whether the user may do this to a thread and answers hidden if the filter does not allow it. Where no
// filter is set nothing is read.
func (g *Guard) mayThread(ctx context.Context, action, id string, value map[string]any, hidden error) (verdict, error) {
	value["thread_id"] = id
	v, err := g.ask(ctx, "threads", action, value)
	if err != nil || v.filter == nil {
		return v, err
	}
	t, err := g.e.Thread(ctx, id)
	if slipway.ErrorCode(err) == slipway.CodeNotFound || err == nil && !v.filter.Allows(object(t.Metadata)) {
		err = hidden
	}
	return v, err
}

// readThread is threads:read.
func (g *Guard) readThread(ctx context.Context, id string) error {
	_, err := g.mayThread(ctx, "read", id, map[string]any{}, noThread(id))
	return err
}

// updateThread is threads:update of what is not the thread's own row.
func (g *Guard) updateThread(ctx context.Context, id string) error {
	_, err := g.mayThread(ctx, "update", id, map[string]any{}, noThread(id))
	return err
}

// CreateThread is Engine.CreateThread with threads:create.
func (g *Guard) CreateThread(ctx context.Context, t agent.Thread, reuse bool) (agent.Thread, error) {
	return g.createThread(ctx, t, reuse, func(t agent.Thread, reuse bool) (agent.Thread, error) { return g.e.CreateThread(ctx, t, reuse) })
}

// CreateThreadWith is Engine.CreateThreadWith with threads:create.
func (g *Guard) CreateThreadWith(ctx context.Context, t agent.Thread, reuse bool, steps [][]NodeUpdate) (agent.Thread, error) {
	return g.createThread(ctx, t, reuse, func(t agent.Thread, reuse bool) (agent.Thread, error) {
		return g.e.CreateThreadWith(ctx, t, reuse, steps)
	})
}

func (g *Guard) createThread(ctx context.Context, t agent.Thread, reuse bool, create func(agent.Thread, bool) (agent.Thread, error)) (agent.Thread, error) {
	t.ID = or(t.ID, g.e.ids())
	value := map[string]any{"thread_id": t.ID, "metadata": object(t.Metadata), "if_exists": ifExists(reuse)}
	if t.TTL != nil {
		value["ttl"] = map[string]any{"strategy": t.TTL.Strategy, "ttl": t.TTL.Minutes}
	}
	v, err := g.ask(ctx, "threads", "create", value)
	if err != nil {
		return agent.Thread{}, err
	}
	t.Metadata = v.over("metadata", t.Metadata)
	return reusable(reuse, v.filter, func(reuse bool) (agent.Thread, error) { return create(t, reuse) }, func() (agent.Thread, json.RawMessage, error) {
		found, err := g.e.Thread(ctx, t.ID)
		return found, object(found.Metadata), err
	})
}

// Thread is Engine.Thread with threads:read.
func (g *Guard) Thread(ctx context.Context, id string) (agent.Thread, error) {
	v, err := g.ask(ctx, "threads", "read", map[string]any{"thread_id": id})
	if err != nil {
		return agent.Thread{}, err
	}
	t, err := g.e.Thread(ctx, id)
	if err == nil && !v.filter.Allows(object(t.Metadata)) {
		return agent.Thread{}, noThread(id)
	}
	return t, err
}

// searchingThreads is threads:search, laid over a query.
func (g *Guard) searchingThreads(ctx context.Context, q agent.ThreadQuery) (agent.ThreadQuery, error) {
	ids := q.IDs
	if ids == nil {
		ids = []string{}
	}
	v, err := g.ask(ctx, "threads", "search", map[string]any{
		"metadata": object(q.Metadata), "values": object(q.Values), "status": text(string(q.Status)), "ids": ids, "limit": q.Limit, "offset": q.Offset,
	})
	q.Metadata, q.Values, q.Filter = v.over("metadata", q.Metadata), v.over("values", q.Values), v.filter
	return q, err
}

// Threads is Engine.Threads with threads:search.
func (g *Guard) Threads(ctx context.Context, q agent.ThreadQuery) ([]agent.Thread, error) {
	q, err := g.searchingThreads(ctx, q)
	if err != nil {
		return nil, err
	}
	return g.e.Threads(ctx, q)
}

// CountThreads is Engine.CountThreads with threads:search.
func (g *Guard) CountThreads(ctx context.Context, q agent.ThreadQuery) (int, error) {
	q, err := g.searchingThreads(ctx, q)
	if err != nil {
		return 0, err
	}
	return g.e.CountThreads(ctx, q)
}

// PatchThread is Engine.PatchThread with threads:update.
func (g *Guard) PatchThread(ctx context.Context, id string, metadata json.RawMessage, ttl *agent.TTL) (agent.Thread, error) {
	v, err := g.mayThread(ctx, "update", id, map[string]any{"metadata": object(metadata)}, noThread(id))
	if err != nil {
		return agent.Thread{}, err
	}
	return g.e.PatchThread(ctx, id, v.over("metadata", metadata), ttl)
}

// Prune is Engine.Prune of the threads that the user may delete, or with keepLatest update; others are passed over like
// unknown ones.
func (g *Guard) Prune(ctx context.Context, ids []string, keepLatest bool) (int, error) {
	action := "delete"
	if keepLatest {
		action = "update"
	}
	allowed := make([]string, 0, len(ids))
	for _, id := range ids {
		_, err := g.mayThread(ctx, action, id, map[string]any{}, noThread(id))
		switch slipway.ErrorCode(err) {
		case "":
			allowed = append(allowed, id)
		case slipway.CodeNotFound:
		default:
			return 0, err
		}
	}
	return g.e.Prune(ctx, allowed, keepLatest)
}

// Storage is Engine.Storage with threads:read.
func (g *Guard) Storage(ctx context.Context, id string) (agent.Storage, error) {
	if err := g.readThread(ctx, id); err != nil {
		return agent.Storage{}, err
	}
	return g.e.Storage(ctx, id)
}

// DeleteThread is Engine.DeleteThread with threads:delete.
func (g *Guard) DeleteThread(ctx context.Context, id string) error {
	if _, err := g.mayThread(ctx, "delete", id, map[string]any{}, noThread(id)); err != nil {
		return err
	}
	return g.e.DeleteThread(ctx, id)
}

// CopyThread is Engine.CopyThread; a copy is checked like a read (reference 12).
func (g *Guard) CopyThread(ctx context.Context, id string) (agent.Thread, error) {
	missing := slipway.Errorf(slipway.CodeConflict, "Thread with ID %s not found", id)
	if _, err := g.mayThread(ctx, "read", id, map[string]any{}, missing); err != nil {
		return agent.Thread{}, err
	}
	return g.e.CopyThread(ctx, id)
}

// State is Engine.State with threads:read.
func (g *Guard) State(ctx context.Context, q StateRequest) (json.RawMessage, error) {
	if err := g.readThread(ctx, q.ThreadID); err != nil {
		return nil, err
	}
	return g.e.State(ctx, q)
}

// History is Engine.History with threads:read.
func (g *Guard) History(ctx context.Context, q HistoryRequest) (json.RawMessage, error) {
	if err := g.readThread(ctx, q.ThreadID); err != nil {
		return nil, err
	}
	return g.e.History(ctx, q)
}

// PatchState is Engine.PatchState with threads:update.
func (g *Guard) PatchState(ctx context.Context, threadID string, metadata json.RawMessage) (json.RawMessage, error) {
	if err := g.updateThread(ctx, threadID); err != nil {
		return nil, err
	}
	return g.e.PatchState(ctx, threadID, metadata)
}

// UpdateState is Engine.UpdateState with threads:update.
func (g *Guard) UpdateState(ctx context.Context, u StateUpdate) (json.RawMessage, error) {
	if err := g.updateThread(ctx, u.ThreadID); err != nil {
		return nil, err
	}
	return g.e.UpdateState(ctx, u)
}

// FollowThread is Engine.FollowThread with threads:read.
func (g *Guard) FollowThread(ctx context.Context, threadID, lastEventID string) (*Subscription, error) {
	if err := g.readThread(ctx, threadID); err != nil {
		return nil, err
	}
	return g.e.FollowThread(ctx, threadID, lastEventID)
}
