package controltest

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/slipway-dev/slipway"
)

func (t *tx) PutTenant(v slipway.Tenant) error {
	for _, other := range t.tenants {
		if other.ID != v.ID && other.Name == v.Name {
			return slipway.Errorf(slipway.CodeConflict, "a tenant named %q exists already; choose another name", v.Name)
		}
	}
	t.tenants[v.ID] = v
	return nil
}

func (t *tx) Tenant(id string) (slipway.Tenant, error) { return find(t.tenants, "tenant", id) }

func (t *tx) Tenants(q slipway.TenantQuery) ([]slipway.Tenant, error) {
	out := slices.SortedFunc(maps.Values(t.tenants), func(a, b slipway.Tenant) int {
		if c := a.CreatedAt.Compare(b.CreatedAt); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	out = slices.DeleteFunc(out, func(v slipway.Tenant) bool {
		return q.ID != "" && q.ID != v.ID || q.Name != "" && q.Name != v.Name
	})
	return cut(out, q.Limit, q.Offset), nil
}

func (t *tx) DeleteTenant(id string) error {
	maps.DeleteFunc(t.keys, func(_ string, k slipway.APIKey) bool { return k.TenantID == id })
	maps.DeleteFunc(t.projects, func(_ string, p slipway.TracingProject) bool { return p.TenantID == id })
	delete(t.tenants, id)
	return nil
}

func (t *tx) PutAPIKey(k slipway.APIKey) error {
	k.LastUsedAt = t.keys[k.ID].LastUsedAt
	t.keys[k.ID] = k
	return nil
}

func (t *tx) APIKeyByHash(hash string) (slipway.APIKey, error) {
	for _, k := range t.keys {
		if k.Hash == hash {
			return k, nil
		}
	}
	return slipway.APIKey{}, none("key", hash)
}

func (t *tx) APIKey(tenantID, id string) (slipway.APIKey, error) {
	k, err := find(t.keys, "key", id)
	if err == nil && k.TenantID != tenantID {
		return slipway.APIKey{}, none("key", id)
	}
	return k, err
}

func (t *tx) APIKeys(q slipway.APIKeyQuery) ([]slipway.APIKey, error) {
	var out []slipway.APIKey
	for _, k := range t.keys {
		if k.TenantID == q.TenantID && (q.DeploymentID == "" || q.DeploymentID == k.DeploymentID) {
			out = append(out, k)
		}
	}
	slices.SortFunc(out, func(a, b slipway.APIKey) int { return strings.Compare(b.ID, a.ID) })
	return cut(out, q.Limit, q.Offset), nil
}

func (t *tx) TouchAPIKeys(used map[string]time.Time) error {
	for id, at := range used {
		if k, ok := t.keys[id]; ok && at.After(k.LastUsedAt) {
			k.LastUsedAt = at
			t.keys[id] = k
		}
	}
	return nil
}

func (t *tx) AppendAudit(e slipway.AuditEntry) error {
	if e.Outcome == "" {
		e.Outcome = slipway.OutcomeSuccess
	}
	e.At = e.At.Truncate(time.Microsecond)
	e.Changes = slices.Clone(e.Changes)
	for i, c := range e.Changes {
		e.Changes[i].Before, e.Changes[i].After = orNull(c.Before), orNull(c.After)
	}
	t.audit = append(t.audit, e)
	return nil
}

// orNull is what a stored absence comes back as.
func orNull(v json.RawMessage) json.RawMessage {
	if v == nil {
		return json.RawMessage("null")
	}
	return v
}

func (t *tx) AuditEntries(q slipway.AuditQuery) ([]slipway.AuditEntry, error) {
	var out []slipway.AuditEntry
	for _, e := range t.audit {
		if auditMatches(q, e) {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b slipway.AuditEntry) int { return newerFirst(b.At, b.ID, a.At, a.ID) })
	return cut(out, q.Limit, 0), nil
}

func newerFirst(at time.Time, id string, otherAt time.Time, other string) int {
	if c := at.Compare(otherAt); c != 0 {
		return c
	}
	return strings.Compare(id, other)
}

func auditMatches(q slipway.AuditQuery, e slipway.AuditEntry) bool {
	same := func(want, got string) bool { return want == "" || want == got }
	return same(q.TenantID, e.TenantID) && same(q.Operation, e.Operation) && same(q.Principal, e.Principal) && same(q.Subject, e.Subject) &&
		same(string(q.Outcome), string(e.Outcome)) && same(q.RequestID, e.RequestID) &&
		(q.From.IsZero() || !e.At.Before(q.From)) && (q.To.IsZero() || e.At.Before(q.To)) &&
		(q.After.At.IsZero() || newerFirst(e.At, e.ID, q.After.At, q.After.ID) < 0)
}

func (t *tx) DeleteAudit(before time.Time, limit int) (int, error) {
	n := 0
	t.audit = slices.DeleteFunc(t.audit, func(e slipway.AuditEntry) bool {
		old := e.At.Before(before) && n < limit
		if old {
			n++
		}
		return old
	})
	return n, nil
}
