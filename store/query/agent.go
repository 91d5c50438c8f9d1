package query

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

// Instances tells which agent servers of a deployment live.
type Instances interface {
	Register(id string) (release func() error, err error)
	Alive(id string) (bool, error)
	AwaitEnd(ctx context.Context, id string) error
}

// Agent keeps everything of one deployment; it implements agent.Store. It is safe for concurrent use.
type Agent struct {
	engine    Engine
	dialect   Dialect
	instances Instances
}

// NewAgent makes the agent store over an engine whose database has been migrated.
func NewAgent(e Engine, d Dialect, i Instances) *Agent {
	return &Agent{engine: e, dialect: d, instances: i}
}

var _ agent.Store = (*Agent)(nil)

func noThread(id string) error {
	return slipway.Errorf(slipway.CodeNotFound, "Thread with ID %s not found", id)
}

func noRun() error { return slipway.Errorf(slipway.CodeNotFound, "Run not found") }

// read runs fn on a snapshot and returns what it yields.
func read[T any](ctx context.Context, e Engine, fn func(Conn) (T, error)) (v T, err error) {
	err = e.Read(ctx, func(c Conn) error { v, err = fn(c); return err })
	return v, err
}

// write runs fn in a transaction and returns what it yields.
func write[T any](ctx context.Context, e Engine, fn func(Conn) (T, error)) (v T, err error) {
	err = e.Write(ctx, func(c Conn) (err error) { v, err = fn(c); return err })
	return v, err
}

const assistantColumns = `id, graph_id, config, context, metadata, version, name, description, created_at, updated_at, system`

func scanAssistant(s scanner) (a agent.Assistant, err error) {
	var config, context, metadata string
	var created, updated int64
	var description sql.NullString
	err = s.Scan(&a.ID, &a.GraphID, &config, &context, &metadata, &a.Version, &a.Name, &description, &created, &updated, &a.System)
	a.Config, a.Context, a.Metadata = json.RawMessage(config), json.RawMessage(context), json.RawMessage(metadata)
	a.CreatedAt, a.UpdatedAt = fromMicros(created), fromMicros(updated)
	if description.Valid {
		a.Description = &description.String
	}
	return a, err
}

// putAssistant leaves an unchanged one as it is, so that updated_at says when it changed.
const putAssistant = `
INSERT INTO assistants (` + assistantColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1)
ON CONFLICT (id) DO UPDATE SET graph_id = excluded.graph_id, config = excluded.config, context = excluded.context,
  metadata = excluded.metadata, name = excluded.name, description = excluded.description, updated_at = excluded.updated_at, system = 1
WHERE (graph_id, config, context, metadata, name, description, system)
  IS NOT (excluded.graph_id, excluded.config, excluded.context, excluded.metadata, excluded.name, excluded.description, 1)`

// SyncAssistants makes the system assistants exactly these.
func (a *Agent) SyncAssistants(ctx context.Context, system []agent.Assistant, now time.Time) error {
	return a.engine.Write(ctx, func(c Conn) error {
		keep := map[string]bool{}
		for _, s := range system {
			keep[s.ID] = true
			_, err := c.Exec(putAssistant, s.ID, s.GraphID, object(s.Config), object(s.Context), object(s.Metadata), max(s.Version, 1),
				s.Name, s.Description, micros(now), micros(now))
			if err != nil {
				return err
			}
		}
		return dropAssistants(c, keep)
	})
}

func dropAssistants(c Conn, keep map[string]bool) error {
	ids, err := all(c, scalar[string], `SELECT id FROM assistants WHERE system = 1`)
	for _, id := range ids {
		if err == nil && !keep[id] {
			_, err = c.Exec(`DELETE FROM assistants WHERE id = ?`, id)
		}
	}
	return err
}

// Assistant returns one assistant.
func (a *Agent) Assistant(ctx context.Context, id string) (agent.Assistant, error) {
	return read(ctx, a.engine, func(c Conn) (agent.Assistant, error) {
		v, ok, err := one(c, scanAssistant, `SELECT `+assistantColumns+` FROM assistants WHERE id = ?`, id)
		if err == nil && !ok {
			err = slipway.Errorf(slipway.CodeNotFound, "Assistant not found")
		}
		return v, err
	})
}

func (a *Agent) assistantsWhere(q agent.AssistantQuery) *where {
	w := &where{}
	if q.Metadata != nil {
		w.and(a.dialect.Contains("metadata"), string(q.Metadata))
	}
	if q.GraphID != "" {
		w.and("graph_id = ?", q.GraphID)
	}
	if q.Name != "" {
		w.and(a.dialect.Folded("name"), q.Name)
	}
	return w
}

// Assistants lists assistants.
func (a *Agent) Assistants(ctx context.Context, q agent.AssistantQuery) ([]agent.Assistant, error) {
	columns := map[string]string{"": "created_at", "assistant_id": "id", "created_at": "created_at", "updated_at": "updated_at", "name": "name", "graph_id": "graph_id"}
	order, err := orderBy(columns, q.SortBy, q.Ascending)
	if err != nil {
		return nil, err
	}
	return read(ctx, a.engine, func(c Conn) ([]agent.Assistant, error) {
		tail, args := a.assistantsWhere(q).page(order, q.Limit, q.Offset)
		return all(c, scanAssistant, `SELECT `+assistantColumns+` FROM assistants`+tail, args...)
	})
}

// CountAssistants counts what Assistants would list without bounds.
func (a *Agent) CountAssistants(ctx context.Context, q agent.AssistantQuery) (int, error) {
	return read(ctx, a.engine, func(c Conn) (int, error) {
		w := a.assistantsWhere(q)
		n, _, err := one(c, scalar[int], `SELECT count(*) FROM assistants`+w.text, w.args...)
		return n, err
	})
}

// orderBy makes the ORDER BY of a list from a column name of the reference.
func orderBy(columns map[string]string, by string, ascending bool) (string, error) {
	column, ok := columns[by]
	if !ok {
		return "", slipway.Errorf(slipway.CodeInvalid, "cannot sort by %q; use a column of the list", by)
	}
	direction := " DESC"
	if ascending {
		direction = ""
	}
	return " ORDER BY " + column + direction + ", id" + direction, nil
}

// Register announces a server instance.
func (a *Agent) Register(_ context.Context, instance string) (func() error, error) {
	return a.instances.Register(instance)
}

// AwaitEnd returns when an instance is not alive any more.
func (a *Agent) AwaitEnd(ctx context.Context, instance string) error {
	return a.instances.AwaitEnd(ctx, instance)
}

const runningInstances = `SELECT DISTINCT instance FROM runs WHERE status = 'running'`

// Dead returns the instances that hold running runs and are not alive.
func (a *Agent) Dead(ctx context.Context) ([]string, error) {
	ids, err := read(ctx, a.engine, func(c Conn) ([]string, error) { return all(c, scalar[string], runningInstances) })
	if err != nil {
		return nil, err
	}
	dead := []string{}
	for _, id := range ids {
		alive, err := a.instances.Alive(id)
		if err != nil {
			return nil, err
		}
		if !alive {
			dead = append(dead, id)
		}
	}
	return dead, nil
}
