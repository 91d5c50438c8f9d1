// Package postgres opens the stores of the house in PostgreSQL 14 or newer: the control service's records in one schema,
// each deployment's in one of its own (DESIGN.md). Any number of processes may work on the same schema.
package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/slipway-dev/slipway/store/query"
)

const (
	controlSchema  = "slipway"
	beaconSchema   = "slipway_collector"
	controlReaders = 8
	agentReaders   = 4
)

// ControlStore is the control store in a database; it implements slipway.Store.
type ControlStore struct {
	*query.Control
	engine *engine
	logs   *writer
	server server
}

// AgentStore is the store of one deployment in a schema; it implements agent.Store.
type AgentStore struct {
	*query.Agent
	engine *engine
}

// OpenControl opens the control store, making or migrating its schema: the one that search_path in the URL names, else
// "slipway".
func OpenControl(ctx context.Context, url string) (*ControlStore, error) {
	sv, err := prepare(ctx, url, "", "control")
	if err != nil {
		return nil, err
	}
	s := &ControlStore{
		server: sv, logs: newWriter(sv, "logs", ""),
		engine: &engine{writer: newWriter(sv, "records", sv.news()), readers: newReaders(sv, controlReaders)},
	}
	s.Control = query.NewControl(s.engine, s.logs, dialect{})
	return s, nil
}

// Close applies what is queued and closes all connections. It is idempotent.
func (s *ControlStore) Close() error { return errors.Join(s.logs.close(), s.engine.close()) }

// OpenAgent opens the store of one deployment, making or migrating its schema.
func OpenAgent(ctx context.Context, url, schema string) (*AgentStore, error) {
	sv, err := prepare(ctx, url, schema, "agent")
	if err != nil {
		return nil, err
	}
	var d dialect
	if d.vectors, d.operators, err = pgvector(ctx, sv); err != nil {
		return nil, fmt.Errorf("look for pgvector: %w", sv.explain(err))
	}
	e := &engine{writer: newWriter(sv, "records", ""), readers: newReaders(sv, agentReaders)}
	return &AgentStore{Agent: query.NewAgent(e, d, instances{server: sv}), engine: e}, nil
}

// Close applies what is queued and closes all connections. It is idempotent.
func (s *AgentStore) Close() error { return s.engine.close() }

// Pool tells the state of the store's connections.
func (s *AgentStore) Pool() PoolStats { return s.engine.readers.stats() }

// BeaconStore is the store of a collector in a schema; it implements beacon.Store.
type BeaconStore struct {
	*query.Beacon
	engine *engine
}

// OpenBeacon opens the store of a collector, making or migrating its schema, "slipway_collector". Any number of collectors
// may share it.
func OpenBeacon(ctx context.Context, url string) (*BeaconStore, error) {
	sv, err := prepare(ctx, url, beaconSchema, "beacon")
	if err != nil {
		return nil, err
	}
	e := &engine{writer: newWriter(sv, "records", ""), readers: newReaders(sv, agentReaders)}
	return &BeaconStore{Beacon: query.NewBeacon(e), engine: e}, nil
}

// Close applies what is queued and closes all connections. It is idempotent.
func (s *BeaconStore) Close() error { return s.engine.close() }

func (e *engine) close() error { return errors.Join(e.writer.close(), e.readers.close()) }

// HasAgent says whether there is a store of a deployment.
func HasAgent(ctx context.Context, url, schema string) (found bool, err error) {
	sv, err := newServer(url, schema, "")
	if err != nil {
		return false, err
	}
	c, err := sv.connect(ctx)
	if err != nil {
		return false, sv.explain(err)
	}
	defer func() { _ = closeConn(c) }()
	if err := c.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1)", schema).Scan(&found); err != nil {
		return false, fmt.Errorf("look for the schema %s: %w", schema, sv.explain(err))
	}
	return found, nil
}

// DropAgent removes everything of a deployment. It is idempotent.
func DropAgent(ctx context.Context, url, schema string) error {
	sv, err := newServer(url, schema, "")
	if err != nil {
		return err
	}
	c, err := sv.connect(ctx)
	if err != nil {
		return sv.explain(err)
	}
	defer func() { _ = closeConn(c) }()
	if _, err := c.Exec(ctx, "DROP SCHEMA IF EXISTS "+pgx.Identifier{schema}.Sanitize()+" CASCADE"); err != nil {
		return fmt.Errorf("drop the schema %s: %w", schema, sv.explain(err))
	}
	return nil
}
