package engine

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

// CreateThread makes a thread; an empty ID gets a new one. If it exists: CodeConflict, or with reuse the stored one.
func (e *Engine) CreateThread(ctx context.Context, t agent.Thread, reuse bool) (agent.Thread, error) {
	return e.store.CreateThread(ctx, e.newThread(t), reuse)
}

// newThread fills in what the server decides of a new thread.
func (e *Engine) newThread(t agent.Thread) agent.Thread {
	if t.ID == "" {
		t.ID = e.ids()
	}
	now := e.clock()
	if t.TTL == nil {
		t.TTL = e.cfg.ThreadTTL
	}
	if t.TTL != nil {
		t.TTL = t.TTL.From(now)
	}
	t.Metadata = withoutReserved(object(t.Metadata))
	t.Config = object(t.Config)
	t.Status = agent.ThreadIdle
	t.CreatedAt, t.UpdatedAt = now, now
	return t
}

// Thread returns a thread.
func (e *Engine) Thread(ctx context.Context, id string) (agent.Thread, error) {
	t, err := e.store.Thread(ctx, id)
	if err == nil && t.Expired(e.clock()) {
		return agent.Thread{}, slipway.Errorf(slipway.CodeNotFound, "Thread with ID %s not found", id)
	}
	return t, err
}

// Threads lists threads.
func (e *Engine) Threads(ctx context.Context, q agent.ThreadQuery) ([]agent.Thread, error) {
	q.Now = e.clock()
	return e.store.Threads(ctx, q)
}

// CountThreads counts threads.
func (e *Engine) CountThreads(ctx context.Context, q agent.ThreadQuery) (int, error) {
	q.Now = e.clock()
	return e.store.CountThreads(ctx, q)
}

// PatchThread merges metadata shallowly, reserved keys dropped, and sets the thread's TTL anew where ttl is not nil.
func (e *Engine) PatchThread(ctx context.Context, id string, metadata json.RawMessage, ttl *agent.TTL) (agent.Thread, error) {
	return e.store.PatchThread(ctx, id, withoutReserved(object(metadata)), ttl, e.clock())
}

// Prune deletes threads, or with keepLatest all of their checkpoints but the latest, and tells how many there were; unknown
// ids are no error (reference 3).
func (e *Engine) Prune(ctx context.Context, ids []string, keepLatest bool) (pruned int, err error) {
	for _, id := range ids {
		t, err := e.Thread(ctx, id)
		switch {
		case err == nil && keepLatest && e.threadSavesElsewhere(t):
			err = e.saverDo(ctx, t, func(w agent.Worker) error { return agent.SaverPrune(ctx, w, []string{id}, true) })
		case err == nil && keepLatest:
			err = e.store.PruneCheckpoints(ctx, []string{id}, true)
		case err == nil:
			err = e.DeleteThread(ctx, id)
		}
		if slipway.ErrorCode(err) == slipway.CodeNotFound {
			continue
		}
		if err != nil {
			return pruned, err
		}
		pruned++
	}
	return pruned, nil
}

// Storage measures a thread.
func (e *Engine) Storage(ctx context.Context, id string) (agent.Storage, error) {
	if _, err := e.Thread(ctx, id); err != nil {
		return agent.Storage{}, err
	}
	return e.store.Storage(ctx, id)
}

// DeleteThread cancels what is in flight, waits until it has stopped, and removes the thread.
func (e *Engine) DeleteThread(ctx context.Context, id string) error {
	if _, err := e.Thread(ctx, id); err != nil {
		return err
	}
	return e.dropThread(ctx, id, "thread deleted")
}

func (e *Engine) dropThread(ctx context.Context, id, reason string) error {
	for {
		runs, err := e.store.InFlight(ctx, id)
		if err != nil {
			return err
		}
		// Newest first, so that the end of one does not start the next.
		for i := len(runs) - 1; i >= 0; i-- {
			if err := e.cancelIfInFlight(ctx, runs[i], agent.CancelInterrupt, reason); err != nil {
				return err
			}
		}
		if err := e.saverForget(ctx, id); err != nil {
			return err
		}
		if err = e.store.DeleteThread(ctx, id); err == nil {
			e.closeHub(id)
		}
		if slipway.ErrorCode(err) != slipway.CodeConflict || ctx.Err() != nil {
			return err
		}
	}
}

// cancelIfInFlight returns when the run has stopped.
func (e *Engine) cancelIfInFlight(ctx context.Context, r agent.Run, action agent.CancelAction, reason string) error {
	err := e.Cancel(ctx, r.ThreadID, r.ID, action, reason, true)
	if slipway.ErrorCode(err) == slipway.CodeNotFound {
		return nil // it has ended meanwhile
	}
	return err
}

// CopyThread copies a thread with its checkpoints to a new id. A missing source is CodeConflict (reference 1).
func (e *Engine) CopyThread(ctx context.Context, id string) (agent.Thread, error) {
	source, err := e.store.Thread(ctx, id)
	var t agent.Thread
	if err == nil {
		t, err = e.store.CopyThread(ctx, id, e.ids(), e.clock())
	}
	if slipway.ErrorCode(err) == slipway.CodeNotFound {
		return t, slipway.Errorf(slipway.CodeConflict, "Thread with ID %s not found", id)
	}
	if err != nil {
		return t, err
	}
	err = e.saverDo(ctx, t, func(w agent.Worker) error { return agent.SaverCopyThread(ctx, w, id, t.ID) })
	if err != nil {
		return t, errors.Join(err, e.store.DeleteThread(context.WithoutCancel(ctx), t.ID))
	}
	if source.Status == agent.ThreadBusy {
		return e.catchUpCopy(ctx, t), nil
	}
	return t, nil
}

// catchUpCopy gives the copy of a thread at work the state of its last checkpoint: the row of the original has that of its
// last run. Where no worker can tell in time, the copy keeps it.
func (e *Engine) catchUpCopy(ctx context.Context, t agent.Thread) agent.Thread {
	graph := parse(t.Metadata).text("graph_id")
	if graph == "" {
		return t
	}
	soon, cancel := context.WithTimeout(ctx, livePatience)
	defer cancel()
	state, err := e.askState(soon, t, StateRequest{ThreadID: t.ID})
	var s agent.Snapshot
	if err == nil {
		err = json.Unmarshal(state, &s)
	}
	if err == nil && absent(s.CreatedAt) {
		return t // the run has written no checkpoint yet
	}
	if err == nil {
		var current agent.Thread
		if current, err = e.store.PutState(ctx, t.ID, graph, s, e.clock()); err == nil {
			return current
		}
	}
	e.log.Warn("state of the copy of a thread at work is that of its last run", "thread_id", t.ID, "error", err)
	return t
}

// saverForget removes the checkpoints of a thread from the application's checkpointer.
func (e *Engine) saverForget(ctx context.Context, id string) error {
	if len(e.cfg.Savers) == 0 {
		return nil
	}
	t, err := e.store.Thread(ctx, id)
	if err != nil {
		return err
	}
	return e.saverDo(ctx, t, func(w agent.Worker) error { return agent.SaverDeleteThread(ctx, w, id) })
}
