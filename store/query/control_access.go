package query

import (
	"encoding/json"
	"time"

	"github.com/slipway-dev/slipway"
)

// PutTenant stores a tenant.
func (t *tx) PutTenant(v slipway.Tenant) error {
	_, err := t.c.Exec(`INSERT INTO tenants (id, name, created_at, doc) VALUES (?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET name = excluded.name, doc = excluded.doc`, v.ID, v.Name, micros(v.CreatedAt), encode(v))
	if t.taken(err, `SELECT 1 FROM tenants WHERE name = ? AND id <> ?`, v.Name, v.ID) {
		return slipway.Errorf(slipway.CodeConflict, "a tenant named %q exists already; choose another name", v.Name)
	}
	return err
}

// Tenant returns one tenant.
func (t *tx) Tenant(id string) (slipway.Tenant, error) {
	return find[slipway.Tenant](t.c, "Tenant "+id+" does not exist", `SELECT doc FROM tenants WHERE id = ?`, id)
}

// Tenants lists tenants, oldest first.
func (t *tx) Tenants(q slipway.TenantQuery) ([]slipway.Tenant, error) {
	w := &where{}
	if q.ID != "" {
		w.and("id = ?", q.ID)
	}
	if q.Name != "" {
		w.and("name = ?", q.Name)
	}
	tail, args := w.page(" ORDER BY created_at, id", q.Limit, q.Offset)
	return all(t.c, doc[slipway.Tenant], `SELECT doc FROM tenants`+tail, args...)
}

// DeleteTenant removes a tenant with what only it can reach.
func (t *tx) DeleteTenant(id string) error {
	for _, table := range []string{"api_keys", "tracing_projects"} {
		if _, err := t.c.Exec(`DELETE FROM `+table+` WHERE tenant_id = ?`, id); err != nil {
			return err
		}
	}
	_, err := t.c.Exec(`DELETE FROM tenants WHERE id = ?`, id)
	return err
}

const (
	putAPIKey = `
INSERT INTO api_keys (id, tenant_id, deployment_id, hash, doc) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET hash = excluded.hash, doc = excluded.doc`
	selectAPIKey = `SELECT doc, last_used_at FROM api_keys`
)

// PutAPIKey stores the record of a key.
func (t *tx) PutAPIKey(k slipway.APIKey) error {
	_, err := t.c.Exec(putAPIKey, k.ID, k.TenantID, k.DeploymentID, k.Hash, encode(k))
	return err
}

func scanAPIKey(s scanner) (k slipway.APIKey, err error) {
	var text string
	var used int64
	if err := s.Scan(&text, &used); err != nil {
		return k, err
	}
	err = json.Unmarshal([]byte(text), &k)
	k.LastUsedAt = fromMicros(used)
	return k, err
}

func (t *tx) apiKey(tail string, args ...any) (slipway.APIKey, error) {
	k, ok, err := one(t.c, scanAPIKey, selectAPIKey+tail, args...)
	if err == nil && !ok {
		err = slipway.Errorf(slipway.CodeNotFound, "the API key does not exist")
	}
	return k, err
}

// APIKeyByHash returns the record of a key.
func (t *tx) APIKeyByHash(hash string) (slipway.APIKey, error) {
	return t.apiKey(` WHERE hash = ?`, hash)
}

// APIKey returns one key of its owner.
func (t *tx) APIKey(tenantID, id string) (slipway.APIKey, error) {
	return t.apiKey(` WHERE id = ? AND tenant_id = ?`, id, tenantID)
}

// APIKeys lists the keys of one owner; their ids rise with time.
func (t *tx) APIKeys(q slipway.APIKeyQuery) ([]slipway.APIKey, error) {
	w := &where{}
	w.and("tenant_id = ?", q.TenantID)
	if q.DeploymentID != "" {
		w.and("deployment_id = ?", q.DeploymentID)
	}
	tail, args := w.page(" ORDER BY id DESC", q.Limit, q.Offset)
	return all(t.c, scanAPIKey, selectAPIKey+tail, args...)
}

// TouchAPIKeys records when keys were last used.
func (t *tx) TouchAPIKeys(used map[string]time.Time) error {
	for id, at := range used {
		if _, err := t.c.Exec(`UPDATE api_keys SET last_used_at = ?1 WHERE id = ?2 AND last_used_at < ?1`, micros(at), id); err != nil {
			return err
		}
	}
	return nil
}
