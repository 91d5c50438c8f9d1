package query

import (
	"context"

	"github.com/slipway-dev/slipway"
)

// Control keeps the control service's records; it implements slipway.Store. It is safe for concurrent use.
type Control struct {
	engine  Engine
	dialect Dialect
}

// NewControl makes the control store over an engine whose database has been migrated.
func NewControl(e Engine, d Dialect) *Control { return &Control{engine: e, dialect: d} }

var _ slipway.Store = (*Control)(nil)

// Update runs fn in one serialisable write transaction.
func (s *Control) Update(ctx context.Context, fn func(slipway.Tx) error) error {
	return s.engine.Write(ctx, func(c Conn) error { return fn(&tx{c, s.dialect}) })
}

// View runs fn on one consistent snapshot.
func (s *Control) View(ctx context.Context, fn func(slipway.Tx) error) error {
	return s.engine.Read(ctx, func(c Conn) error { return fn(&tx{c, s.dialect}) })
}

const insertLog = `INSERT INTO logs (deployment_id, revision_id, kind, at, level, message) VALUES (?, ?, ?, ?, ?, ?)`

// AppendLogs stores log lines in order, filling Seq.
func (s *Control) AppendLogs(ctx context.Context, entries []slipway.LogEntry) error {
	return s.engine.Write(ctx, func(c Conn) (err error) {
		for i, e := range entries {
			entries[i].Seq, err = c.Insert(insertLog, e.DeploymentID, e.RevisionID, e.Kind, micros(e.At), e.Level, e.Message)
			if err != nil {
				return err
			}
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
