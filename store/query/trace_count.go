package query

import (
	"context"
	"fmt"
	"time"

	"github.com/slipway-dev/slipway/agent"
)

// DefaultTraceInterval is the interval in which traces are counted (control-plane reference 9).
const DefaultTraceInterval = time.Hour

var _ agent.TraceCounts = (*Agent)(nil)

// CountBy sets the interval in which traces are counted, at least a millisecond. It is called before the store is used.
func (a *Agent) CountBy(interval time.Duration) { a.interval = max(interval, time.Millisecond) }

const countTrace = `INSERT INTO trace_counts (start, length, first_at, last_at, traces, sealed) VALUES (?, ?, ?, ?, 1, 0)
  ON CONFLICT (start, length) WHERE sealed = 0 DO UPDATE SET traces = trace_counts.traces + 1,
  first_at = CASE WHEN excluded.first_at < trace_counts.first_at THEN excluded.first_at ELSE trace_counts.first_at END,
  last_at = CASE WHEN excluded.last_at > trace_counts.last_at THEN excluded.last_at ELSE trace_counts.last_at END`

// count counts a run that ends now, unless no worker ever had it.
func (a *Agent) count(c Conn, r agent.Run, now time.Time) error {
	if r.Epoch == 0 {
		return nil
	}
	at, length := micros(now), a.interval.Microseconds()
	return c.Send(countTrace, at-at%length, length, at, at)
}

const (
	sealCounts   = `UPDATE trace_counts SET sealed = 1 WHERE sealed = 0 AND start + length <= ?`
	sealedCounts = `SELECT seq, start, length, first_at, last_at, traces FROM trace_counts WHERE sealed = 1 ORDER BY seq LIMIT ?`
	dropCounts   = `DELETE FROM trace_counts WHERE sealed = 1 AND seq IN (%s)`
)

// SealCounts closes the intervals that are over and returns the closed counts.
func (a *Agent) SealCounts(ctx context.Context, now time.Time, limit int) ([]agent.TraceCount, error) {
	list, err := write(ctx, a.engine, func(c Conn) ([]agent.TraceCount, error) {
		if _, err := c.Exec(sealCounts, micros(now)); err != nil {
			return nil, err
		}
		return all(c, scanTraceCount, sealedCounts, limit)
	})
	if err != nil {
		return nil, fmt.Errorf("seal trace counts: %w", err)
	}
	return list, nil
}

// DropCounts removes counts that were billed.
func (a *Agent) DropCounts(ctx context.Context, seqs []int64) error {
	if len(seqs) == 0 {
		return nil
	}
	marks, args := seqList(seqs)
	err := a.engine.Write(ctx, func(c Conn) error {
		_, err := c.Exec(fmt.Sprintf(dropCounts, marks), args...)
		return err
	})
	if err != nil {
		return fmt.Errorf("drop trace counts: %w", err)
	}
	return nil
}

func scanTraceCount(s scanner) (n agent.TraceCount, err error) {
	var start, length, first, last int64
	err = s.Scan(&n.Seq, &start, &length, &first, &last, &n.Traces)
	n.From, n.To, n.First, n.Last = fromMicros(start), fromMicros(start+length), fromMicros(first), fromMicros(last)
	return n, err
}
