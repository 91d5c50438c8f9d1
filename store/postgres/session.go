package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/slipway-dev/slipway/store/query"
)

// answerLimit bounds one round trip; statement_timeout ends a statement before.
const answerLimit = 60 * time.Second

// statement is one that is queued.
type statement struct {
	text string
	args []any
}

// session is one connection and the statements on their way over it: those that nobody waits for travel with the next one
// that somebody does. It is used by one goroutine at a time.
type session struct {
	c       *pgx.Conn
	texts   translations
	pending []statement
	trips   int   // round trips of this transaction
	writes  int   // statements of this transaction that may have changed something
	failed  error // what broke the transaction, until it is taken back
	// renew brings a new connection when the old one turns out to be dead before the transaction's first answer; nil: that is an error.
	renew func() (*pgx.Conn, error)
}

func newSession(c *pgx.Conn) *session { return &session{c: c, texts: translations{}} }

// begin forgets what was under way and queues the statements that open a transaction.
func (s *session) begin(open ...statement) {
	s.pending = append(s.pending[:0:0], open...)
	s.trips, s.writes, s.failed = 0, 0, nil
}

func (s *session) queue(text string, args ...any) {
	s.pending = append(s.pending, statement{text, args})
}

// Send queues a statement.
func (s *session) Send(text string, args ...any) error {
	s.writes++
	s.queue(s.texts.of(text), clean(args)...)
	return nil
}

// Exec runs a statement in a savepoint of its own, so that a broken rule does not break the transaction.
func (s *session) Exec(text string, args ...any) (changed int64, err error) {
	s.writes++
	s.queue("SAVEPOINT statement")
	s.queue(s.texts.of(text), clean(args)...)
	s.queue("RELEASE SAVEPOINT statement")
	a, err := s.send(2)
	if err != nil {
		return 0, err
	}
	tag, err := a.results.Exec()
	if end := a.close(); err == nil {
		err = end
	}
	if err != nil {
		s.failed = err
		_ = s.undo("statement") // without the savepoint the transaction stays broken, and err says why
		return 0, err
	}
	return tag.RowsAffected(), nil
}

// Query runs a statement that yields rows, together with everything queued before.
func (s *session) Query(text string, args ...any) (query.Rows, error) {
	s.queue(s.texts.of(text), clean(args)...)
	a, err := s.send(1)
	if err != nil {
		return nil, err
	}
	found, err := a.results.Query()
	if err != nil {
		s.failed = err
		_ = a.close()
		return nil, err
	}
	return &rows{Rows: found, answers: a, session: s}, nil
}

// flush sends what is queued and waits for the answers.
func (s *session) flush() error {
	if len(s.pending) == 0 {
		return nil
	}
	a, err := s.send(0)
	if err != nil {
		return err
	}
	if err := a.close(); err != nil {
		s.failed = err
		return err
	}
	return nil
}

// undo takes back what happened since a savepoint.
func (s *session) undo(savepoint string) error {
	s.pending = nil
	if err := s.simple("ROLLBACK TO SAVEPOINT " + savepoint + "; RELEASE SAVEPOINT " + savepoint); err != nil {
		return err
	}
	s.failed = nil
	return nil
}

// simple runs statements without parameters, also in a transaction that is broken.
func (s *session) simple(text string) error {
	ctx, cancel := context.WithTimeout(context.Background(), answerLimit)
	defer cancel()
	return s.c.PgConn().Exec(ctx, text).Close()
}

// answers are those of one round trip.
type answers struct {
	results pgx.BatchResults
	cancel  context.CancelFunc
}

func (a answers) close() error {
	defer a.cancel()
	return a.results.Close()
}

// send sends what is queued and reads all answers but the last few, which the caller reads.
func (s *session) send(last int) (answers, error) {
	a, err := s.try(last)
	if err != nil && s.trips == 0 && s.renew != nil && s.c.IsClosed() {
		var fresh *pgx.Conn
		if fresh, err = s.renew(); err == nil {
			s.c = fresh
			a, err = s.try(last)
		}
	}
	s.pending = nil
	s.trips++
	if err != nil {
		s.failed = err
	}
	return a, err
}

func (s *session) try(last int) (answers, error) {
	ctx, cancel := context.WithTimeout(context.Background(), answerLimit)
	b := &pgx.Batch{}
	for _, st := range s.pending {
		b.Queue(st.text, st.args...)
	}
	a := answers{results: s.c.SendBatch(ctx, b), cancel: cancel}
	for range len(s.pending) - last {
		if _, err := a.results.Exec(); err != nil {
			_ = a.close()
			return answers{}, err
		}
	}
	return a, nil
}

// rows are those of the last statement of a round trip.
type rows struct {
	pgx.Rows
	answers answers
	session *session
}

// Scan reads a row; truth values are stored as numbers.
func (r *rows) Scan(dest ...any) error {
	for i, d := range dest {
		if b, ok := d.(*bool); ok {
			dest[i] = (*truth)(b)
		}
	}
	return r.Rows.Scan(dest...)
}

func (r *rows) Err() error {
	err := r.Rows.Err()
	if err != nil {
		r.session.failed = err
	}
	return err
}

func (r *rows) Close() error {
	r.Rows.Close()
	return r.answers.close()
}
