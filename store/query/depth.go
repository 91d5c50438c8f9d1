package query

import (
	"context"

	"github.com/slipway-dev/slipway/agent"
)

// Each part reads one partial index and no row.
const selectQueue = `
SELECT (SELECT COUNT(*) FROM runs WHERE status = 'pending'), (SELECT COUNT(*) FROM runs WHERE status = 'running'),
  COALESCE((SELECT created_at FROM runs WHERE status = 'pending' ORDER BY created_at, id LIMIT 1), 0)`

// Queue counts the runs in flight.
func (a *Agent) Queue(ctx context.Context) (agent.Queue, error) {
	return read(ctx, a.engine, func(c Conn) (agent.Queue, error) {
		q, _, err := one(c, scanQueue, selectQueue)
		return q, err
	})
}

func scanQueue(s scanner) (q agent.Queue, err error) {
	var oldest int64
	err = s.Scan(&q.Pending, &q.Running, &oldest)
	q.Oldest = fromMicros(oldest)
	return q, err
}
