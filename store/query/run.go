package query

import (
	"context"
	"encoding/json"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

const runColumns = `id, thread_id, assistant_id, graph_id, status, multitask, metadata, kwargs, temporary, created_at, updated_at, started_at,
  ended_at, failure, epoch, attempt, instance, checkpointed, cancel_action, cancel_reason`

func scanRun(s scanner) (r agent.Run, err error) {
	var metadata string
	var kwargs, failed secret
	var created, updated, started, ended int64
	err = s.Scan(&r.ID, &r.ThreadID, &r.AssistantID, &r.GraphID, &r.Status, &r.Multitask, &metadata, &kwargs, &r.Temporary, &created, &updated,
		&started, &ended, &failed, &r.Epoch, &r.Attempt, &r.Instance, &r.Checkpointed, &r.CancelAction, &r.CancelReason)
	if err != nil {
		return r, err
	}
	r.Metadata = json.RawMessage(metadata)
	r.CreatedAt, r.UpdatedAt, r.StartedAt, r.EndedAt = fromMicros(created), fromMicros(updated), fromMicros(started), fromMicros(ended)
	if r.Failure, err = scanFailure(failed); err != nil {
		return r, err
	}
	return r, json.Unmarshal([]byte(kwargs.String), &r.Kwargs)
}

const insertRun = `INSERT INTO runs (` + runColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

func addRun(c Conn, r agent.Run) error {
	return c.Send(insertRun, r.ID, r.ThreadID, r.AssistantID, r.GraphID, r.Status, r.Multitask, object(r.Metadata), hidden(encode(r.Kwargs)), r.Temporary,
		micros(r.CreatedAt), micros(r.UpdatedAt), micros(r.StartedAt), micros(r.EndedAt), failure(r.Failure), r.Epoch, r.Attempt, r.Instance,
		r.Checkpointed, r.CancelAction, r.CancelReason)
}

const updateRun = `
UPDATE runs SET status = ?, updated_at = ?, started_at = ?, ended_at = ?, failure = ?, epoch = ?, attempt = ?, instance = ?, checkpointed = ?,
  cancel_action = ?, cancel_reason = ? WHERE id = ?`

func saveRun(c Conn, r agent.Run) error {
	return c.Send(updateRun, r.Status, micros(r.UpdatedAt), micros(r.StartedAt), micros(r.EndedAt), failure(r.Failure), r.Epoch, r.Attempt, r.Instance,
		r.Checkpointed, r.CancelAction, r.CancelReason, r.ID)
}

func getRun(c Conn, threadID, id string) (agent.Run, error) {
	r, ok, err := one(c, scanRun, `SELECT `+runColumns+` FROM runs WHERE id = ?1 AND (?2 = '' OR thread_id = ?2)`, id, threadID)
	if err == nil && !ok {
		err = noRun()
	}
	return r, err
}

// fenced returns the run of a fence, CodeStale if the claim is over.
func fenced(c Conn, f agent.Fence) (agent.Run, error) {
	r, ok, err := one(c, scanRun, `SELECT `+runColumns+` FROM runs WHERE id = ?`, f.RunID)
	if err == nil && (!ok || r.Status != agent.RunRunning || r.Epoch != f.Epoch) {
		err = stale(f)
	}
	return r, err
}

func stale(f agent.Fence) error {
	return slipway.Errorf(slipway.CodeStale, "claim %d of run %s is over; stop the run", f.Epoch, f.RunID)
}

// check is fenced for writes that need no more of the run than whether it has written a checkpoint.
func check(c Conn, f agent.Fence) (checkpointed bool, err error) {
	if f == (agent.Fence{}) {
		return true, nil
	}
	checkpointed, ok, err := one(c, scalar[bool], `SELECT checkpointed FROM runs WHERE id = ? AND epoch = ? AND status = 'running'`, f.RunID, f.Epoch)
	if err == nil && !ok {
		err = stale(f)
	}
	return checkpointed, err
}

// Run returns one run.
func (a *Agent) Run(ctx context.Context, threadID, runID string) (agent.Run, error) {
	return read(ctx, a.engine, func(c Conn) (agent.Run, error) { return getRun(c, threadID, runID) })
}

// Runs lists the runs of a thread, newest first.
func (a *Agent) Runs(ctx context.Context, q agent.RunQuery) ([]agent.Run, error) {
	return read(ctx, a.engine, func(c Conn) ([]agent.Run, error) {
		t, err := getThread(c, q.ThreadID)
		if err == nil && !q.Filter.Allows(t.Metadata) {
			err = noThread(q.ThreadID)
		}
		if err != nil {
			return nil, err
		}
		w := &where{}
		w.and("thread_id = ?", q.ThreadID)
		if q.Status != "" {
			w.and("status = ?", string(q.Status))
		}
		tail, args := w.page(" ORDER BY created_at DESC, id DESC", q.Limit, q.Offset)
		return all(c, scanRun, `SELECT `+runColumns+` FROM runs`+tail, args...)
	})
}

// Two statements, so that each uses the partial index it was made for.
const (
	selectInFlight   = `SELECT ` + runColumns + ` FROM runs WHERE thread_id = ? AND status IN ('pending', 'running') ORDER BY created_at, id`
	selectAllPending = `SELECT ` + runColumns + ` FROM runs WHERE status = 'pending' UNION ALL
SELECT ` + runColumns + ` FROM runs WHERE status = 'running' ORDER BY created_at, id`
)

// InFlight returns the pending and running runs, oldest first.
func (a *Agent) InFlight(ctx context.Context, threadID string) ([]agent.Run, error) {
	return read(ctx, a.engine, func(c Conn) ([]agent.Run, error) {
		if threadID == "" {
			return all(c, scanRun, selectAllPending)
		}
		return all(c, scanRun, selectInFlight, threadID)
	})
}

// PendingGraphs returns the graphs that pending runs wait for.
func (a *Agent) PendingGraphs(ctx context.Context) ([]string, error) {
	return read(ctx, a.engine, func(c Conn) ([]string, error) {
		return all(c, scalar[string], `SELECT DISTINCT graph_id FROM runs WHERE status = 'pending' ORDER BY graph_id`)
	})
}

// RunningOf returns the running runs held by an instance.
func (a *Agent) RunningOf(ctx context.Context, instance string) ([]agent.Run, error) {
	return read(ctx, a.engine, func(c Conn) ([]agent.Run, error) {
		return all(c, scanRun, `SELECT `+runColumns+` FROM runs WHERE status = 'running' AND instance = ? ORDER BY created_at, id`, instance)
	})
}

// DeleteRun removes an ended run with its checkpoints and frames. On a thread with delta channels the checkpoints stay:
// later ones need them (reference 14.5).
func (a *Agent) DeleteRun(ctx context.Context, threadID, runID string, now time.Time) error {
	return a.engine.Write(ctx, func(c Conn) error {
		r, err := getRun(c, threadID, runID)
		if err != nil {
			return err
		}
		if r.Status == agent.RunPending || r.Status == agent.RunRunning {
			return slipway.Errorf(slipway.CodeConflict, "Run %s is in flight; cancel it first", runID)
		}
		delta, err := a.hasDeltas(c, r.ThreadID)
		if err == nil && !delta {
			err = forgetRun(c, r, now)
		}
		if err != nil {
			return err
		}
		if _, err := c.Exec(`DELETE FROM frames WHERE run_id = ?`, runID); err != nil {
			return err
		}
		_, err = c.Exec(`DELETE FROM runs WHERE id = ?`, runID)
		return err
	})
}

// forgetRun removes a run's checkpoints; a thread that had no others shows no state any more.
func forgetRun(c Conn, r agent.Run, now time.Time) error {
	had, err := hasCheckpoints(c, r.ThreadID)
	if err != nil || !had {
		return err // what the application's own checkpointer keeps is not here
	}
	if err := dropRunCheckpoints(c, r.ThreadID, []string{r.ID}); err != nil {
		return err
	}
	if left, err := hasCheckpoints(c, r.ThreadID); err != nil || left {
		return err
	}
	t, err := getThread(c, r.ThreadID)
	if err != nil {
		return err
	}
	t.Values, t.State, t.Interrupts, t.Error = nil, nil, json.RawMessage("{}"), nil
	t.Base, t.StateUpdatedAt, t.UpdatedAt = agent.ThreadIdle, now, now
	return rest(c, &t)
}

func hasCheckpoints(c Conn, threadID string) (bool, error) {
	_, ok, err := one(c, scalar[int], `SELECT 1 FROM checkpoints WHERE thread_id = ? AND ns = '' LIMIT 1`, threadID)
	return ok, err
}

const saveBefore = `
INSERT INTO befores (run_id, base, language, state_updated_at, error, interrupts, vals, state)
SELECT ?, base, language, state_updated_at, error, interrupts, vals, state FROM threads WHERE id = ?
ON CONFLICT DO NOTHING`

// claim makes r running for an instance; the caller saves it.
func claim(c Conn, r *agent.Run, instance string, now time.Time) {
	r.Status, r.Instance, r.UpdatedAt = agent.RunRunning, instance, now
	r.Epoch++
	r.Attempt++
	if r.StartedAt.IsZero() {
		r.StartedAt = now
	}
}

// selectDue takes the first pending run of every thread that is free, in order (reference 17.3).
const selectDue = `
SELECT ` + runColumns + `, (SELECT followed_until > ?1 FROM threads AS t WHERE t.id = r.thread_id) FROM runs AS r
WHERE status = 'pending' AND created_at <= ?1 AND graph_id IN (SELECT value ->> 0 FROM json_each(?2))
  AND NOT EXISTS (SELECT 1 FROM runs AS o WHERE o.thread_id = r.thread_id AND o.status = 'running')
  AND NOT EXISTS (SELECT 1 FROM runs AS o WHERE o.thread_id = r.thread_id AND o.status = 'pending' AND (o.created_at, o.id) < (r.created_at, r.id))
ORDER BY created_at, id LIMIT ?3`

// scanDue scans a run with whether its thread is followed.
func scanDue(s scanner) (agent.Run, error) {
	var followed bool
	r, err := scanRun(with{s, &followed})
	r.Followed = followed
	return r, err
}

// with scans one more column than its user knows of, the last one.
type with struct {
	scanner
	last any
}

func (w with) Scan(dest ...any) error { return w.scanner.Scan(append(dest, w.last)...) }

const selectNextDue = `SELECT coalesce(min(created_at), 0) FROM runs WHERE status = 'pending' AND created_at > ?`

// Claim makes due pending runs running.
func (a *Agent) Claim(ctx context.Context, instance string, graphIDs []string, limit int, now time.Time) (runs []agent.Run, next time.Time, err error) {
	err = a.engine.Write(ctx, func(c Conn) error {
		due, err := all(c, scanDue, selectDue, micros(now), encode(rows(graphIDs)), limit)
		if err != nil {
			return err
		}
		for i := range due {
			claim(c, &due[i], instance, now)
			if err := saveRun(c, due[i]); err != nil {
				return err
			}
			if err := c.Send(saveBefore, due[i].ID, due[i].ThreadID); err != nil {
				return err
			}
		}
		at, _, err := one(c, scalar[int64], selectNextDue, micros(now))
		runs, next = due, fromMicros(at)
		return err
	})
	if err != nil {
		return nil, time.Time{}, err
	}
	return runs, next, nil
}

// rows makes each text a row of one column, which is how lists are handed to json_each.
func rows(texts []string) [][1]string {
	out := make([][1]string, len(texts))
	for i, text := range texts {
		out[i][0] = text
	}
	return out
}
