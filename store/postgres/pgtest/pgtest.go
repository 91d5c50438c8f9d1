// Package pgtest gives tests a real PostgreSQL: one private cluster per test process, on a Unix socket in a directory of
// its own, run by an unprivileged user, and gone with the process.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// User is the superuser of the cluster; it needs no password.
	User = "slipway"
	// Locked is a role without rights that may log in with LockedPassword alone.
	Locked         = "locked"
	LockedPassword = "p4ssword-of-locked"
)

var errNoMain = errors.New("the cluster is stopped by pgtest.Main; call it: func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }")

// state is what the tests of one process share. It is a table of one row: a test process has one cluster.
var state struct {
	once    sync.Once
	main    atomic.Bool
	cluster *Cluster
	err     error
	count   atomic.Int64
}

// Main runs the tests and stops the cluster that they started, if any. TestMain calls it.
func Main(m *testing.M) int {
	state.main.Store(true)
	code := m.Run()
	if state.cluster != nil {
		if err := state.cluster.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "pgtest:", err)
			return max(code, 1)
		}
	}
	return code
}

// URL returns the address of a new, empty database that lives as long as the test.
func URL(t testing.TB) string {
	t.Helper()
	c := Shared(t)
	address, drop, err := c.Database()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := drop(); err != nil {
			t.Error(err)
		}
	})
	return address
}

// Shared returns the cluster of this process, which it starts the first time.
func Shared(t testing.TB) *Cluster {
	t.Helper()
	if !state.main.Load() {
		t.Fatal(errNoMain)
	}
	state.once.Do(func() { state.cluster, state.err = Start() })
	if state.err != nil {
		t.Fatal(state.err)
	}
	return state.cluster
}

// Cluster is a running PostgreSQL.
type Cluster struct {
	dir string // holds the data and the socket
	server
}

// Start installs PostgreSQL if it is absent, makes a cluster and waits until it answers.
func Start() (*Cluster, error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	owner, err := unprivileged()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "slipway-pg-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: dir, server: server{bin: bin, owner: owner, data: filepath.Join(dir, "data"), dir: dir}}
	if err := c.begin(); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *Cluster) begin() error {
	if err := c.owner.give(c.dir); err != nil {
		return err
	}
	if err := c.initialise(); err != nil {
		return err
	}
	if err := c.Restart(); err != nil {
		return err
	}
	return c.do("CREATE ROLE " + Locked + " LOGIN PASSWORD '" + LockedPassword + "'")
}

// Stop ends the cluster and removes its directory.
func (c *Cluster) Stop() error { return errors.Join(c.Halt(), os.RemoveAll(c.dir)) }

// Address returns the URL of a database for a user; password may be "".
func (c *Cluster) Address(user, password, database string) string {
	u := url.URL{Scheme: "postgres", User: url.User(user), Path: "/" + database, RawQuery: url.Values{"host": {c.dir}}.Encode()}
	if password != "" {
		u.User = url.UserPassword(user, password)
	}
	return u.String()
}

// Database makes an empty database.
func (c *Cluster) Database() (address string, drop func() error, err error) {
	name := fmt.Sprintf("test_%d", state.count.Add(1))
	if err := c.do("CREATE DATABASE " + name); err != nil {
		return "", nil, err
	}
	return c.Address(User, "", name), func() error { return c.do("DROP DATABASE IF EXISTS " + name + " WITH (FORCE)") }, nil
}

// do runs a statement as the superuser.
func (c *Cluster) do(statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, c.Address(User, "", "postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, statement); err != nil {
		return fmt.Errorf("%s: %w", strings.SplitN(statement, " PASSWORD", 2)[0], err)
	}
	return nil
}
