package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	driver "modernc.org/sqlite"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/store/query"
)

const (
	maxGroup = 256 // operations that share one commit
	// linger is how long a write that nobody waits for may wait for company: a run's checkpoints mostly go to the disk
	// together with its end.
	linger     = 10 * time.Millisecond
	maxReaders = 4
	// primary result codes of SQLite
	codeBusy       = 5
	codeLocked     = 6
	codeConstraint = 19
)

// engine is the one writer of a database file in this process, with readers beside it (DESIGN.md).
type engine struct {
	db      *sql.DB
	writer  *conn
	readers chan *conn

	mu     sync.Mutex
	wake   *sync.Cond
	queue  []*op
	last   *op  // the newest operation ever enqueued
	urgent bool // somebody waits for what is queued
	timed  bool // a timer runs that will make it urgent
	closed bool
	done   chan struct{} // closed when the writer has ended
}

// op is one enqueued write; done is closed once err is final.
type op struct {
	engine *engine
	fn     func(query.Conn) error
	err    error
	done   chan struct{}
}

// Wait returns once the operation is durable or has failed, and sees to it that it is soon.
func (o *op) Wait(ctx context.Context) error {
	o.engine.hurry(o)
	return o.Watch(ctx)
}

// Watch returns once the operation is durable or has failed.
func (o *op) Watch(ctx context.Context) error {
	select {
	case <-o.done:
		return o.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func newEngine(db *sql.DB) (*engine, error) {
	e := &engine{db: db, readers: make(chan *conn, maxReaders), done: make(chan struct{})}
	e.wake = sync.NewCond(&e.mu)
	var err error
	if e.writer, err = openConn(db); err != nil {
		return nil, err
	}
	// Another process may write all the time: asking often finds the moment between two of its commits.
	if err := e.writer.do("PRAGMA busy_timeout = 3"); err != nil {
		return nil, err
	}
	for range maxReaders {
		r, err := openConn(db)
		if err != nil {
			return nil, err
		}
		if err := r.do("PRAGMA query_only = 1"); err != nil {
			return nil, err
		}
		e.readers <- r
	}
	go e.work()
	return e, nil
}

// Enqueue hands a write to the writer, which has a moment's time for it.
func (e *engine) Enqueue(fn func(query.Conn) error) agent.Commit { return e.enqueue(fn, false) }

func (e *engine) enqueue(fn func(query.Conn) error, urgent bool) *op {
	o := &op{engine: e, fn: fn, done: make(chan struct{})}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		o.err = slipway.Errorf(slipway.CodeUnavailable, "the store is closed")
		close(o.done)
		return o
	}
	e.queue = append(e.queue, o)
	e.last = o
	switch {
	case urgent || len(e.queue) >= maxGroup:
		e.hurryLocked()
	case !e.timed && !e.urgent:
		e.timed = true
		time.AfterFunc(linger, e.lingered)
	}
	return o
}

// lingered ends the moment that writes nobody waits for had.
func (e *engine) lingered() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.timed = false
	e.hurryLocked()
}

// hurry lets the writer begin unless the operation is done.
func (e *engine) hurry(o *op) {
	select {
	case <-o.done:
	default:
		e.mu.Lock()
		defer e.mu.Unlock()
		e.hurryLocked()
	}
}

func (e *engine) hurryLocked() {
	if len(e.queue) > 0 {
		e.urgent = true
		e.wake.Signal()
	}
}

// Write hands a write to the writer and waits for its end; a context that ends meanwhile does not take it back.
func (e *engine) Write(ctx context.Context, fn func(query.Conn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	o := e.enqueue(fn, true)
	<-o.done
	return o.err
}

// Read waits for every write enqueued before and runs fn on a snapshot that holds them.
func (e *engine) Read(ctx context.Context, fn func(query.Conn) error) error {
	e.mu.Lock()
	last, closed := e.last, e.closed
	e.mu.Unlock()
	if closed {
		return slipway.Errorf(slipway.CodeUnavailable, "the store is closed")
	}
	if last != nil {
		e.hurry(last)
		select {
		case <-last.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	select {
	case r, ok := <-e.readers:
		if !ok {
			return slipway.Errorf(slipway.CodeUnavailable, "the store is closed")
		}
		defer func() { e.readers <- r }()
		return r.snapshot(fn)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// work is the writer: it takes what is queued, applies it in one transaction and tells everybody after the commit.
func (e *engine) work() {
	defer close(e.done)
	for {
		group := e.take()
		if group == nil {
			return
		}
		e.commit(group)
		for _, o := range group {
			close(o.done)
		}
	}
}

func (e *engine) take() []*op {
	e.mu.Lock()
	defer e.mu.Unlock()
	for !e.urgent && !e.closed {
		e.wake.Wait()
	}
	if len(e.queue) == 0 {
		return nil // closed
	}
	n := min(len(e.queue), maxGroup)
	group := e.queue[:n:n]
	e.queue = e.queue[n:]
	e.urgent = len(e.queue) > 0
	return group
}

// commit applies a group until it is committed; another process that holds the database only delays it.
func (e *engine) commit(group []*op) {
	for pause := time.Millisecond; ; pause = min(2*pause, 4*time.Millisecond) {
		err := e.apply(group)
		if err == nil {
			return
		}
		_ = e.writer.do("ROLLBACK") // fails when nothing is open, which is what is wanted
		if !busy(err) {
			for _, o := range group {
				o.err = fmt.Errorf("write to the database: %w", err)
			}
			return
		}
		time.Sleep(pause)
	}
}

func (e *engine) apply(group []*op) error {
	if err := e.writer.do("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	for _, o := range group {
		if err := e.applyOne(o); err != nil {
			return err
		}
	}
	return e.writer.do("COMMIT")
}

// applyOne runs one operation inside a savepoint, so that its failure is its own. The error it returns is one of the
// whole group.
func (e *engine) applyOne(o *op) error {
	if err := e.writer.do("SAVEPOINT op"); err != nil {
		return err
	}
	o.err = call(o.fn, e.writer)
	if o.err == nil {
		return e.writer.do("RELEASE op")
	}
	if busy(o.err) {
		return o.err
	}
	if err := e.writer.do("ROLLBACK TO op"); err != nil {
		return err
	}
	return e.writer.do("RELEASE op")
}

// call keeps a panic of one operation from ending the writer.
func call(fn func(query.Conn) error, c query.Conn) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a transaction: %v", p)
		}
	}()
	return fn(c)
}

// close applies what is queued and closes the database.
func (e *engine) close() error {
	e.mu.Lock()
	already := e.closed
	e.closed = true
	e.wake.Signal()
	e.mu.Unlock()
	<-e.done
	if already {
		return nil
	}
	errs := []error{e.writer.close()}
	for range maxReaders {
		errs = append(errs, (<-e.readers).close())
	}
	close(e.readers)
	return errors.Join(append(errs, e.db.Close())...)
}

func code(err error) int {
	var e *driver.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

func busy(err error) bool { c := code(err); return c == codeBusy || c == codeLocked }
