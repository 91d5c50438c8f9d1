package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Line carries short texts between all processes that work on one schema, by NOTIFY and LISTEN.
type Line struct{ server server }

// NewLine returns the line of a schema. It does not connect.
func NewLine(url, schema string) (*Line, error) {
	sv, err := newServer(url, schema, "")
	if err != nil {
		return nil, err
	}
	return &Line{server: sv}, nil
}

// channel is where the line is; names of channels hold for a whole database.
func (l *Line) channel() string { return "slipway_bus_" + l.server.schema }

// Connect joins the line with a session of its own, which waits for no disk.
func (l *Line) Connect(ctx context.Context) (*Wire, error) {
	c, err := l.server.connect(ctx)
	if err != nil {
		return nil, l.server.explain(err)
	}
	for _, statement := range []string{"SET synchronous_commit = off", "LISTEN " + pgx.Identifier{l.channel()}.Sanitize()} {
		if _, err := c.Exec(ctx, statement); err != nil {
			_ = closeConn(c)
			return nil, fmt.Errorf("listen to the other servers: %w", l.server.explain(err))
		}
	}
	return &Wire{c: c, channel: l.channel()}, nil
}

// Wire is one connection of a line. Its methods are called one at a time.
type Wire struct {
	c       *pgx.Conn
	channel string
}

// Send sends texts of less than 8000 bytes, in order.
func (w *Wire) Send(ctx context.Context, texts []string) error {
	const notify = "SELECT pg_notify($1, text) FROM unnest($2::text[]) WITH ORDINALITY AS list (text, n) ORDER BY n"
	_, err := w.c.Exec(ctx, notify, w.channel, texts)
	return err
}

// Next returns the next text that somebody sent, this process included; ok is false when ctx ended before.
func (w *Wire) Next(ctx context.Context) (text string, ok bool, err error) {
	n, err := w.c.WaitForNotification(ctx)
	switch {
	case err == nil:
		return n.Payload, true, nil
	case ctx.Err() != nil && !w.c.IsClosed():
		return "", false, nil
	}
	return "", false, err
}

// Close ends the session.
func (w *Wire) Close() error { return closeConn(w.c) }
