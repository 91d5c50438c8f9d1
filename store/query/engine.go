// Package query holds all SQL of the house and the rules that live in transactions: the control store and the agent
// store, written once over an Engine and a Dialect that each database brings along.
package query

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"github.com/slipway-dev/slipway/agent"
)

// Conn runs statements inside the transaction its owner has opened. It is used by one goroutine at a time.
type Conn interface {
	// Exec runs a statement and returns how many rows it changed. A statement that fails has no effect, and the transaction
	// can go on.
	Exec(query string, args ...any) (int64, error)
	// Send runs a statement whose outcome nobody needs at once: where the way to the database is long it travels with the
	// next one, and its error may be that of a later statement, or of the whole transaction.
	Send(query string, args ...any) error
	// Query runs a statement that yields rows; the caller closes them before the next statement.
	Query(query string, args ...any) (Rows, error)
}

// Rows are what a query yields.
type Rows interface {
	scanner
	Next() bool
	Err() error
	Close() error
}

// Writer applies writes one after the other.
type Writer interface {
	// Write is Enqueue and Wait; it does not return before fn will never run again.
	Write(ctx context.Context, fn func(Conn) error) error
}

// Engine applies writes in the order in which they were enqueued, each entirely or not at all, and serves reads that see
// every write enqueued before them.
type Engine interface {
	Writer
	// Enqueue applies fn in a transaction, perhaps more than once after conflicts: fn has no effects but its statements
	// and the variables it assigns.
	Enqueue(fn func(Conn) error) agent.Commit
	// Read runs fn on one consistent snapshot that refuses writes.
	Read(ctx context.Context, fn func(Conn) error) error
}

// Dialect is what differs between databases.
type Dialect interface {
	// Contains is a condition: the JSON of column contains the JSON of the next placeholder (reference 2).
	Contains(column string) string
	// Matches is a condition: the JSON of column satisfies the store filter of the next placeholder (reference 15).
	Matches(column string) string
	// Allows is a condition: the JSON of column satisfies the access filter of the next placeholder (reference 12).
	Allows(column string) string
	// AllowsItem is a condition: the item in the columns value, namespace and key satisfies the access filter of the next
	// placeholder (reference 7).
	AllowsItem() string
	// Folded is a condition: column contains the next placeholder's text, whatever the case, taken literally.
	Folded(column string) string
	// Vector is how a vector is handed to a statement.
	Vector(v []float32) any
	// StoredVector is the value that a statement stores of the next placeholder.
	StoredVector() string
	// Likeness is an expression: the product of the vector in a column and that of the next placeholder, NULL without one;
	// "" = the database cannot multiply vectors.
	Likeness(column string) string
	// VectorBytes is an expression for a vector in a column, as bytes that Multiply understands.
	VectorBytes(column string) string
	// Multiply returns the product of a vector read as VectorBytes with another; 0 if their lengths differ.
	Multiply(stored []byte, v []float32) float64
	// Unique says whether err is a violated uniqueness rule.
	Unique(err error) bool
}

// scanner is what *sql.Rows and a single row have in common.
type scanner interface{ Scan(dest ...any) error }

// all collects the rows of a query.
func all[T any](c Conn, scan func(scanner) (T, error), query string, args ...any) ([]T, error) {
	rows, err := c.Query(query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := []T{}
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, rows.Err()
}

// one returns the first row of a query; ok is false without one.
func one[T any](c Conn, scan func(scanner) (T, error), query string, args ...any) (v T, ok bool, err error) {
	list, err := all(c, scan, query, args...)
	if err != nil || len(list) == 0 {
		return v, false, err
	}
	return list[0], true, nil
}

// scalar scans rows of one column.
func scalar[T any](s scanner) (v T, err error) { return v, s.Scan(&v) }

// micros is how a time is stored; zero stays zero.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func fromMicros(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}

// text is how JSON that may be absent is stored.
func text(raw json.RawMessage) any {
	if raw == nil {
		return nil
	}
	return string(raw)
}

// object is how a JSON object is stored: absent ones are empty.
func object(raw json.RawMessage) string {
	if len(raw) == 0 || string(raw) == "null" {
		return "{}"
	}
	return string(raw)
}

func raw(s sql.NullString) json.RawMessage {
	if !s.Valid {
		return nil
	}
	return json.RawMessage(s.String)
}

func encode(v any) string {
	b, _ := json.Marshal(v) // records of this house always marshal
	return string(b)
}

// where builds the conditions of a list.
type where struct {
	text string
	args []any
}

func (w *where) and(cond string, args ...any) {
	if w.text == "" {
		w.text = " WHERE " + cond
	} else {
		w.text += " AND " + cond
	}
	w.args = append(w.args, args...)
}

// allow limits a list to what an access filter allows.
func (w *where) allow(condition string, f *agent.Filter) {
	if f != nil {
		w.and(condition, f.String())
	}
}

// in adds "column IN (…)", nothing for an empty list.
func in[T ~string](w *where, column string, values []T) {
	if len(values) == 0 {
		return
	}
	marks := ""
	args := make([]any, len(values))
	for i, v := range values {
		marks += ",?"
		args[i] = string(v)
	}
	w.and(column+" IN ("+marks[1:]+")", args...)
}

// unbounded is the limit of a list without one.
const unbounded = 1<<62 - 1

// page ends a list; limit 0 = no bound.
func (w *where) page(order string, limit, offset int) (string, []any) {
	if limit <= 0 {
		limit = unbounded
	}
	return w.text + order + " LIMIT ? OFFSET ?", append(w.args, limit, offset)
}
