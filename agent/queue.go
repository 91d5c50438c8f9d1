package agent

import (
	"context"
	"time"
)

// Queue is how much work a deployment has, on all its instances.
type Queue struct {
	Pending int // delayed runs count
	Running int
	Oldest  time.Time // when the oldest pending run was, or is, due; zero without one
}

// QueueStore measures the queue.
type QueueStore interface {
	// Queue counts the runs in flight. Its cost grows with them and not with what has ended.
	Queue(ctx context.Context) (Queue, error)
}
