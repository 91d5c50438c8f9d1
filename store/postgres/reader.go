package postgres

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/store/query"
)

// readers are the connections of one schema that read snapshots. They are opened when they are needed.
type readers struct {
	server server
	turns  chan struct{} // one for each connection there may be
	queued atomic.Int64  // reads that had to wait for their turn
	failed atomic.Int64  // reads that got no connection

	mu     sync.Mutex
	idle   []*session // the one used last comes first, so that few are used where few are needed
	closed bool
}

func newReaders(sv server, limit int) *readers {
	return &readers{server: sv, turns: make(chan struct{}, limit)}
}

// snapshot runs fn in a read transaction.
func (r *readers) snapshot(ctx context.Context, fn func(query.Conn) error) error {
	if err := r.turn(ctx); err != nil {
		return err
	}
	s, err := r.take(ctx)
	if err != nil {
		r.failed.Add(1)
		<-r.turns
		return err
	}
	s.begin(statement{text: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"})
	if err = query.Guard(fn, s); err == nil && s.writes > 0 {
		err = s.flush()
	}
	if err == nil {
		err = s.failed
	}
	err = unavailable(err, s)
	go r.give(s) // nobody waits for the end of a transaction that changes nothing
	return err
}

// turn waits for one of the connections to be free.
func (r *readers) turn(ctx context.Context) error {
	select {
	case r.turns <- struct{}{}:
		return nil
	default:
		r.queued.Add(1)
	}
	select {
	case r.turns <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// PoolStats is the state of a store's connections. One of them is the writer's, always in use.
type PoolStats struct {
	Max, Size, Available int
	Queued, Errors       int64 // reads that waited for a connection, and that got none
}

func (r *readers) stats() PoolStats {
	r.mu.Lock()
	idle := len(r.idle)
	r.mu.Unlock()
	busy := len(r.turns)
	return PoolStats{Max: cap(r.turns) + 1, Size: idle + busy + 1, Available: idle, Queued: r.queued.Load(), Errors: r.failed.Load()}
}

// unavailable tells apart an error of the way to the database.
func unavailable(err error, s *session) error {
	if err != nil && s.c.IsClosed() && slipway.ErrorCode(err) == slipway.CodeInternal {
		return slipway.Errorf(slipway.CodeUnavailable, "the database does not answer: %w", err)
	}
	return err
}

func (r *readers) take(ctx context.Context) (*session, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, query.ErrClosed()
	}
	if n := len(r.idle); n > 0 {
		s := r.idle[n-1]
		r.idle = r.idle[:n-1]
		return s, nil
	}
	r.mu.Unlock()
	c, err := r.server.connect(ctx)
	r.mu.Lock()
	if err != nil {
		return nil, slipway.Errorf(slipway.CodeUnavailable, "the database does not answer: %w", err)
	}
	s := newSession(c)
	s.renew = func() (*pgx.Conn, error) { return r.server.connect(context.Background()) }
	return s, nil
}

// give ends the transaction and lets others have the connection.
func (r *readers) give(s *session) {
	defer func() { <-r.turns }()
	if s.trips > 0 && !s.c.IsClosed() {
		if err := s.simple("ROLLBACK"); err != nil {
			_ = closeConn(s.c)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.c.IsClosed() {
		return
	}
	if r.closed {
		_ = closeConn(s.c)
		return
	}
	r.idle = append(r.idle, s)
}

// close closes the connections that are not in use; the others go when they are given back, which close waits for.
func (r *readers) close() error {
	r.mu.Lock()
	r.closed = true
	idle := r.idle
	r.idle = nil
	r.mu.Unlock()
	for _, s := range idle {
		if err := closeConn(s.c); err != nil {
			return fmt.Errorf("close a database connection: %w", err)
		}
	}
	for range cap(r.turns) {
		r.turns <- struct{}{}
	}
	for range cap(r.turns) {
		<-r.turns
	}
	return nil
}

// engine serves one schema: its writer and its readers.
type engine struct {
	*writer
	readers *readers
}

// Read waits for every write enqueued before and runs fn on a snapshot that holds them.
func (e *engine) Read(ctx context.Context, fn func(query.Conn) error) error {
	if err := e.Settle(ctx); err != nil {
		return err
	}
	return e.readers.snapshot(ctx, fn)
}
