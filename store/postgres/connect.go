package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// connectLimit bounds the making of a connection.
	connectLimit = 5 * time.Second
	// example is what a URL looks like, for messages.
	example = "postgres://user:password@host:5432/database"
)

// server is where a schema is and how to get there.
type server struct {
	config *pgx.ConnConfig
	schema string
}

// newServer reads a URL. A schema of "" means the URL's search_path, or else the fallback.
func newServer(url, schema, fallback string) (server, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil { // the driver blots out the password
		return server{}, fmt.Errorf("the database URL cannot be read: %w; give one such as %s", err, example)
	}
	if schema == "" {
		schema = config.RuntimeParams["search_path"]
	}
	if schema == "" {
		schema = fallback
	}
	if strings.ContainsAny(schema, ", \"") {
		return server{}, fmt.Errorf("the search_path %q names no single schema; give one name of letters, digits and _", schema)
	}
	if config.ConnectTimeout == 0 || config.ConnectTimeout > connectLimit {
		config.ConnectTimeout = connectLimit
	}
	for name, value := range map[string]string{
		"search_path":                         pgx.Identifier{schema}.Sanitize(),
		"application_name":                    "slipway",
		"statement_timeout":                   "30s",
		"idle_in_transaction_session_timeout": "10s", // a process that is stopped amid a write must not stop the others
		"tcp_keepalives_idle":                 "15",
		"tcp_keepalives_interval":             "5",
		"tcp_keepalives_count":                "3",
	} {
		config.RuntimeParams[name] = value
	}
	dialer := &net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}}
	config.DialFunc = dialer.DialContext
	return server{config: config, schema: schema}, nil
}

// patient is the server for sessions that wait as long as it takes.
func (s server) patient() server {
	config := s.config.Copy()
	config.RuntimeParams["statement_timeout"] = "0"
	return server{config: config, schema: s.schema}
}

// connect makes one connection. Its commits wait for the disk even where the server's setting says otherwise.
func (s server) connect(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*connectLimit)
	defer cancel()
	c, err := pgx.ConnectConfig(ctx, s.config.Copy())
	if err != nil {
		return nil, err
	}
	const durable = "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
	if _, err := c.Exec(ctx, durable); err != nil {
		return nil, errors.Join(err, closeConn(c))
	}
	return c, nil
}

func closeConn(c *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(context.Background(), connectLimit)
	defer cancel()
	return c.Close(ctx)
}

// key is the number of an advisory lock; locks live in the database, so the schema is part of it.
func (s server) key(purpose ...string) int64 {
	sum := sha256.Sum256([]byte("slipway\x00" + s.schema + "\x00" + strings.Join(purpose, "\x00")))
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

// where names the server for messages, without the password.
func (s server) where() string {
	return fmt.Sprintf("%s:%d", s.config.Host, s.config.Port)
}

// explain says what keeps us from the database, and what to do about it.
func (s server) explain(err error) error {
	user, name := s.config.User, s.config.Database
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return fmt.Errorf("the database at %s does not answer: %w; check that it runs and that the database URL names the right host and port", s.where(), err)
	}
	switch e.Code {
	case "28P01":
		return fmt.Errorf("the database at %s refuses the password of user %q; correct it in the database URL", s.where(), user)
	case "28000":
		return fmt.Errorf("the database at %s does not let user %q in: %s; create the user, or allow it in pg_hba.conf", s.where(), user, e.Message)
	case "3D000":
		return fmt.Errorf("there is no database %q at %s; create it with: createdb -O %s %s", name, s.where(), user, name)
	case "42501":
		return fmt.Errorf("user %q lacks a right in database %q: %s; run as its owner: GRANT CREATE, CONNECT ON DATABASE %s TO %s", user, name, e.Message,
			pgx.Identifier{name}.Sanitize(), pgx.Identifier{user}.Sanitize())
	case "53300":
		return fmt.Errorf("the database at %s has no connection left: %s; raise max_connections", s.where(), e.Message)
	}
	return fmt.Errorf("the database at %s refuses: %w", s.where(), err)
}
