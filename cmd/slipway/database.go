package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/bus/broadcast"
	"github.com/slipway-dev/slipway/bus/local"
	"github.com/slipway-dev/slipway/store/postgres"
	"github.com/slipway-dev/slipway/store/sqlite"
)

// The settings of an agent server's own store. User code never gets them.
const (
	databaseURLEnv    = "SLIPWAY_DATABASE_URL"
	databaseFileEnv   = "SLIPWAY_DATABASE_URL_FILE"
	databaseSchemaEnv = "SLIPWAY_DATABASE_SCHEMA"
	ownDatabaseEnv    = "POSTGRES_URI_CUSTOM" // the deployment's own secret, which its code may see
	traceIntervalEnv  = "SLIPWAY_TRACE_INTERVAL_SECONDS"
)

// controlStore is the control store, whichever database it is in.
type controlStore interface {
	slipway.Store
	// Follow tells of the changes that other processes make to the records, until ctx ends.
	Follow(ctx context.Context, tell func(slipway.News)) error
	Close() error
}

// agentStore is the store of one deployment, whichever database it is in.
type agentStore interface {
	agent.SealedStore
	agent.TraceCounts
	// CountBy sets the interval in which traces are counted; it is called before the store is used.
	CountBy(interval time.Duration)
	Close() error
}

// readDatabaseURL finds the database's URL: in the flag, the environment, or a file; "" means SQLite in the data directory.
func readDatabaseURL(flag, file string, getenv func(string) string) (string, error) {
	url := firstOf(flag, getenv(databaseURLEnv))
	if file = firstOf(file, getenv(databaseFileEnv)); url == "" && file != "" {
		raw, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("cannot read the database URL: %w; correct --database-url-file", err)
		}
		if url = strings.TrimSpace(string(raw)); url == "" {
			return "", fmt.Errorf("the file %s with the database URL is empty; write one such as postgres://user:password@host:5432/database into it", file)
		}
	}
	if url != "" && !strings.HasPrefix(url, "postgres://") && !strings.HasPrefix(url, "postgresql://") {
		return "", errors.New("--database-url is no address of a PostgreSQL database; give one such as postgres://user:password@host:5432/database")
	}
	return url, nil
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// openControlStore opens the control store in PostgreSQL, or without a URL in the data directory.
func openControlStore(ctx context.Context, where installation, url string) (controlStore, error) {
	if url != "" {
		return postgres.OpenControl(ctx, url)
	}
	store, err := sqlite.OpenControl(where.path("control.db"))
	if err != nil {
		return nil, fmt.Errorf("the database cannot be opened: %w; restore it from a backup, or choose another --data-dir", err)
	}
	return store, nil
}

// agentDatabaseOf says where an agent server keeps its data: in the database of its own that the deployment's secret
// POSTGRES_URI_CUSTOM names (control-plane reference 4), else in the platform's; "" = SQLite in its data directory.
func agentDatabaseOf(getenv func(string) string) (url, schema string, err error) {
	if url = getenv(ownDatabaseEnv); url != "" {
		return url, firstOf(getenv(databaseSchemaEnv), agentSchema(firstOf(getenv("LANGSMITH_HOST_PROJECT_ID"), "server"))), nil
	}
	if url, schema = getenv(databaseURLEnv), getenv(databaseSchemaEnv); url != "" && schema == "" {
		return "", "", fmt.Errorf("%s is set but %s is not; name the schema of this deployment's data", databaseURLEnv, databaseSchemaEnv)
	}
	return url, schema, nil
}

// agentBus is the line between the agent servers of a deployment.
type agentBus interface {
	agent.Bus
	io.Closer
}

// openAgent opens an agent server's store and its line to the deployment's other servers: both in PostgreSQL, whose servers
// may be anywhere, or without a URL in the data directory.
func openAgent(ctx context.Context, dir, instance string, getenv func(string) string, log *slog.Logger) (agentStore, agentBus, error) {
	url, schema, err := agentDatabaseOf(getenv)
	if err != nil {
		return nil, nil, err
	}
	var store agentStore
	var bus agentBus
	if url == "" {
		if store, err = sqlite.OpenAgent(filepath.Join(dir, "agent.db")); err != nil {
			return nil, nil, err
		}
		bus, err = local.Open(filepath.Join(dir, "bus"), instance, log)
	} else {
		if store, err = postgres.OpenAgent(ctx, url, schema); err != nil {
			return nil, nil, err
		}
		bus, err = openLine(ctx, url, schema, instance, log)
	}
	if err != nil {
		return nil, nil, errors.Join(err, store.Close())
	}
	return store, bus, nil
}

func openLine(ctx context.Context, url, schema, instance string, log *slog.Logger) (agentBus, error) {
	line, err := postgres.NewLine(url, schema)
	if err != nil {
		return nil, err
	}
	return broadcast.Open(ctx, func(ctx context.Context) (broadcast.Wire, error) { return line.Connect(ctx) }, instance, log)
}

// agentSchema is where a deployment's data are on the database server.
func agentSchema(deploymentID string) string {
	return "agent_" + strings.ReplaceAll(deploymentID, "-", "_")
}

// agentDatabase says where agent servers keep their data and how it is removed; without a URL that is their data
// directory, which the runtime looks after.
func agentDatabase(url string, by counting) (env func(deploymentID string) map[string]string, destroy func(ctx context.Context, deploymentID string) error) {
	env = func(deploymentID string) map[string]string {
		all := map[string]string{traceIntervalEnv: strconv.FormatFloat(by.interval.Seconds(), 'f', -1, 64)}
		if url != "" {
			all[databaseURLEnv], all[databaseSchemaEnv] = url, agentSchema(deploymentID)
		}
		return all
	}
	return env, func(ctx context.Context, deploymentID string) error {
		if by.last != nil {
			if err := by.last(ctx, deploymentID); err != nil {
				return err
			}
		}
		if url == "" {
			return nil
		}
		return postgres.DropAgent(ctx, url, agentSchema(deploymentID))
	}
}

// private says whether a variable is for the agent server alone.
func private(name string) bool {
	return name == traceIntervalEnv || name == databaseURLEnv || name == databaseFileEnv || name == databaseSchemaEnv
}
