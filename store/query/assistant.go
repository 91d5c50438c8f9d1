package query

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

const (
	assistantColumns = `id, graph_id, config, context, metadata, version, name, description, created_at, updated_at, system`
	selectAssistant  = `SELECT ` + assistantColumns + ` FROM assistants WHERE id = ?`
	putAssistant     = `
INSERT INTO assistants (` + assistantColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET graph_id = excluded.graph_id, config = excluded.config, context = excluded.context,
  metadata = excluded.metadata, version = excluded.version, name = excluded.name, description = excluded.description,
  updated_at = excluded.updated_at, system = excluded.system`

	versionColumns  = `assistant_id, graph_id, config, context, metadata, version, name, description, created_at, created_at, system`
	selectVersion   = `SELECT ` + versionColumns + ` FROM assistant_versions WHERE assistant_id = ? AND version = ?`
	selectConfigged = `SELECT ` + versionColumns + ` FROM assistant_versions WHERE assistant_id = ? AND system = 1 ORDER BY version DESC LIMIT 1`
	insertVersion   = `
INSERT INTO assistant_versions (assistant_id, graph_id, config, context, metadata, version, name, description, created_at, system)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
)

func scanAssistant(s scanner) (a agent.Assistant, err error) {
	var metadata string
	var config, context secret
	var created, updated, system int64
	var description sql.NullString
	err = s.Scan(&a.ID, &a.GraphID, &config, &context, &metadata, &a.Version, &a.Name, &description, &created, &updated, &system)
	a.Config, a.Context, a.Metadata = json.RawMessage(config.String), json.RawMessage(context.String), json.RawMessage(metadata)
	a.CreatedAt, a.UpdatedAt, a.System = fromMicros(created), fromMicros(updated), system == 1
	if description.Valid {
		a.Description = &description.String
	}
	return a, err
}

func noAssistant() error { return slipway.Errorf(slipway.CodeNotFound, "Assistant not found") }

func getAssistant(c Conn, query string, args ...any) (agent.Assistant, error) {
	v, ok, err := one(c, scanAssistant, query, args...)
	if err == nil && !ok {
		err = noAssistant()
	}
	return v, err
}

// saveAssistant makes a the current state of the assistant.
func saveAssistant(c Conn, a agent.Assistant) error {
	_, err := c.Exec(putAssistant, a.ID, a.GraphID, hidden(object(a.Config)), hidden(object(a.Context)), object(a.Metadata), a.Version,
		a.Name, a.Description, micros(a.CreatedAt), micros(a.UpdatedAt), bit(a.System))
	return err
}

