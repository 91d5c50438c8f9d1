package query

import (
	"time"

	"github.com/slipway-dev/slipway"
)

const putIntegration = `
INSERT INTO integrations (id, tenant_id, kind, name, doc) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET name = excluded.name, doc = excluded.doc`

// PutIntegration stores an integration.
func (t *tx) PutIntegration(i slipway.Integration) error {
	_, err := t.c.Exec(putIntegration, i.ID, i.TenantID, i.Kind, i.Name, encode(i))
	if t.taken(err, `SELECT 1 FROM integrations WHERE tenant_id = ? AND name = ? AND id <> ?`, i.TenantID, i.Name, i.ID) {
		return slipway.Errorf(slipway.CodeConflict, "an integration named %q exists already; choose another name", i.Name)
	}
	return err
}

// Integration returns one integration.
func (t *tx) Integration(tenantID, id string) (slipway.Integration, error) {
	return find[slipway.Integration](t.c, "Integration "+id+" does not exist",
		`SELECT doc FROM integrations WHERE id = ?1 AND (?2 = '' OR tenant_id = ?2)`, id, tenantID)
}

// Integrations lists a tenant's integrations; their ids rise with time.
func (t *tx) Integrations(q slipway.IntegrationQuery) ([]slipway.Integration, error) {
	w := &where{}
	w.and("tenant_id = ?", q.TenantID)
	if q.Kind != "" {
		w.and("kind = ?", string(q.Kind))
	}
	if q.Before != "" {
		w.and("id < ?", q.Before)
	}
	tail, args := w.page(" ORDER BY id DESC", q.Limit, q.Offset)
	return all(t.c, doc[slipway.Integration], `SELECT doc FROM integrations`+tail, args...)
}

// DeleteIntegration removes an integration with its deliveries and statuses.
func (t *tx) DeleteIntegration(id string) error {
	for _, table := range []string{"deliveries", "status_notes"} {
		if _, err := t.c.Exec(`DELETE FROM `+table+` WHERE integration_id = ?`, id); err != nil {
			return err
		}
	}
	_, err := t.c.Exec(`DELETE FROM integrations WHERE id = ?`, id)
	return err
}

// AddDelivery records a delivery and says whether it is the first under its key.
func (t *tx) AddDelivery(integrationID, key string, at time.Time) (bool, error) {
	n, err := t.c.Exec(`INSERT INTO deliveries (integration_id, key, at) VALUES (?, ?, ?) ON CONFLICT (integration_id, key) DO NOTHING`,
		integrationID, key, micros(at))
	return n == 1, err
}

// PruneDeliveries forgets old deliveries.
func (t *tx) PruneDeliveries(integrationID string, before time.Time) error {
	_, err := t.c.Exec(`DELETE FROM deliveries WHERE integration_id = ? AND at < ?`, integrationID, micros(before))
	return err
}

const putStatusNote = `
INSERT INTO status_notes (revision_id, integration_id, version, next_at, doc) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (revision_id) DO UPDATE SET version = excluded.version, next_at = excluded.next_at, doc = excluded.doc`

// PutStatusNote inserts a status or replaces the revision's.
func (t *tx) PutStatusNote(n slipway.StatusNote) error {
	_, err := t.c.Exec(putStatusNote, n.RevisionID, n.IntegrationID, n.Version, micros(n.NextAt), encode(n))
	return err
}

// StatusNotes lists what is due, the oldest first.
func (t *tx) StatusNotes(due time.Time, limit int) ([]slipway.StatusNote, error) {
	w := &where{}
	if !due.IsZero() {
		w.and("next_at <= ?", micros(due))
	}
	tail, args := w.page(" ORDER BY next_at, revision_id", limit, 0)
	return all(t.c, doc[slipway.StatusNote], `SELECT doc FROM status_notes`+tail, args...)
}

// RescheduleStatusNote stores when to try again.
func (t *tx) RescheduleStatusNote(n slipway.StatusNote) error {
	_, err := t.c.Exec(`UPDATE status_notes SET next_at = ?, doc = ? WHERE revision_id = ? AND version = ?`,
		micros(n.NextAt), encode(n), n.RevisionID, n.Version)
	return err
}

// DeleteStatusNote removes a status that was delivered or given up.
func (t *tx) DeleteStatusNote(n slipway.StatusNote) error {
	_, err := t.c.Exec(`DELETE FROM status_notes WHERE revision_id = ? AND version = ?`, n.RevisionID, n.Version)
	return err
}
