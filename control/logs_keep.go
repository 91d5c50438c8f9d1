package control

import (
	"context"
	"sync"
	"time"

	"github.com/slipway-dev/slipway"
)

// logRest is the least time between two looks for log lines that are too old.
const logRest = time.Minute

// logSizes counts what was logged since a deployment's log was last cut to its limit.
type logSizes struct {
	mu    sync.Mutex
	since map[string]int64
}

// add counts the lines and returns the deployments whose log may be too large: after a sixteenth of the limit, and once
// after a start, when nobody knows.
func (l *logSizes) add(entries []slipway.LogEntry, limit int64) (large []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.since == nil {
		l.since = map[string]int64{}
	}
	for _, e := range entries {
		if _, known := l.since[e.DeploymentID]; !known {
			l.since[e.DeploymentID] = limit
		}
		l.since[e.DeploymentID] += int64(len(e.Message)) + slipway.LogLineCost
		if l.since[e.DeploymentID] > limit/16 {
			l.since[e.DeploymentID] = 0
			large = append(large, e.DeploymentID)
		}
	}
	return large
}

// storeLogs appends log lines and keeps each deployment's log within its limit; the oldest lines go first.
func (s *Service) storeLogs(ctx context.Context, entries []slipway.LogEntry) error {
	if err := s.store.AppendLogs(ctx, entries); err != nil {
		return err
	}
	for _, id := range s.logged.add(entries, s.cfg.LogLimit) {
		if err := s.cutLog(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// cutLog looks on a snapshot, so that nobody waits for it, and writes only if there is something to drop.
func (s *Service) cutLog(ctx context.Context, deploymentID string) error {
	var beyond int64
	err := s.store.View(ctx, func(tx slipway.Tx) (err error) {
		beyond, err = tx.LogsBeyond(deploymentID, s.cfg.LogLimit)
		return err
	})
	if err != nil || beyond == 0 {
		return err
	}
	return s.store.Update(ctx, func(tx slipway.Tx) error { return tx.DropLogs(deploymentID, beyond) })
}

// sweepLogs removes deploy log lines whose retention is over.
func (s *Service) sweepLogs(ctx context.Context) (time.Time, error) {
	for {
		now := s.clock()
		var oldest time.Time
		err := s.store.View(ctx, func(tx slipway.Tx) (err error) {
			oldest, err = tx.ExpireLogs(time.Time{}, 0)
			return err
		})
		if err != nil || oldest.IsZero() {
			return time.Time{}, err
		}
		if due := oldest.Add(s.cfg.LogRetention); due.After(now) {
			return later(due, now.Add(logRest)), nil
		}
		if err := s.store.Update(ctx, func(tx slipway.Tx) error {
			_, err := tx.ExpireLogs(now.Add(-s.cfg.LogRetention+time.Microsecond), expireBatch)
			return err
		}); err != nil {
			return time.Time{}, err
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
