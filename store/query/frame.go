package query

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/slipway-dev/slipway/agent"
)

const insertFrame = `INSERT INTO frames (run_id, seq, thread_id, id, event, data, position)
VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`

// AppendFrames stores frames.
func (a *Agent) AppendFrames(_ context.Context, frames []agent.Frame) agent.Commit {
	return a.engine.Enqueue(func(c Conn) error { return addFrames(c, frames) })
}

func addFrames(c Conn, frames []agent.Frame) error {
	for _, f := range frames {
		if err := c.Send(insertFrame, f.RunID, f.Seq, f.ThreadID, f.ID, f.Event, hidden(string(f.Data)), agent.FramePosition(f.ID)); err != nil {
			return err
		}
	}
	return nil
}

const frameColumns = `run_id, seq, thread_id, id, event, data`

func scanFrame(s scanner) (f agent.Frame, err error) {
	var data secret
	err = s.Scan(&f.RunID, &f.Seq, &f.ThreadID, &f.ID, &f.Event, &data)
	f.Data = json.RawMessage(data.String)
	return f, err
}

const selectFrames = `SELECT ` + frameColumns + ` FROM frames WHERE run_id = ? AND seq > ? ORDER BY seq LIMIT ?`

// Frames returns the kept frames of a run after a position.
func (a *Agent) Frames(ctx context.Context, runID string, after int64, limit int) ([]agent.Frame, error) {
	return a.frames(ctx, selectFrames, runID, after, limit)
}

const selectThreadFrames = `
SELECT ` + frameColumns + ` FROM frames WHERE thread_id = ? AND position > ? ORDER BY position LIMIT ?`

// ThreadFrames returns the kept frames of a thread after a position.
func (a *Agent) ThreadFrames(ctx context.Context, threadID string, after int64, limit int) ([]agent.Frame, error) {
	return a.frames(ctx, selectThreadFrames, threadID, after, limit)
}

func (a *Agent) frames(ctx context.Context, query, of string, after int64, limit int) ([]agent.Frame, error) {
	if limit <= 0 {
		limit = unbounded
	}
	return read(ctx, a.engine, func(c Conn) ([]agent.Frame, error) { return all(c, scanFrame, query, of, after, limit) })
}

const (
	selectLastFrame       = `SELECT coalesce(max(position), 0) FROM frames`
	selectThreadLastFrame = selectLastFrame + ` WHERE thread_id = ?`
)

// LastFrame returns the greatest id of kept frames.
func (a *Agent) LastFrame(ctx context.Context, threadID string) (string, error) {
	query, args := selectLastFrame, []any{}
	if threadID != "" {
		query, args = selectThreadLastFrame, []any{threadID}
	}
	last, err := read(ctx, a.engine, func(c Conn) (int64, error) {
		at, _, err := one(c, scalar[int64], query, args...)
		return at, err
	})
	if err != nil || last == 0 {
		return "", err
	}
	return agent.FrameID(last), nil
}

const followThread = `UPDATE threads SET followed_until = CASE WHEN followed_until < ?1 THEN ?1 ELSE followed_until END WHERE id = ?2`

// FollowThreads records that somebody follows the streams of threads.
func (a *Agent) FollowThreads(ctx context.Context, threadIDs []string, until time.Time) ([]string, error) {
	return write(ctx, a.engine, func(c Conn) (gone []string, err error) {
		for _, id := range threadIDs {
			n, err := c.Exec(followThread, micros(until), id)
			if err != nil {
				return nil, err
			}
			if n == 0 {
				gone = append(gone, id)
			}
		}
		return gone, nil
	})
}

const dropFrames = `
DELETE FROM frames WHERE run_id IN (
  SELECT f.run_id FROM (SELECT DISTINCT run_id FROM frames) AS f LEFT JOIN runs AS r ON r.id = f.run_id
  WHERE r.ended_at > 0 AND r.ended_at < ?1 OR r.id IS NULL AND NOT EXISTS (
    SELECT 1 FROM frames AS g WHERE g.run_id = f.run_id AND substr(g.id, 1, 13) >= ?2))`

// DropFrames removes the frames of runs that ended before the given time. Frames whose run is gone go by their own age:
// the milliseconds their ids begin with.
func (a *Agent) DropFrames(ctx context.Context, endedBefore time.Time) error {
	return a.engine.Write(ctx, func(c Conn) error {
		if _, err := c.Exec(dropFrames, micros(endedBefore), fmt.Sprintf("%013d", max(endedBefore.UnixMilli(), 0))); err != nil {
			return err
		}
		_, err := c.Exec(dropGone)
		return err
	})
}

const (
	insertGone = `INSERT INTO gone_threads (run_id, thread_id, metadata) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`
	selectGone = `SELECT thread_id, metadata FROM gone_threads WHERE run_id = ?`
	dropGone   = `DELETE FROM gone_threads WHERE NOT EXISTS (SELECT 1 FROM frames AS f WHERE f.run_id = gone_threads.run_id)`
)

// GoneThread returns what is left of the thread of a temporary run that has ended.
func (a *Agent) GoneThread(ctx context.Context, runID string) (agent.Thread, error) {
	return read(ctx, a.engine, func(c Conn) (agent.Thread, error) {
		t, ok, err := one(c, scanGone, selectGone, runID)
		if err == nil && !ok {
			err = noRun()
		}
		return t, err
	})
}

func scanGone(s scanner) (t agent.Thread, err error) {
	var metadata string
	err = s.Scan(&t.ID, &metadata)
	t.Metadata = json.RawMessage(metadata)
	return t, err
}
