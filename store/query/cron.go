package query

import (
	"context"
	"encoding/json"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

const (
	cronColumns = `id, assistant_id, thread_id, schedule, timezone, end_time, next_run, enabled, on_run_completed, user_id, metadata,
  payload, request, created_at, updated_at`
	selectCron = `SELECT ` + cronColumns + ` FROM crons WHERE id = ?`
	insertCron = `INSERT INTO crons (` + cronColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	updateCron = `
UPDATE crons SET assistant_id = ?, schedule = ?, timezone = ?, end_time = ?, next_run = ?, enabled = ?, on_run_completed = ?, metadata = ?,
  payload = ?, request = ?, updated_at = ? WHERE id = ?`
	selectNextCron = `SELECT COALESCE(MIN(next_run), 0) FROM crons WHERE enabled = 1 AND next_run > 0`
	selectDueCrons = `SELECT ` + cronColumns + ` FROM crons WHERE enabled = 1 AND next_run > 0 AND next_run <= ? ORDER BY next_run, id LIMIT ?`
)

func scanCron(s scanner) (c agent.Cron, err error) {
	var end, next, created, updated, enabled int64
	var metadata string
	var payload, request secret
	err = s.Scan(&c.ID, &c.AssistantID, &c.ThreadID, &c.Schedule, &c.Timezone, &end, &next, &enabled, &c.OnRunCompleted, &c.UserID, &metadata,
		&payload, &request, &created, &updated)
	c.EndTime, c.NextRun, c.CreatedAt, c.UpdatedAt = fromMicros(end), fromMicros(next), fromMicros(created), fromMicros(updated)
	c.Metadata, c.Payload, c.Request, c.Enabled = json.RawMessage(metadata), json.RawMessage(payload.String), json.RawMessage(request.String), enabled == 1
	return c, err
}

func getCron(c Conn, id string) (agent.Cron, error) {
	v, ok, err := one(c, scanCron, selectCron, id)
	if err == nil && !ok {
		err = slipway.Errorf(slipway.CodeNotFound, "Cron not found")
	}
	return v, err
}

func saveCron(c Conn, v agent.Cron) error {
	_, err := c.Exec(updateCron, v.AssistantID, v.Schedule, v.Timezone, micros(v.EndTime), micros(v.NextRun), bit(v.Enabled), v.OnRunCompleted,
		object(v.Metadata), hidden(object(v.Payload)), hidden(object(v.Request)), micros(v.UpdatedAt), v.ID)
	return err
}

// CreateCron inserts a cron.
func (a *Agent) CreateCron(ctx context.Context, v agent.Cron) error {
	return a.engine.Write(ctx, func(c Conn) error {
		if v.ThreadID != "" {
			if _, err := getLive(c, v.ThreadID, v.CreatedAt); err != nil {
				return err
			}
		}
		_, err := c.Exec(insertCron, v.ID, v.AssistantID, v.ThreadID, v.Schedule, v.Timezone, micros(v.EndTime), micros(v.NextRun), bit(v.Enabled),
			v.OnRunCompleted, v.UserID, object(v.Metadata), hidden(object(v.Payload)), hidden(object(v.Request)), micros(v.CreatedAt), micros(v.UpdatedAt))
		return err
	})
}

// Cron returns one cron.
func (a *Agent) Cron(ctx context.Context, id string) (agent.Cron, error) {
	return read(ctx, a.engine, func(c Conn) (agent.Cron, error) { return getCron(c, id) })
}

func (a *Agent) cronsWhere(q agent.CronQuery) *where {
	w := &where{}
	if q.AssistantID != "" {
		w.and("assistant_id = ?", q.AssistantID)
	}
	if q.ThreadID != "" {
		w.and("thread_id = ?", q.ThreadID)
	}
	if q.Enabled != nil {
		w.and("enabled = ?", bit(*q.Enabled))
	}
	if q.Metadata != nil {
		w.and(a.dialect.Contains("metadata"), string(q.Metadata))
	}
	w.allow(a.dialect.Allows("metadata"), q.Filter)
	return w
}

// Crons lists crons.
func (a *Agent) Crons(ctx context.Context, q agent.CronQuery) ([]agent.Cron, error) {
	columns := map[string]string{
		"": "created_at", "cron_id": "id", "assistant_id": "assistant_id", "thread_id": "thread_id", "next_run_date": "next_run",
		"end_time": "end_time", "created_at": "created_at", "updated_at": "updated_at",
	}
	order, err := orderBy(columns, q.SortBy, q.Ascending)
	if err != nil {
		return nil, err
	}
	return read(ctx, a.engine, func(c Conn) ([]agent.Cron, error) {
		tail, args := a.cronsWhere(q).page(order, q.Limit, q.Offset)
		return all(c, scanCron, `SELECT `+cronColumns+` FROM crons`+tail, args...)
	})
}

// CountCrons counts what Crons would list without bounds.
func (a *Agent) CountCrons(ctx context.Context, q agent.CronQuery) (int, error) {
	return read(ctx, a.engine, func(c Conn) (int, error) {
		w := a.cronsWhere(q)
		n, _, err := one(c, scalar[int], `SELECT count(*) FROM crons`+w.text, w.args...)
		return n, err
	})
}

// ChangeCron replaces a cron by what change makes of it.
func (a *Agent) ChangeCron(ctx context.Context, id string, change func(agent.Cron) (agent.Cron, error)) (agent.Cron, error) {
	return write(ctx, a.engine, func(c Conn) (agent.Cron, error) {
		v, err := getCron(c, id)
		if err != nil {
			return v, err
		}
		if v, err = change(v); err != nil {
			return v, err
		}
		return v, saveCron(c, v)
	})
}

// DeleteCron removes a cron.
func (a *Agent) DeleteCron(ctx context.Context, id string) error {
	return a.engine.Write(ctx, func(c Conn) error {
		if _, err := getCron(c, id); err != nil {
			return err
		}
		_, err := c.Exec(`DELETE FROM crons WHERE id = ?`, id)
		return err
	})
}

// NextCron returns when the next cron is due.
func (a *Agent) NextCron(ctx context.Context) (time.Time, error) {
	return read(ctx, a.engine, func(c Conn) (time.Time, error) {
		n, _, err := one(c, scalar[int64], selectNextCron)
		return fromMicros(n), err
	})
}

// DueCrons returns crons that are due.
func (a *Agent) DueCrons(ctx context.Context, now time.Time, limit int) ([]agent.Cron, error) {
	return read(ctx, a.engine, func(c Conn) ([]agent.Cron, error) { return all(c, scanCron, selectDueCrons, micros(now), limit) })
}

// Fire moves a cron to its next date and admits its run.
func (a *Agent) Fire(ctx context.Context, f agent.Firing) (out agent.Admitted, fired bool, err error) {
	err = a.engine.Write(ctx, func(c Conn) error {
		out, fired = agent.Admitted{}, false
		changed, err := c.Exec(`UPDATE crons SET next_run = ? WHERE id = ? AND enabled = 1 AND next_run = ?`, micros(f.Next), f.CronID, micros(f.Due))
		if err != nil || changed == 0 {
			return err
		}
		fired = true
		if f.Run == nil {
			return nil
		}
		out, err = a.admit(c, *f.Run)
		if code := slipway.ErrorCode(err); code == slipway.CodeConflict || code == slipway.CodeNotFound {
			return nil // nothing was written for the run
		}
		return err
	})
	return out, fired, err
}
