package query

import "github.com/slipway-dev/slipway"

// Listener returns one listener.
func (t *tx) Listener(tenantID, id string) (slipway.Listener, error) {
	return find[slipway.Listener](t.c, "Listener "+id+" does not exist",
		`SELECT doc FROM listeners WHERE id = ?1 AND (?2 = '' OR tenant_id = ?2)`, id, tenantID)
}

// Listeners lists listeners, newest first.
func (t *tx) Listeners(q slipway.ListenerQuery) ([]slipway.Listener, error) {
	w := &where{}
	if q.TenantID != "" {
		w.and("tenant_id = ?", q.TenantID)
	}
	if q.ComputeID != "" {
		w.and("compute_id = ?", q.ComputeID)
	}
	tail, args := w.page(" ORDER BY created_at DESC, id DESC", q.Limit, q.Offset)
	return all(t.c, doc[slipway.Listener], `SELECT doc FROM listeners`+tail, args...)
}

const putListener = `
INSERT INTO listeners (id, tenant_id, compute_id, created_at, doc) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET doc = excluded.doc`

// PutListener stores a listener.
func (t *tx) PutListener(l slipway.Listener) error {
	_, err := t.c.Exec(putListener, l.ID, l.TenantID, l.ComputeID, micros(l.CreatedAt), encode(l))
	if t.taken(err, `SELECT 1 FROM listeners WHERE tenant_id = ? AND compute_id = ? AND id <> ?`, l.TenantID, l.ComputeID, l.ID) {
		return slipway.Errorf(slipway.CodeConflict, "a listener of compute_id %q exists already; PATCH that one, or use another compute_id", l.ComputeID)
	}
	return err
}

// DeleteListener removes a listener.
func (t *tx) DeleteListener(id string) error {
	_, err := t.c.Exec(`DELETE FROM listeners WHERE id = ?`, id)
	return err
}

const putMetrics = `
INSERT INTO deployment_metrics (deployment_id, tenant_id, doc) VALUES (?, ?, ?)
ON CONFLICT (deployment_id) DO UPDATE SET doc = excluded.doc`

// PutMetrics replaces what is known of a deployment's workloads.
func (t *tx) PutMetrics(m slipway.Metrics) error {
	_, err := t.c.Exec(putMetrics, m.DeploymentID, m.TenantID, encode(m))
	return err
}

// Metrics returns what was last measured of a deployment.
func (t *tx) Metrics(tenantID, deploymentID string) (slipway.Metrics, error) {
	return find[slipway.Metrics](t.c, "nothing was measured of deployment "+deploymentID+" yet",
		`SELECT doc FROM deployment_metrics WHERE deployment_id = ?1 AND (?2 = '' OR tenant_id = ?2)`, deploymentID, tenantID)
}
