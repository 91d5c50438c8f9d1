// Package sqlite opens the stores of the house on SQLite files: one writer with group commit, readers beside it
// (DESIGN.md). Two processes may hold the same file.
package sqlite

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/pressly/goose/v3"
	driver "modernc.org/sqlite"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/store/query"
)

//go:embed migrations
var migrations embed.FS

// minVersion is the first SQLite without the bug that a WAL reset can lose commits.
const minVersion = "3.51.3"

// ControlStore is the control store on a file; it implements slipway.Store.
type ControlStore struct {
	*query.Control
	engine *engine
}

// Close applies what is queued and closes the file. It is idempotent.
func (s *ControlStore) Close() error { return s.engine.close() }

// Follow waits for ctx: a file of records belongs to one process, so nobody else changes it.
func (s *ControlStore) Follow(ctx context.Context, _ func(slipway.News)) error {
	<-ctx.Done()
	return nil
}

// AgentStore is the store of one deployment on a file; it implements agent.Store.
type AgentStore struct {
	*query.Agent
	engine *engine
}

// Close applies what is queued and closes the file. It is idempotent.
func (s *AgentStore) Close() error { return s.engine.close() }

// OpenControl opens the control store at path, making or migrating the file.
func OpenControl(path string) (*ControlStore, error) {
	e, err := open(path, "control")
	if err != nil {
		return nil, err
	}
	return &ControlStore{Control: query.NewControl(e, e, dialect{}), engine: e}, nil
}

// OpenAgent opens the store of one deployment at path, making or migrating the file. Beside it lives the directory
// "instances" with a lock file per agent server.
func OpenAgent(path string) (*AgentStore, error) {
	e, err := open(path, "agent")
	if err != nil {
		return nil, err
	}
	instances := instances{dir: filepath.Join(filepath.Dir(path), "instances")}
	return &AgentStore{Agent: query.NewAgent(e, dialect{}, instances), engine: e}, nil
}

// BeaconStore is the store of a collector on a file; it implements beacon.Store.
type BeaconStore struct {
	*query.Beacon
	engine *engine
}

// Close applies what is queued and closes the file. It is idempotent.
func (s *BeaconStore) Close() error { return s.engine.close() }

// OpenBeacon opens the store of a collector at path, making or migrating the file. Several processes may hold it.
func OpenBeacon(path string) (*BeaconStore, error) {
	e, err := open(path, "beacon")
	if err != nil {
		return nil, err
	}
	return &BeaconStore{Beacon: query.NewBeacon(e), engine: e}, nil
}

func open(path, kind string) (*engine, error) {
	db, err := openDB(path)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	if err := prepare(db, path, kind); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), db.Close())
	}
	e, err := newEngine(db)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), db.Close())
	}
	return e, nil
}

// connector opens connections that know the functions of the dialect.
type connector struct {
	driver *driver.Driver
	dsn    string
}

func (c connector) Connect(context.Context) (sqldriver.Conn, error) { return c.driver.Open(c.dsn) }
func (c connector) Driver() sqldriver.Driver                        { return c.driver }

func openDB(path string) (*sql.DB, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	pragmas := "_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=foreign_keys(1)" +
		"&_pragma=cache_size(-16000)"
	d := &driver.Driver{}
	if err := registerFunctions(d); err != nil {
		return nil, err
	}
	dsn := (&url.URL{Scheme: "file", Path: absolute, RawQuery: pragmas}).String()
	return sql.OpenDB(connector{driver: d, dsn: dsn}), nil
}

// prepare checks the library and migrates the file, one process at a time.
func prepare(db *sql.DB, path, kind string) error {
	lock, err := os.OpenFile(path+".migrate", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	if err := checkVersion(db); err != nil {
		return err
	}
	folder, err := fs.Sub(migrations, "migrations/"+kind)
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, folder, goose.WithAllowOutofOrder(true))
	if err != nil {
		return err
	}
	_, err = p.Up(context.Background())
	return err
}

func checkVersion(db *sql.DB) error {
	var v string
	if err := db.QueryRow("SELECT sqlite_version()").Scan(&v); err != nil {
		return err
	}
	if older(v, minVersion) {
		return fmt.Errorf("SQLite %s can lose commits when it resets its log; build slipway with %s or newer", v, minVersion)
	}
	return nil
}

func older(v, than string) bool {
	a, b := strings.Split(v, "."), strings.Split(than, ".")
	for i := range b {
		x, y := 0, 0
		if i < len(a) {
			x, _ = strconv.Atoi(a[i])
		}
		if y, _ = strconv.Atoi(b[i]); x != y {
			return x < y
		}
	}
	return false
}
