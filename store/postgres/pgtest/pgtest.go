// Package pgtest gives tests a real PostgreSQL: one private cluster per test process, on a Unix socket in a directory of
// its own, run by an unprivileged user, and gone with the process.
package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
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

// socketEnv tells the tests of a process where the cluster is that its TestMain started.
const socketEnv = "SLIPWAY_TEST_POSTGRES"

// Main runs the tests beside a cluster. TestMain calls it: func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }
func Main(m *testing.M) int {
	c, err := Start()
	if err == nil {
		err = os.Setenv(socketEnv, c.dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		return 1
	}
	code := m.Run()
	if err := c.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		return max(code, 1)
	}
	return code
}

// URL returns the address of a new, empty database in the cluster of this process. It lives as long as the test.
func URL(t testing.TB) string {
	t.Helper()
	dir := os.Getenv(socketEnv)
	if dir == "" {
		t.Fatal("there is no cluster; call pgtest.Main in TestMain")
	}
	address, drop, err := (&Cluster{dir: dir}).Database()
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
	name := "test_" + strings.ToLower(rand.Text())
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
