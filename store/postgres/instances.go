package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// instances knows which agent servers live: each holds an advisory lock in a session of its own, which the database drops
// with the session.
type instances struct{ server server }

const (
	// takeLimit is how long registering waits for a lock; somebody who probes holds it for a moment.
	takeLimit = "2s"
	// retake bounds the pauses between attempts to get a lost session back.
	retakeMin, retakeMax = 20 * time.Millisecond, 2 * time.Second
	// lease is how long the database believes in a session that says nothing: then it ends it, and its lock is free. It is
	// what a server that is frozen, or whose machine has gone without a word, may keep others from its runs (reference 17.3).
	lease = "15s"
	// renewal is how often a session speaks.
	renewal = 4 * time.Second
)

func (i instances) key(id string) int64 { return i.server.key("instance", id) }

// Register takes the lock of an instance until release is called or the process dies. A session that breaks is made anew;
// what others rescued meanwhile is lost to this server by the epochs of its runs.
func (i instances) Register(id string) (release func() error, err error) {
	c, err := i.take(context.Background(), id)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- i.hold(ctx, c, id) }()
	return func() error { cancel(); return <-ended }, nil
}

// take opens a session that holds the lock of an instance.
func (i instances) take(ctx context.Context, id string) (*pgx.Conn, error) {
	c, err := i.server.patient().connect(ctx)
	if err != nil {
		return nil, i.server.explain(err)
	}
	if _, err = c.Exec(ctx, "SELECT set_config('lock_timeout', $1, false), set_config('idle_session_timeout', $2, false)", takeLimit, lease); err == nil {
		_, err = c.Exec(ctx, "SELECT pg_advisory_lock($1)", i.key(id))
	}
	if err == nil {
		return c, nil
	}
	var e *pgconn.PgError
	if errors.As(err, &e) && e.Code == "55P03" {
		err = fmt.Errorf("another server bears the instance id %s", id)
	}
	return nil, errors.Join(err, closeConn(c))
}

// hold keeps the lock until ctx ends, through breaks of the session.
func (i instances) hold(ctx context.Context, c *pgx.Conn, id string) error {
	for {
		err := renewAndWait(ctx, c)
		if ctx.Err() != nil {
			_ = closeConn(c)
			return nil
		}
		if err == nil {
			continue
		}
		_ = closeConn(c)
		if c = i.retake(ctx, id); c == nil {
			return nil
		}
	}
}

// renewAndWait renews the lease and waits until it is time to do so again, or the session breaks.
func renewAndWait(ctx context.Context, c *pgx.Conn) error {
	speak, cancel := context.WithTimeout(ctx, answerLimit)
	err := c.Ping(speak)
	cancel()
	if err != nil {
		return err
	}
	quiet, cancel := context.WithTimeout(ctx, renewal)
	defer cancel()
	if _, err = c.WaitForNotification(quiet); quiet.Err() != nil && !c.IsClosed() {
		return nil
	}
	return err
}

// retake gets a lost lock back; nil when ctx ended before.
func (i instances) retake(ctx context.Context, id string) *pgx.Conn {
	for pause := retakeMin; ; pause = min(2*pause, retakeMax) {
		c, err := i.take(ctx, id)
		if err == nil {
			return c
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// Alive says whether the session that registered the instance still lives.
func (i instances) Alive(id string) (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), answerLimit)
	defer cancel()
	c, err := i.server.connect(ctx)
	if err != nil {
		return false, i.server.explain(err)
	}
	defer func() { _ = closeConn(c) }()
	var free bool
	// Shared, so that two who probe do not take each other for the instance; it goes with the statement.
	err = c.QueryRow(ctx, "SELECT pg_try_advisory_xact_lock_shared($1)", i.key(id)).Scan(&free)
	return !free, err
}

// AwaitEnd waits until the database gives the instance's lock away.
func (i instances) AwaitEnd(ctx context.Context, id string) error {
	for pause := retakeMin; ; pause = min(2*pause, retakeMax) {
		if i.await(ctx, id) == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause): // the database was away, which says nothing about the instance
		}
	}
}

func (i instances) await(ctx context.Context, id string) error {
	c, err := i.server.patient().connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = closeConn(c) }()
	_, err = c.Exec(ctx, "SELECT pg_advisory_xact_lock_shared($1)", i.key(id))
	return err
}
