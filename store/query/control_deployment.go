package query

import "github.com/slipway-dev/slipway"

// deploymentsWhere makes the conditions of a query.
func (t *tx) deploymentsWhere(q slipway.DeploymentQuery) *where {
	w := &where{}
	for _, c := range []struct{ column, value string }{
		{"tenant_id", q.TenantID}, {"name", q.Name}, {"image_version", q.ImageVersion}, {"type", q.Type}, {"integration_id", q.Integration},
	} {
		if c.value != "" {
			w.and(c.column+" = ?", c.value)
		}
	}
	if q.NameContains != "" {
		w.and(t.dialect.Folded("name"), q.NameContains)
	}
	if q.Listener != nil {
		w.and("listener_id = ?", *q.Listener)
	}
	if q.Remote != nil {
		w.and(map[bool]string{true: "listener_id <> ''", false: "listener_id = ''"}[*q.Remote])
	}
	if len(q.Statuses) == 0 {
		w.and("status <> 'AWAITING_DELETE'")
	}
	in(w, "status", q.Statuses)
	in(w, "id", q.IDs)
	return w
}

// CountDeployments counts deployments.
func (t *tx) CountDeployments(q slipway.DeploymentQuery) (int, error) {
	w := t.deploymentsWhere(q)
	n, _, err := one(t.c, scalar[int], `SELECT count(*) FROM deployments`+w.text, w.args...)
	return n, err
}

// DueDeployment returns the deployment whose deletion has the next step that waits for time.
func (t *tx) DueDeployment() (slipway.Deployment, error) {
	return find[slipway.Deployment](t.c, "no deployment waits for time",
		`SELECT doc FROM deployments WHERE due_at > 0 ORDER BY due_at LIMIT 1`)
}
