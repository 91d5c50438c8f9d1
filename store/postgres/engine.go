package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/store/query"
)

const (
	// maxGroup is how many operations share one commit: as many savepoints as a transaction may have before other
	// sessions must look them up on disk.
	maxGroup = 64
	// writeLimit is how long a write is tried while the database is away.
	writeLimit = 30 * time.Second
)

// writer applies the writes of one process to one schema, a group at a time, under the schema's lock: writers of other
// processes take turns with it (DESIGN.md).
type writer struct {
	*query.Queue
	server server
	lock   int64        // the advisory lock of all writers of these records
	news   string       // the channel that hears of every change; "" = none
	pid    atomic.Int64 // of the session, which tells our own news from those of others
	s      *session
}

func newWriter(sv server, purpose, news string) *writer {
	w := &writer{server: sv, lock: sv.key(purpose), news: news}
	w.Queue = query.NewQueue(maxGroup, w.commit)
	return w
}

// close applies what is queued and closes the connection.
func (w *writer) close() error {
	if !w.Close() || w.s == nil {
		return nil
	}
	return closeConn(w.s.c)
}

// commit applies a group until it is committed, cannot be, or the database has been away for too long.
func (w *writer) commit(group []*query.Op) {
	deadline := time.Now().Add(writeLimit)
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := w.apply(group)
		if err == nil {
			return
		}
		if w.s != nil && !w.s.c.IsClosed() {
			if w.s.simple("ROLLBACK") != nil {
				_ = closeConn(w.s.c)
			}
		}
		if !w.mayRetry(err) || time.Now().After(deadline) {
			fail(group, err)
			return
		}
		time.Sleep(pause)
	}
}

// mayRetry: what happened on a connection that is gone has not happened, unless its commit was sent.
func (w *writer) mayRetry(err error) bool {
	if errors.Is(err, errUncertain) {
		return false
	}
	return w.s == nil || w.s.c.IsClosed() || again(err)
}

func fail(group []*query.Op, err error) {
	if !answered(err) {
		err = slipway.Errorf(slipway.CodeUnavailable, "the database does not answer: %w", err)
	}
	for _, o := range group {
		o.Err = fmt.Errorf("write to the database: %w", err)
	}
}

// apply runs a group in one transaction. Its error is one of the whole group.
func (w *writer) apply(group []*query.Op) error {
	transaction, err := w.open()
	if err != nil {
		return err
	}
	for _, o := range group {
		if err := w.applyOne(o); err != nil {
			return err
		}
	}
	if w.news != "" && w.s.writes > 0 {
		w.s.queue("SELECT pg_notify($1, '')", w.news)
	}
	return w.end(transaction)
}

// open begins a transaction and waits for its turn. It returns the transaction's number.
func (w *writer) open() (number string, err error) {
	if w.s == nil || w.s.c.IsClosed() {
		c, err := w.server.connect(context.Background())
		if err != nil {
			return "", err
		}
		w.use(c)
	}
	w.s.begin(statement{text: "BEGIN ISOLATION LEVEL READ COMMITTED"}, statement{"SELECT pg_advisory_xact_lock($1)", []any{w.lock}})
	found, err := w.s.Query("SELECT pg_current_xact_id()::text")
	if err != nil {
		return "", err
	}
	defer found.Close()
	for found.Next() {
		err = found.Scan(&number)
	}
	return number, errors.Join(err, found.Err())
}

func (w *writer) use(c *pgx.Conn) {
	w.s = newSession(c)
	w.pid.Store(int64(c.PgConn().PID()))
}

// applyOne runs one operation inside a savepoint, so that its failure is its own.
func (w *writer) applyOne(o *query.Op) error {
	s, before, trips, writes := w.s, len(w.s.pending), w.s.trips, w.s.writes
	s.queue("SAVEPOINT op")
	o.Err = o.Run(s)
	if o.Err == nil && s.writes > writes {
		o.Err = s.flush() // what is wrong with a statement is the fault of this operation
	}
	if o.Err == nil {
		o.Err = s.failed
	}
	switch {
	case o.Err == nil:
		s.queue("RELEASE SAVEPOINT op")
		return nil
	case s.c.IsClosed() || again(o.Err):
		return o.Err
	}
	s.writes = writes
	if s.trips == trips { // nothing of it was sent
		s.pending = s.pending[:before]
		return nil
	}
	return s.undo("op")
}

// end commits. When the connection breaks meanwhile, the database is asked what became of the transaction.
func (w *writer) end(transaction string) error {
	w.s.queue("COMMIT")
	a, err := w.s.send(1)
	if err == nil {
		var tag pgconn.CommandTag
		tag, err = a.results.Exec()
		if end := a.close(); err == nil {
			err = end
		}
		if err == nil && tag.String() != "COMMIT" {
			return fmt.Errorf("the database rolled a transaction back: %s", tag)
		}
	}
	if err == nil || !w.s.c.IsClosed() {
		return err
	}
	return w.outcome(transaction, err)
}

// outcome says what became of a transaction whose commit nobody has confirmed: nil when it is durable.
func (w *writer) outcome(transaction string, lost error) error {
	deadline := time.Now().Add(writeLimit)
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		status, err := w.ask(transaction)
		switch {
		case err == nil && status == "committed":
			return nil
		case err == nil && status == "aborted":
			return lost
		case time.Now().After(deadline):
			return fmt.Errorf("it is not known whether the change was made: %w", errUncertain)
		}
		time.Sleep(pause)
	}
}

var errUncertain = errors.New("the connection broke during the commit and the database has not come back")

func (w *writer) ask(transaction string) (status string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), answerLimit)
	defer cancel()
	c, err := w.server.connect(ctx)
	if err != nil {
		return "", err
	}
	w.use(c)
	err = c.QueryRow(ctx, "SELECT coalesce(pg_xact_status($1::text::xid8), '')", transaction).Scan(&status)
	return status, err
}

// answered says whether an error is the database's own word.
func answered(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e)
}

// again says whether a transaction that failed with err may succeed when it is tried again.
func again(err error) bool {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code {
	case "40001", "40P01", // serialization failure, deadlock
		"57P01", "57P02", "57P03", "25P03", "53300": // shutdown, crash, starting up, idle for too long, too many connections
		return true
	}
	return e.Code[:2] == "08"
}
