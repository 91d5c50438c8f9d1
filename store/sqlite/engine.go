package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	driver "modernc.org/sqlite"

	"github.com/slipway-dev/slipway/store/query"
)

const (
	maxGroup   = 256 // operations that share one commit
	maxReaders = 4
	// primary result codes of SQLite
	codeBusy       = 5
	codeLocked     = 6
	codeConstraint = 19
)

// engine is the one writer of a database file in this process, with readers beside it (DESIGN.md).
type engine struct {
	*query.Queue
	db      *sql.DB
	writer  *conn
	readers chan *conn
}

func newEngine(db *sql.DB) (*engine, error) {
	e := &engine{db: db, readers: make(chan *conn, maxReaders)}
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
	e.Queue = query.NewQueue(maxGroup, e.commit)
	return e, nil
}

// Read waits for every write enqueued before and runs fn on a snapshot that holds them.
func (e *engine) Read(ctx context.Context, fn func(query.Conn) error) error {
	if err := e.Settle(ctx); err != nil {
		return err
	}
	select {
	case r, ok := <-e.readers:
		if !ok {
			return query.ErrClosed()
		}
		defer func() { e.readers <- r }()
		return r.snapshot(fn)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// commit applies a group until it is committed; another process that holds the database only delays it.
func (e *engine) commit(group []*query.Op) {
	for pause := time.Millisecond; ; pause = min(2*pause, 4*time.Millisecond) {
		err := e.apply(group)
		if err == nil {
			return
		}
		_ = e.writer.do("ROLLBACK") // fails when nothing is open, which is what is wanted
		if !busy(err) {
			for _, o := range group {
				o.Err = fmt.Errorf("write to the database: %w", err)
			}
			return
		}
		time.Sleep(pause)
	}
}

func (e *engine) apply(group []*query.Op) error {
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
func (e *engine) applyOne(o *query.Op) error {
	if err := e.writer.do("SAVEPOINT op"); err != nil {
		return err
	}
	o.Err = o.Run(e.writer)
	if o.Err == nil {
		return e.writer.do("RELEASE op")
	}
	if busy(o.Err) {
		return o.Err
	}
	if err := e.writer.do("ROLLBACK TO op"); err != nil {
		return err
	}
	return e.writer.do("RELEASE op")
}

// close applies what is queued and closes the database.
func (e *engine) close() error {
	if !e.Close() {
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
