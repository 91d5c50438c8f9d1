package query

import (
	"context"
	"time"

	"github.com/slipway-dev/slipway/agent"
)

const selectExpired = `SELECT ` + threadColumns + ` FROM threads WHERE expires_at > 0 AND expires_at <= ? ORDER BY expires_at, id LIMIT ?`

// DueThreads returns threads whose TTL is over.
func (a *Agent) DueThreads(ctx context.Context, now time.Time, limit int) ([]agent.Thread, error) {
	return read(ctx, a.engine, func(c Conn) ([]agent.Thread, error) {
		rows, err := all(c, scanThread, selectExpired, micros(now), limit)
		out := make([]agent.Thread, 0, len(rows))
		for _, r := range rows {
			out = append(out, r.Thread)
		}
		return out, err
	})
}

// KeepLatest carries out a keep_latest TTL that is over.
func (a *Agent) KeepLatest(ctx context.Context, id string, now time.Time) error {
	return a.engine.Write(ctx, func(c Conn) error {
		t, ok, err := one(c, scanThread, selectThread, id)
		if err != nil || !ok || t.TTL == nil || t.TTL.Strategy != agent.TTLKeepLatest || t.TTL.ExpiresAt.IsZero() || t.TTL.ExpiresAt.After(now) {
			return err
		}
		busy, err := hasRuns(c, id, `status IN ('pending', 'running')`)
		if err != nil || busy {
			return err // the end of the run arms it again
		}
		t.TTL.ExpiresAt = time.Time{}
		if err := saveThread(c, t); err != nil {
			return err
		}
		return prune(c, id)
	})
}

// Storage measures a thread.
func (a *Agent) Storage(ctx context.Context, id string) (agent.Storage, error) {
	return read(ctx, a.engine, func(c Conn) (agent.Storage, error) {
		s := agent.Storage{Channels: map[string]agent.Volume{}}
		if _, err := getThread(c, id); err != nil {
			return s, err
		}
		var err error
		if s.Checkpoints, _, err = one(c, scanVolume, `SELECT count(*), COALESCE(SUM(octet_length(header) + octet_length(metadata)), 0) FROM checkpoints WHERE thread_id = ?`, id); err != nil {
			return s, err
		}
		if s.Writes, _, err = one(c, scanVolume, `SELECT count(*), COALESCE(SUM(octet_length(bytes)), 0) FROM writes WHERE thread_id = ?`, id); err != nil {
			return s, err
		}
		_, err = all(c, func(row scanner) (v agent.Volume, err error) {
			var channel string
			err = row.Scan(&channel, &v.Count, &v.Bytes)
			s.Channels[channel] = v
			return v, err
		}, `SELECT channel, count(*), COALESCE(SUM(octet_length(bytes)), 0) FROM blobs WHERE thread_id = ? GROUP BY channel`, id)
		return s, err
	})
}

func scanVolume(s scanner) (v agent.Volume, err error) { return v, s.Scan(&v.Count, &v.Bytes) }
