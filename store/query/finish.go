package query

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

// Finish ends a run that its worker has ended (reference 17.2).
func (a *Agent) Finish(ctx context.Context, f agent.Finish) (agent.Finished, error) {
	return write(ctx, a.engine, func(c Conn) (agent.Finished, error) {
		r, err := fenced(c, f.Fence)
		if err != nil {
			return agent.Finished{}, err
		}
		r.Status, r.Failure = f.Status, f.Failure
		done, err := a.end(c, r, f.Snapshot, f.Now)
		if err != nil || f.Tail == nil || done.Outcome == agent.RunRollback {
			return done, err
		}
		return done, addFrames(c, f.Tail.Frames(done.Run, done.Outcome))
	})
}

// Requeue gives a running run back (reference 17.4).
func (a *Agent) Requeue(ctx context.Context, f agent.Fence, free bool, maxAttempts int, now time.Time) (agent.Finished, error) {
	return write(ctx, a.engine, func(c Conn) (agent.Finished, error) {
		r, err := fenced(c, f)
		if err != nil {
			return agent.Finished{}, err
		}
		switch {
		case r.CancelAction != "":
			return a.end(c, r, nil, now)
		case free:
			r.Attempt--
		case r.Attempt >= maxAttempts:
			r.Status = agent.RunError
			r.Failure = &agent.Failure{Error: "WorkerLost", Message: fmt.Sprintf("the run lost its worker in each of %d attempts", r.Attempt)}
			return a.end(c, r, nil, now)
		}
		return back(c, r, now)
	})
}

// back makes a run pending again. A temporary one starts over.
func back(c Conn, r agent.Run, now time.Time) (agent.Finished, error) {
	r.Status, r.Instance, r.UpdatedAt = agent.RunPending, "", now
	if r.Temporary {
		r.Checkpointed = false
		if err := dropCheckpoints(c, r.ThreadID); err != nil {
			return agent.Finished{}, err
		}
	}
	if err := saveRun(c, r); err != nil {
		return agent.Finished{}, err
	}
	t, err := getThread(c, r.ThreadID)
	return agent.Finished{Run: r, Thread: &t.Thread}, err
}

// Cancel records a cancel (reference 17.6).
func (a *Agent) Cancel(ctx context.Context, threadID, runID string, action agent.CancelAction, reason string, now time.Time) (agent.Finished, error) {
	return write(ctx, a.engine, func(c Conn) (agent.Finished, error) {
		r, err := getRun(c, threadID, runID)
		if slipway.ErrorCode(err) == slipway.CodeNotFound || err == nil && r.Status != agent.RunPending && r.Status != agent.RunRunning {
			return agent.Finished{}, slipway.Errorf(slipway.CodeNotFound, "No runs found to cancel")
		}
		if err != nil {
			return agent.Finished{}, err
		}
		cancel(&r, action, reason)
		r.UpdatedAt = now
		if r.Status == agent.RunPending {
			return a.end(c, r, nil, now)
		}
		t, err := getThread(c, r.ThreadID)
		if err == nil {
			err = saveRun(c, r)
		}
		return agent.Finished{Run: r, Thread: &t.Thread}, err
	})
}

// end brings run and thread to their end: a recorded cancel wins over the run's status.
func (a *Agent) end(c Conn, r agent.Run, s *agent.Snapshot, now time.Time) (agent.Finished, error) {
	r.EndedAt, r.UpdatedAt = now, now
	t, err := getThread(c, r.ThreadID)
	if err != nil {
		return agent.Finished{}, err
	}
	if err := settle(c, &t, &r, s, now); err != nil {
		return agent.Finished{}, err
	}
	if err := a.count(c, r, now); err != nil {
		return agent.Finished{}, err
	}
	if r.Temporary {
		if err := announce(c, r, nil); err != nil {
			return agent.Finished{}, err
		}
		if r.Kwargs.Resumable {
			if err := c.Send(insertGone, r.ID, t.ID, object(t.Metadata)); err != nil {
				return agent.Finished{}, err
			}
		}
		return agent.Finished{Run: r, Outcome: r.Status}, dropThread(c, t.ID)
	}
	if err := announce(c, r, t.Values); err != nil {
		return agent.Finished{}, err
	}
	if r.Status == agent.RunRollback {
		err = removeRun(c, r)
	} else if err = saveRun(c, r); err == nil {
		_, err = c.Exec(`DELETE FROM befores WHERE run_id = ?`, r.ID)
	}
	if err != nil {
		return agent.Finished{}, err
	}
	t.UpdatedAt = now
	t.rearm(now)
	err = rest(c, &t)
	return agent.Finished{Run: r, Outcome: r.Status, Thread: &t.Thread}, err
}

