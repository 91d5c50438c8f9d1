package query

import (
	"context"
	"encoding/json"
	"time"

	"github.com/slipway-dev/slipway/agent"
)

const (
	insertNotice = `INSERT INTO notices (id, url, run, vals, attempts, due_at, created_at) VALUES (?, ?, ?, ?, 0, ?, ?) ON CONFLICT (id) DO NOTHING`
	dueNotices   = `SELECT id, url, run, vals, attempts, created_at FROM notices WHERE due_at <= ? ORDER BY due_at, id LIMIT ?`
	takeNotice   = `UPDATE notices SET attempts = attempts + 1, due_at = ? WHERE id = ?`
)

func scanNotice(s scanner) (n agent.Notice, err error) {
	var run, values secret
	var created int64
	if err := s.Scan(&n.ID, &n.URL, &run, &values, &n.Attempts, &created); err != nil {
		return n, err
	}
	n.Values, n.CreatedAt = values.raw(), fromMicros(created)
	return n, json.Unmarshal([]byte(run.String), &n.Run)
}

// announce keeps the word that a run has ended for whoever its creator named.
func announce(c Conn, r agent.Run, values json.RawMessage) error {
	if r.Kwargs.Webhook == "" || r.Status == agent.RunRollback {
		return nil
	}
	_, err := c.Exec(insertNotice, r.ID, r.Kwargs.Webhook, hidden(encode(r)), hidden(text(values)), micros(r.EndedAt), micros(r.EndedAt))
	return err
}

// TakeNotices returns notices that are due and puts them off.
func (a *Agent) TakeNotices(ctx context.Context, now, until time.Time, limit int) ([]agent.Notice, error) {
	return write(ctx, a.engine, func(c Conn) ([]agent.Notice, error) {
		list, err := all(c, scanNotice, dueNotices, micros(now), limit)
		for i := range list {
			if err != nil {
				break
			}
			list[i].Attempts++
			_, err = c.Exec(takeNotice, micros(until), list[i].ID)
		}
		return list, err
	})
}

// NextNotice returns when the next notice is due.
func (a *Agent) NextNotice(ctx context.Context) (time.Time, error) {
	return read(ctx, a.engine, func(c Conn) (time.Time, error) {
		n, _, err := one(c, scalar[int64], `SELECT COALESCE(MIN(due_at), 0) FROM notices`)
		return fromMicros(n), err
	})
}

// PutOffNotice makes a notice due later.
func (a *Agent) PutOffNotice(ctx context.Context, id string, until time.Time) error {
	return a.engine.Write(ctx, func(c Conn) error {
		_, err := c.Exec(`UPDATE notices SET due_at = ? WHERE id = ?`, micros(until), id)
		return err
	})
}

// DropNotice removes a notice.
func (a *Agent) DropNotice(ctx context.Context, id string) error {
	return a.engine.Write(ctx, func(c Conn) error {
		_, err := c.Exec(`DELETE FROM notices WHERE id = ?`, id)
		return err
	})
}
