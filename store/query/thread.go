package query

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

// thread is a row of threads: Base is the status without regard to runs (reference 17.2).
type thread struct {
	agent.Thread
	Base     agent.ThreadStatus
	Followed time.Time // until when somebody follows its stream
}

const threadColumns = `id, metadata, config, status, base, language, created_at, updated_at, state_updated_at, error, interrupts, vals, state,
  ttl_strategy, ttl_minutes, expires_at, followed_until`

func scanThread(s scanner) (t thread, err error) {
	var metadata string
	var created, updated, stateUpdated, expires, followed int64
	var config, interrupts, failure, values, state secret
	var ttl agent.TTL
	err = s.Scan(&t.ID, &metadata, &config, &t.Status, &t.Base, &t.Language, &created, &updated, &stateUpdated, &failure, &interrupts, &values, &state,
		&ttl.Strategy, &ttl.Minutes, &expires, &followed)
	if err != nil {
		return t, err
	}
	t.Metadata, t.Config, t.Interrupts = json.RawMessage(metadata), json.RawMessage(config.String), json.RawMessage(interrupts.String)
	t.Values, t.State = values.raw(), state.raw()
	t.CreatedAt, t.UpdatedAt, t.StateUpdatedAt = fromMicros(created), fromMicros(updated), fromMicros(stateUpdated)
	t.Followed = fromMicros(followed)
	if ttl.Strategy != "" {
		ttl.ExpiresAt = fromMicros(expires)
		t.TTL = &ttl
	}
	t.Error, err = scanFailure(failure)
	return t, err
}

func scanFailure(s secret) (*agent.Failure, error) {
	if !s.Valid {
		return nil, nil
	}
	f := &agent.Failure{}
	return f, json.Unmarshal([]byte(s.String), f)
}

func failure(f *agent.Failure) any {
	if f == nil {
		return nil
	}
	return hidden(encode(f))
}

const selectThread = `SELECT ` + threadColumns + ` FROM threads WHERE id = ?`

func getThread(c Conn, id string) (thread, error) {
	t, ok, err := one(c, scanThread, selectThread, id)
	if err == nil && !ok {
		err = noThread(id)
	}
	return t, err
}

// getLive is getThread for those whom an expired thread does not exist for.
func getLive(c Conn, id string, now time.Time) (thread, error) {
	t, err := getThread(c, id)
	if err == nil && t.Expired(now) {
		err = noThread(id)
	}
	return t, err
}

// ttl returns the columns of a TTL.
func (t thread) ttl() (strategy agent.TTLStrategy, minutes float64, expires int64) {
	if t.TTL == nil {
		return "", 0, 0
	}
	return t.TTL.Strategy, t.TTL.Minutes, micros(t.TTL.ExpiresAt)
}

// rearm starts a keep_latest TTL anew: the state has changed.
func (t *thread) rearm(now time.Time) {
	if t.TTL != nil && t.TTL.Strategy == agent.TTLKeepLatest {
		t.TTL = t.TTL.From(now)
	}
}

