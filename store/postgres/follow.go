package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// news is the channel on which the writers of a schema tell each other of changes.
func (s server) news() string { return "slipway_" + s.schema }

// Follow calls changed whenever another process may have changed the records, until ctx ends; it returns nil then. A time
// without a connection counts as a change.
func (s *ControlStore) Follow(ctx context.Context, changed func()) error {
	for pause := 50 * time.Millisecond; ctx.Err() == nil; pause = min(2*pause, 5*time.Second) {
		if s.listen(ctx, changed) {
			pause = 50 * time.Millisecond
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return nil
}

// listen follows on one connection; heard says that it was made.
func (s *ControlStore) listen(ctx context.Context, changed func()) (heard bool) {
	c, err := s.server.connect(ctx)
	if err != nil {
		return false
	}
	defer closeConn(c)
	if _, err := c.Exec(ctx, "LISTEN "+pgx.Identifier{s.server.news()}.Sanitize()); err != nil {
		return false
	}
	changed()
	for {
		n, err := c.WaitForNotification(ctx)
		if err != nil {
			return true
		}
		if n.Payload != s.engine.origin {
			changed()
		}
	}
}
