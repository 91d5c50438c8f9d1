package postgres

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/slipway-dev/slipway"
)

// news is the channel on which the writers of a schema tell each other of changes: "" for any change and
// "deployment listener" for one of a deployment.
func (s server) news() string { return "slipway_" + s.schema }

const (
	// silence is how often a connection that hears nothing is tried.
	silence                  = 30 * time.Second
	listenAgain, listenLimit = 50 * time.Millisecond, 5 * time.Second
)

// Follow tells of the changes that other processes make to the records, until ctx ends; it returns nil then. A time without
// a connection is told as missed.
func (s *ControlStore) Follow(ctx context.Context, tell func(slipway.News)) error {
	for pause := listenAgain; ctx.Err() == nil; pause = min(2*pause, listenLimit) {
		if s.listen(ctx, tell) {
			pause = listenAgain
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return nil
}

// listen follows on one connection; heard says that it was made.
func (s *ControlStore) listen(ctx context.Context, tell func(slipway.News)) (heard bool) {
	c, err := s.server.connect(ctx)
	if err != nil {
		return false
	}
	defer func() { _ = closeConn(c) }()
	if _, err := c.Exec(ctx, "LISTEN "+pgx.Identifier{s.server.news()}.Sanitize()); err != nil {
		return false
	}
	tell(slipway.News{Missed: true})
	for {
		quiet, cancel := context.WithTimeout(ctx, silence)
		n, err := c.WaitForNotification(quiet)
		over := quiet.Err() != nil && ctx.Err() == nil
		cancel()
		switch {
		case err == nil && int64(n.PID) != s.engine.pid.Load():
			id, listener, _ := strings.Cut(n.Payload, " ")
			tell(slipway.News{DeploymentID: id, ListenerID: listener})
		case err != nil && !over, over && c.Ping(ctx) != nil:
			return true
		}
	}
}
