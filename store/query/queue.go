package query

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

// linger is how long a write that nobody waits for may wait for company: a run's checkpoints mostly go to the disk
// together with its end.
const linger = 10 * time.Millisecond

// Queue is the order in which the writes of one process are applied. One goroutine takes what is queued, in groups, and
// applies each group in one transaction. It is safe for concurrent use.
type Queue struct {
	limit int
	apply func(group []*Op)

	mu     sync.Mutex
	wake   *sync.Cond
	queue  []*Op
	last   *Op  // the newest operation ever enqueued
	urgent bool // somebody waits for what is queued
	timed  bool // a timer runs that will make it urgent
	closed bool
	done   chan struct{} // closed when the goroutine has ended
}

// Op is one enqueued write. Err is its outcome; the queue's apply sets it.
type Op struct {
	Err   error
	queue *Queue
	fn    func(Conn) error
	done  chan struct{} // closed once Err is final
}

// NewQueue starts a queue. apply gets groups of up to limit operations, one group at a time, and returns when every Err is
// final and what succeeded is durable.
func NewQueue(limit int, apply func(group []*Op)) *Queue {
	q := &Queue{limit: limit, apply: apply, done: make(chan struct{})}
	q.wake = sync.NewCond(&q.mu)
	go q.work()
	return q
}

// Run executes the operation's statements; a panic becomes an error, so that it ends the operation and not the writer.
func (o *Op) Run(c Conn) error { return Guard(o.fn, c) }

// Guard calls fn and turns its panic into an error.
func Guard(fn func(Conn) error, c Conn) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a transaction: %v", p)
		}
	}()
	return fn(c)
}

// Wait returns once the operation is durable or has failed, and sees to it that it is soon.
func (o *Op) Wait(ctx context.Context) error {
	o.queue.hurry(o)
	return o.Watch(ctx)
}

// Watch returns once the operation is durable or has failed.
func (o *Op) Watch(ctx context.Context) error {
	select {
	case <-o.done:
		return o.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Enqueue hands a write to the writer, which has a moment's time for it.
func (q *Queue) Enqueue(fn func(Conn) error) agent.Commit { return q.enqueue(fn, false) }

// Write hands a write to the writer and waits for its end; a context that ends meanwhile does not take it back.
func (q *Queue) Write(ctx context.Context, fn func(Conn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	o := q.enqueue(fn, true)
	<-o.done
	return o.Err
}

func (q *Queue) enqueue(fn func(Conn) error, urgent bool) *Op {
	o := &Op{queue: q, fn: fn, done: make(chan struct{})}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		o.Err = ErrClosed()
		close(o.done)
		return o
	}
	q.queue = append(q.queue, o)
	q.last = o
	switch {
	case urgent || len(q.queue) >= q.limit:
		q.hurryLocked()
	case !q.timed && !q.urgent:
		q.timed = true
		time.AfterFunc(linger, q.lingered)
	}
	return o
}

// ErrClosed is the answer of a store that has been closed.
func ErrClosed() error { return slipway.Errorf(slipway.CodeUnavailable, "the store is closed") }

// lingered ends the moment that writes nobody waits for had.
func (q *Queue) lingered() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.timed = false
	q.hurryLocked()
}

// hurry lets the writer begin unless the operation is done.
func (q *Queue) hurry(o *Op) {
	select {
	case <-o.done:
	default:
		q.mu.Lock()
		defer q.mu.Unlock()
		q.hurryLocked()
	}
}

func (q *Queue) hurryLocked() {
	if len(q.queue) > 0 {
		q.urgent = true
		q.wake.Signal()
	}
}

// Settle waits until every write enqueued before is final.
func (q *Queue) Settle(ctx context.Context) error {
	q.mu.Lock()
	last, closed := q.last, q.closed
	q.mu.Unlock()
	if closed {
		return ErrClosed()
	}
	if last == nil {
		return nil
	}
	q.hurry(last)
	select {
	case <-last.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (q *Queue) work() {
	defer close(q.done)
	for {
		group := q.take()
		if group == nil {
			return
		}
		q.apply(group)
		for _, o := range group {
			close(o.done)
		}
	}
}

func (q *Queue) take() []*Op {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.urgent && !q.closed {
		q.wake.Wait()
	}
	if len(q.queue) == 0 {
		return nil // closed
	}
	n := min(len(q.queue), q.limit)
	group := q.queue[:n:n]
	q.queue = q.queue[n:]
	q.urgent = len(q.queue) > 0
	return group
}

// Close applies what is queued and ends the writer; first says whether this call was the one that closed it.
func (q *Queue) Close() (first bool) {
	q.mu.Lock()
	first = !q.closed
	q.closed = true
	q.wake.Signal()
	q.mu.Unlock()
	<-q.done
	return first
}
