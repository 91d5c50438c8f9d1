package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/slipway-dev/slipway/store/query"
)

// conn is one database connection with its prepared statements.
type conn struct {
	c     *sql.Conn
	stmts map[string]*sql.Stmt
}

// maxStatements bounds the cache; the house has fewer fixed statements, lists with many ids make more.
const maxStatements = 400

func openConn(db *sql.DB) (*conn, error) {
	c, err := db.Conn(context.Background())
	if err != nil {
		return nil, fmt.Errorf("open a database connection: %w", err)
	}
	return &conn{c: c, stmts: map[string]*sql.Stmt{}}, nil
}

func (c *conn) prepare(text string) (*sql.Stmt, error) {
	if s, ok := c.stmts[text]; ok {
		return s, nil
	}
	if len(c.stmts) >= maxStatements {
		c.forget()
	}
	s, err := c.c.PrepareContext(context.Background(), text)
	if err != nil {
		return nil, fmt.Errorf("prepare %q: %w", text, err)
	}
	c.stmts[text] = s
	return s, nil
}

func (c *conn) forget() {
	for text, s := range c.stmts {
		_ = s.Close()
		delete(c.stmts, text)
	}
}

// Exec runs a statement and returns how many rows it changed.
func (c *conn) Exec(text string, args ...any) (int64, error) {
	r, err := c.exec(text, args)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// Send runs a statement whose outcome nobody needs.
func (c *conn) Send(text string, args ...any) error {
	_, err := c.exec(text, args)
	return err
}

func (c *conn) exec(text string, args []any) (sql.Result, error) {
	s, err := c.prepare(text)
	if err != nil {
		return nil, err
	}
	return s.ExecContext(context.Background(), args...)
}

// Query runs a statement that yields rows.
func (c *conn) Query(text string, args ...any) (query.Rows, error) {
	s, err := c.prepare(text)
	if err != nil {
		return nil, err
	}
	return s.QueryContext(context.Background(), args...)
}

func (c *conn) do(text string) error { return c.Send(text) }

// snapshot runs fn in a read transaction.
func (c *conn) snapshot(fn func(query.Conn) error) error {
	if err := c.do("BEGIN"); err != nil {
		return err
	}
	err := query.Guard(fn, c)
	if end := c.do("ROLLBACK"); err == nil {
		err = end
	}
	return err
}

func (c *conn) close() error {
	c.forget()
	return c.c.Close()
}