// settle decides the run's final status and what the thread shows of it.
func settle(c Conn, t *thread, r *agent.Run, s *agent.Snapshot, now time.Time) error {
	if r.CancelAction == agent.CancelRollback {
		r.Status, r.Failure = agent.RunRollback, nil
		err := restore(c, t, r.ID, now)
		t.Error = &agent.Failure{Error: "UserRollback", Message: r.CancelReason}
		return err
	}
	if err := t.after(s, now); err != nil {
		return err
	}
	if s != nil { // a later run of another graph may have been admitted and cancelled meanwhile
		metadata, err := merge(t.Metadata, json.RawMessage(`{"graph_id":`+encode(r.GraphID)+`}`))
		if err != nil {
			return err
		}
		t.Metadata = metadata
	}
	t.Error = nil
	switch {
	case r.CancelAction == agent.CancelInterrupt:
		r.Status, r.Failure = agent.RunInterrupted, nil
		t.Error = &agent.Failure{Error: "UserInterrupt", Message: r.CancelReason}
	case r.Status == agent.RunError || r.Status == agent.RunTimeout:
		t.Base, t.Error = agent.ThreadError, r.Failure
	}
	return nil
}

// after takes the snapshot of a run, or, if it left none, what the state before says of the next nodes.
func (t *thread) after(s *agent.Snapshot, now time.Time) error {
	if s != nil {
		return t.take(s, now)
	}
	t.Base = agent.ThreadIdle
	if t.State == nil {
		return nil
	}
	var state struct {
		Next []json.RawMessage `json:"next"`
	}
	if err := json.Unmarshal(t.State, &state); err != nil {
		return fmt.Errorf("read the state of thread %s: %w", t.ID, err)
	}
	if len(state.Next) > 0 {
		t.Base = agent.ThreadInterrupted
	}
	return nil
}

// rest sets the thread's status by what else is on it, and saves it.
func rest(c Conn, t *thread) error {
	t.Status = t.Base
	others, err := hasRuns(c, t.ID, `status IN ('pending', 'running')`)
	if err != nil {
		return err
	}
	if others {
		t.Status = agent.ThreadBusy
	}
	return saveThread(c, *t)
}

const selectBefore = `SELECT base, language, state_updated_at, error, interrupts, vals, state FROM befores WHERE run_id = ?`

// restore puts the thread back to what it was before the run first started; a run that never did has changed nothing.
func restore(c Conn, t *thread, runID string, now time.Time) error {
	scan := func(s scanner) (b thread, err error) {
		var updated int64
		var interrupts, failed, values, state secret
		if err := s.Scan(&b.Base, &b.Language, &updated, &failed, &interrupts, &values, &state); err != nil {
			return b, err
		}
		b.StateUpdatedAt, b.Interrupts, b.Values, b.State = fromMicros(updated), json.RawMessage(interrupts.String), values.raw(), state.raw()
		b.Error, err = scanFailure(failed)
		return b, err
	}
	b, ok, err := one(c, scan, selectBefore, runID)
	if err != nil || !ok {
		return err
	}
	t.Base, t.Language, t.Interrupts, t.Values, t.State, t.Error = b.Base, b.Language, b.Interrupts, b.Values, b.State, b.Error
	t.StateUpdatedAt = b.StateUpdatedAt
	if t.StateUpdatedAt.IsZero() {
		return nil
	}
	t.StateUpdatedAt = now
	return nil
}

// removeRun deletes a rolled-back run without a trace in the thread: checkpoints, frames, row.
func removeRun(c Conn, r agent.Run) error {
	if err := dropRunCheckpoints(c, r.ThreadID, []string{r.ID}); err != nil {
		return err
	}
	if _, err := c.Exec(`DELETE FROM frames WHERE run_id = ?`, r.ID); err != nil {
		return err
	}
	_, err := c.Exec(`DELETE FROM runs WHERE id = ?`, r.ID)
	return err
}
