package query

import (
	"context"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway"
)

// Control keeps the control service's records; it implements slipway.Store. It is safe for concurrent use.
type Control struct {
	engine  Engine
	logs    Writer
	dialect Dialect
}

// NewControl makes the control store over an engine whose database has been migrated. logs is who appends log lines: the
// engine itself or, where writers need not wait for each other, one of its own.
func NewControl(e Engine, logs Writer, d Dialect) *Control {
	return &Control{engine: e, logs: logs, dialect: d}
}

var _ slipway.Store = (*Control)(nil)

// Update runs fn in one serialisable write transaction.
func (s *Control) Update(ctx context.Context, fn func(slipway.Tx) error) error {
	return s.engine.Write(ctx, func(c Conn) error { return fn(&tx{c, s.dialect}) })
}

// View runs fn on one consistent snapshot.
func (s *Control) View(ctx context.Context, fn func(slipway.Tx) error) error {
	return s.engine.Read(ctx, func(c Conn) error { return fn(&tx{c, s.dialect}) })
}

const insertLogs = `
INSERT INTO logs (deployment_id, revision_id, kind, at, level, message)
SELECT value ->> 0, value ->> 1, value ->> 2, CAST(value ->> 3 AS BIGINT), value ->> 4, value ->> 5 FROM json_each(?) WHERE TRUE ORDER BY key
RETURNING seq`

// AppendLogs stores log lines in order, filling Seq.
func (s *Control) AppendLogs(ctx context.Context, entries []slipway.LogEntry) error {
	if len(entries) == 0 {
		return nil
	}
	lines := make([][6]any, len(entries))
	for i, e := range entries {
		lines[i] = [6]any{e.DeploymentID, e.RevisionID, e.Kind, micros(e.At), e.Level, strings.ReplaceAll(e.Message, "\x00", "\ufffd")}
	}
	return s.logs.Write(ctx, func(c Conn) error {
		seqs, err := all(c, scalar[int64], insertLogs, encode(lines))
		if err != nil {
			return err
		}
		slices.Sort(seqs) // they are given in the order of the lines and told in any
		for i := range entries {
			entries[i].Seq = seqs[i]
		}
		return nil
	})
}

// tx is one transaction of the control store.
type tx struct {
	c       Conn
	dialect Dialect
}

var _ slipway.Tx = (*tx)(nil)