// addVersion makes a the current state and keeps it as a version; configured tells that it comes from the configuration.
func addVersion(c Conn, a agent.Assistant, configured bool) error {
	if err := saveAssistant(c, a); err != nil {
		return err
	}
	_, err := c.Exec(insertVersion, a.ID, a.GraphID, hidden(object(a.Config)), hidden(object(a.Context)), object(a.Metadata), a.Version,
		a.Name, a.Description, micros(a.UpdatedAt), bit(configured))
	return err
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

func nextVersion(c Conn, id string) (int, error) {
	n, _, err := one(c, scalar[int], `SELECT COALESCE(MAX(version), 0) FROM assistant_versions WHERE assistant_id = ?`, id)
	return n + 1, err
}

// SyncAssistants makes the system assistants exactly these.
func (a *Agent) SyncAssistants(ctx context.Context, system []agent.Assistant, now time.Time) error {
	return a.engine.Write(ctx, func(c Conn) error {
		keep := map[string]bool{}
		for _, s := range system {
			keep[s.ID] = true
			if err := syncAssistant(c, s, now); err != nil {
				return err
			}
		}
		return dropAssistants(c, keep)
	})
}

func syncAssistant(c Conn, s agent.Assistant, now time.Time) error {
	last, ok, err := one(c, scanAssistant, selectConfigged, s.ID)
	if err != nil || ok && sameDefinition(last, s) {
		return err
	}
	s.CreatedAt, s.UpdatedAt, s.System = now, now, true // an insert; what is there keeps its created_at
	if s.Version, err = nextVersion(c, s.ID); err != nil {
		return err
	}
	return addVersion(c, s, true)
}

func sameDefinition(a, b agent.Assistant) bool {
	same := a.Description == b.Description || a.Description != nil && b.Description != nil && *a.Description == *b.Description
	return same && a.GraphID == b.GraphID && a.Name == b.Name && object(a.Config) == object(b.Config) &&
		object(a.Context) == object(b.Context) && object(a.Metadata) == object(b.Metadata)
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

// CreateAssistant inserts version 1.
func (a *Agent) CreateAssistant(ctx context.Context, v agent.Assistant, reuse bool) (agent.Assistant, error) {
	return write(ctx, a.engine, func(c Conn) (agent.Assistant, error) {
		found, ok, err := one(c, scanAssistant, selectAssistant, v.ID)
		if err != nil || ok && reuse {
			return found, err
		}
		if ok {
			return found, slipway.Errorf(slipway.CodeConflict, "Assistant already exists")
		}
		v.Version, v.System = 1, false
		return v, addVersion(c, v, false)
	})
}

// Assistant returns one assistant.
func (a *Agent) Assistant(ctx context.Context, id string) (agent.Assistant, error) {
	return read(ctx, a.engine, func(c Conn) (agent.Assistant, error) { return getAssistant(c, selectAssistant, id) })
}

func (a *Agent) assistantsWhere(q agent.AssistantQuery) *where {
	w := &where{}
	if q.Metadata != nil {
		w.and(a.dialect.Contains("metadata"), string(q.Metadata))
	}
	w.allow(a.dialect.Allows("metadata"), q.Filter)
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

// PatchAssistant makes a new version and makes it the current one.
func (a *Agent) PatchAssistant(ctx context.Context, id string, p agent.AssistantPatch, now time.Time) (agent.Assistant, error) {
	return write(ctx, a.engine, func(c Conn) (agent.Assistant, error) {
		v, err := getAssistant(c, selectAssistant, id)
		if err != nil {
			return v, err
		}
		if v, err = patched(v, p); err != nil {
			return v, err
		}
		if v.Version, err = nextVersion(c, id); err != nil {
			return v, err
		}
		v.UpdatedAt = now
		return v, addVersion(c, v, false)
	})
}

func patched(v agent.Assistant, p agent.AssistantPatch) (agent.Assistant, error) {
	if p.GraphID != nil {
		v.GraphID = *p.GraphID
	}
	if p.Config != nil {
		v.Config = p.Config
	}
	if p.Context != nil {
		v.Context = p.Context
	}
	if p.Name != nil {
		v.Name = *p.Name
	}
	if p.Description != nil {
		v.Description = p.Description
	}
	var err error
	v.Metadata, err = merge(v.Metadata, p.Metadata)
	return v, err
}

// AssistantVersions lists the versions of an assistant, newest first.
func (a *Agent) AssistantVersions(ctx context.Context, q agent.VersionQuery) ([]agent.Assistant, error) {
	return read(ctx, a.engine, func(c Conn) ([]agent.Assistant, error) {
		if _, err := getAssistant(c, selectAssistant, q.AssistantID); err != nil {
			return nil, err
		}
		w := &where{}
		w.and("assistant_id = ?", q.AssistantID)
		if q.Metadata != nil {
			w.and(a.dialect.Contains("metadata"), string(q.Metadata))
		}
		tail, args := w.page(" ORDER BY version DESC", q.Limit, q.Offset)
		return all(c, scanAssistant, `SELECT `+versionColumns+` FROM assistant_versions`+tail, args...)
	})
}

// SetLatestVersion makes an earlier version the current one.
func (a *Agent) SetLatestVersion(ctx context.Context, id string, version int, now time.Time) (agent.Assistant, error) {
	return write(ctx, a.engine, func(c Conn) (agent.Assistant, error) {
		current, err := getAssistant(c, selectAssistant, id)
		if err != nil {
			return current, err
		}
		v, err := getAssistant(c, selectVersion, id, version)
		if err != nil {
			return v, err
		}
		v.System, v.CreatedAt, v.UpdatedAt = current.System, current.CreatedAt, now
		return v, saveAssistant(c, v)
	})
}

// DeleteAssistant removes an assistant with all its versions.
func (a *Agent) DeleteAssistant(ctx context.Context, id string) error {
	return a.engine.Write(ctx, func(c Conn) error {
		if _, err := getAssistant(c, selectAssistant, id); err != nil {
			return err
		}
		if _, err := c.Exec(`DELETE FROM crons WHERE assistant_id = ?`, id); err != nil {
			return err
		}
		_, err := c.Exec(`DELETE FROM assistants WHERE id = ?`, id)
		return err
	})
}