const insertThread = `INSERT INTO threads (` + threadColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)`

func addThread(c Conn, t thread) error {
	strategy, minutes, expires := t.ttl()
	_, err := c.Exec(insertThread, t.ID, object(t.Metadata), hidden(object(t.Config)), t.Status, t.Base, t.Language, micros(t.CreatedAt), micros(t.UpdatedAt),
		micros(t.StateUpdatedAt), failure(t.Error), hidden(object(t.Interrupts)), hidden(text(t.Values)), hidden(text(t.State)), strategy, minutes, expires)
	return err
}

const updateThread = `
UPDATE threads SET metadata = ?, config = ?, status = ?, base = ?, language = ?, updated_at = ?, state_updated_at = ?, error = ?,
  interrupts = ?, vals = ?, state = ?, ttl_strategy = ?, ttl_minutes = ?, expires_at = ? WHERE id = ?`

func saveThread(c Conn, t thread) error {
	strategy, minutes, expires := t.ttl()
	return c.Send(updateThread, object(t.Metadata), hidden(object(t.Config)), t.Status, t.Base, t.Language, micros(t.UpdatedAt), micros(t.StateUpdatedAt),
		failure(t.Error), hidden(object(t.Interrupts)), hidden(text(t.Values)), hidden(text(t.State)), strategy, minutes, expires, t.ID)
}

// CreateThread inserts a thread.
func (a *Agent) CreateThread(ctx context.Context, t agent.Thread, reuse bool) (agent.Thread, error) {
	return write(ctx, a.engine, func(c Conn) (agent.Thread, error) {
		found, ok, err := standing(c, t.ID, t.CreatedAt)
		if err != nil || ok && reuse {
			return found.Thread, err
		}
		if ok {
			return found.Thread, slipway.Errorf(slipway.CodeConflict, "Thread already exists")
		}
		row := newThread(t)
		return row.Thread, addThread(c, row)
	})
}

// standing returns the thread that goes by an id, if there is one. What is left of an expired one makes room.
func standing(c Conn, id string, now time.Time) (t thread, ok bool, err error) {
	t, ok, err = one(c, scanThread, selectThread, id)
	if err != nil || !ok || !t.Expired(now) {
		return t, ok, err
	}
	running, err := hasRuns(c, id, `status = 'running'`)
	if err == nil && running {
		err = slipway.Errorf(slipway.CodeConflict, "Thread %s has expired and its last run is being stopped; try again shortly", id)
	}
	if err != nil {
		return t, false, err
	}
	return thread{}, false, eraseThread(c, id)
}

// newThread fills in what a new thread must have.
func newThread(t agent.Thread) thread {
	t.Metadata, t.Config, t.Interrupts = json.RawMessage(object(t.Metadata)), json.RawMessage(object(t.Config)), json.RawMessage(object(t.Interrupts))
	if t.Status == "" {
		t.Status = agent.ThreadIdle
	}
	base := t.Status
	if base == agent.ThreadBusy {
		base = agent.ThreadIdle
	}
	return thread{Thread: t, Base: base}
}

// Thread returns one thread.
func (a *Agent) Thread(ctx context.Context, id string) (agent.Thread, error) {
	return read(ctx, a.engine, func(c Conn) (agent.Thread, error) {
		t, err := getThread(c, id)
		return t.Thread, err
	})
}

func (a *Agent) threadsWhere(q agent.ThreadQuery) *where {
	w := &where{}
	in(w, "id", q.IDs)
	if q.Status != "" {
		w.and("status = ?", string(q.Status))
	}
	if q.Metadata != nil {
		w.and(a.dialect.Contains("metadata"), string(q.Metadata))
	}
	w.allow(a.dialect.Allows("metadata"), q.Filter)
	if !q.Now.IsZero() {
		w.and("(ttl_strategy <> 'delete' OR expires_at > ?)", micros(q.Now))
	}
	if q.Values != nil && !a.sealed() {
		w.and(a.dialect.Contains("vals"), string(q.Values))
	}
	return w
}

// Threads lists threads.
func (a *Agent) Threads(ctx context.Context, q agent.ThreadQuery) ([]agent.Thread, error) {
	columns := map[string]string{"": "updated_at", "thread_id": "id", "status": "status", "created_at": "created_at", "updated_at": "updated_at", "state_updated_at": "state_updated_at"}
	order, err := orderBy(columns, q.SortBy, q.Ascending)
	if err != nil {
		return nil, err
	}
	return read(ctx, a.engine, func(c Conn) ([]agent.Thread, error) {
		limit, offset := q.Limit, q.Offset
		byValues := q.Values != nil && a.sealed()
		if byValues {
			limit, offset = 0, 0
		}
		tail, args := a.threadsWhere(q).page(order, limit, offset)
		rows, err := all(c, scanThread, `SELECT `+threadColumns+` FROM threads`+tail, args...)
		if byValues {
			rows = slices.DeleteFunc(rows, func(t thread) bool { return !Contains(string(t.Values), string(q.Values)) })
			rows = window(rows, q.Limit, q.Offset)
		}
		out := make([]agent.Thread, len(rows))
		for i, r := range rows {
			out[i] = r.Thread
		}
		return out, err
	})
}

// CountThreads counts what Threads would list without bounds.
func (a *Agent) CountThreads(ctx context.Context, q agent.ThreadQuery) (int, error) {
	if q.Values != nil && a.sealed() {
		q.Limit, q.Offset = 0, 0
		list, err := a.Threads(ctx, q)
		return len(list), err
	}
	return read(ctx, a.engine, func(c Conn) (int, error) {
		w := a.threadsWhere(q)
		n, _, err := one(c, scalar[int], `SELECT count(*) FROM threads`+w.text, w.args...)
		return n, err
	})
}

// merge lays the members of over onto those of base, shallowly.
func merge(base, over json.RawMessage) (json.RawMessage, error) {
	if o := object(over); o == "{}" {
		return json.RawMessage(object(base)), nil
	}
	m := map[string]json.RawMessage{}
	for _, part := range []json.RawMessage{base, over} {
		if err := json.Unmarshal([]byte(object(part)), &m); err != nil {
			return nil, slipway.Errorf(slipway.CodeInvalid, "%q is no JSON object: %w", part, err)
		}
	}
	return json.Marshal(m)
}

// PatchThread merges metadata shallowly.
func (a *Agent) PatchThread(ctx context.Context, id string, metadata json.RawMessage, ttl *agent.TTL, now time.Time) (agent.Thread, error) {
	return write(ctx, a.engine, func(c Conn) (agent.Thread, error) {
		t, err := getLive(c, id, now)
		if err != nil {
			return t.Thread, err
		}
		if t.Metadata, err = merge(t.Metadata, metadata); err != nil {
			return t.Thread, err
		}
		if ttl != nil {
			t.TTL = ttl.From(now)
		}
		t.UpdatedAt = now
		return t.Thread, saveThread(c, t)
	})
}

// DeleteThread removes a thread with everything that hangs on it.
func (a *Agent) DeleteThread(ctx context.Context, id string) error {
	return a.engine.Write(ctx, func(c Conn) error {
		if _, err := getThread(c, id); err != nil {
			return err
		}
		running, err := hasRuns(c, id, `status = 'running'`)
		if err != nil {
			return err
		}
		if running {
			return slipway.Errorf(slipway.CodeConflict, "Thread %s has a running run; cancel it first", id)
		}
		return eraseThread(c, id)
	})
}

func hasRuns(c Conn, threadID, condition string) (bool, error) {
	_, ok, err := one(c, scalar[int], `SELECT 1 FROM runs WHERE thread_id = ? AND `+condition+` LIMIT 1`, threadID)
	return ok, err
}

// eraseThread removes a thread with everything that hangs on it.
func eraseThread(c Conn, id string) error {
	for _, statement := range []string{`DELETE FROM frames WHERE thread_id = ?`, `DELETE FROM crons WHERE thread_id = ?`} {
		if _, err := c.Exec(statement, id); err != nil {
			return err
		}
	}
	return dropThread(c, id)
}

// dropThread removes a thread and its runs; their frames stay until they are dropped by age: the replay window of a temporary run outlives its row.
func dropThread(c Conn, id string) error {
	if err := dropCheckpoints(c, id); err != nil {
		return err
	}
	_, err := c.Exec(`DELETE FROM threads WHERE id = ?`, id)
	return err
}

// CopyThread copies a thread with its complete checkpoint chain to a new id.
func (a *Agent) CopyThread(ctx context.Context, id, newID string, now time.Time) (agent.Thread, error) {
	return write(ctx, a.engine, func(c Conn) (agent.Thread, error) {
		t, err := getLive(c, id, now)
		if err != nil {
			return t.Thread, err
		}
		if t.TTL != nil {
			t.TTL = t.TTL.From(now)
		}
		t.ID, t.CreatedAt, t.UpdatedAt, t.Status = newID, now, now, t.Base
		if t.State, err = readdress(t.State, id, newID); err != nil {
			return t.Thread, err
		}
		if err := addThread(c, t); a.dialect.Unique(err) {
			return t.Thread, slipway.Errorf(slipway.CodeConflict, "Thread already exists")
		} else if err != nil {
			return t.Thread, err
		}
		return t.Thread, copyCheckpoints(c, id, newID)
	})
}

// readdress makes the checkpoint addresses of a state name another thread.
func readdress(state json.RawMessage, from, to string) (json.RawMessage, error) {
	if state == nil {
		return nil, nil
	}
	m := map[string]json.RawMessage{}
	if err := json.Unmarshal(state, &m); err != nil {
		return nil, err
	}
	for _, key := range []string{"checkpoint", "parent_checkpoint"} {
		at := map[string]json.RawMessage{}
		if json.Unmarshal(m[key], &at) != nil || string(at["thread_id"]) != encode(from) {
			continue
		}
		at["thread_id"] = json.RawMessage(encode(to))
		m[key] = json.RawMessage(encode(at))
	}
	return json.Marshal(m)
}

// PutState stores the snapshot of a state update and recomputes the thread's row.
func (a *Agent) PutState(ctx context.Context, threadID, graphID string, s agent.Snapshot, now time.Time) (agent.Thread, error) {
	return write(ctx, a.engine, func(c Conn) (agent.Thread, error) {
		t, err := getLive(c, threadID, now)
		if err != nil {
			return t.Thread, err
		}
		if busy, err := hasRuns(c, threadID, `status IN ('pending', 'running')`); err != nil {
			return t.Thread, err
		} else if busy {
			return t.Thread, slipway.Errorf(slipway.CodeConflict, "Thread %s has in-flight runs", threadID)
		}
		if graphID != "" {
			if t.Metadata, err = merge(t.Metadata, json.RawMessage(`{"graph_id":`+encode(graphID)+`}`)); err != nil {
				return t.Thread, err
			}
		}
		if err := t.take(&s, now); err != nil {
			return t.Thread, err
		}
		t.Error, t.Status, t.UpdatedAt = nil, t.Base, now
		t.rearm(now)
		return t.Thread, saveThread(c, t)
	})
}

// take makes the row show a snapshot; Base follows from its next nodes.
func (t *thread) take(s *agent.Snapshot, now time.Time) error {
	state, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if t.Interrupts, err = interruptsOf(s.Tasks); err != nil {
		return err
	}
	t.Values, t.State, t.StateUpdatedAt = s.Values, state, now
	if string(t.Values) == "null" {
		t.Values = nil
	}
	t.Base = agent.ThreadIdle
	if next := string(s.Next); next != "" && next != "[]" && next != "null" {
		t.Base = agent.ThreadInterrupted
	}
	return nil
}

// interruptsOf builds {task id: [Interrupt]} from the tasks of a snapshot.
func interruptsOf(tasks json.RawMessage) (json.RawMessage, error) {
	if len(tasks) == 0 || string(tasks) == "[]" {
		return json.RawMessage("{}"), nil
	}
	var list []struct {
		ID         string            `json:"id"`
		Interrupts []json.RawMessage `json:"interrupts"`
	}
	if err := json.Unmarshal(tasks, &list); err != nil {
		return nil, slipway.Errorf(slipway.CodeInvalid, "the tasks of a snapshot are no list: %w", err)
	}
	out := map[string][]json.RawMessage{}
	for _, t := range list {
		if len(t.Interrupts) > 0 {
			out[t.ID] = t.Interrupts
		}
	}
	return json.Marshal(out)
}
