package query

import "github.com/slipway-dev/slipway"

const putTracingProject = `
INSERT INTO tracing_projects (id, tenant_id, deployment_id, name, doc) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET deployment_id = excluded.deployment_id, name = excluded.name, doc = excluded.doc`

// PutTracingProject stores a tracing project.
func (t *tx) PutTracingProject(p slipway.TracingProject) error {
	_, err := t.c.Exec(putTracingProject, p.ID, p.TenantID, p.DeploymentID, p.Name, encode(p))
	if t.taken(err, `SELECT 1 FROM tracing_projects WHERE tenant_id = ? AND name = ? AND id <> ?`, p.TenantID, p.Name, p.ID) {
		return slipway.Errorf(slipway.CodeConflict, "a tracing project named %q exists already; choose another name", p.Name)
	}
	return err
}

// TracingProject returns one tracing project of a tenant.
func (t *tx) TracingProject(tenantID, id string) (slipway.TracingProject, error) {
	return find[slipway.TracingProject](t.c, "Tracing project "+id+" does not exist",
		`SELECT doc FROM tracing_projects WHERE id = ?1 AND (?2 = '' OR tenant_id = ?2)`, id, tenantID)
}

// TracingProjectByName returns a tenant's tracing project.
func (t *tx) TracingProjectByName(tenantID, name string) (slipway.TracingProject, error) {
	return find[slipway.TracingProject](t.c, "Tracing project "+name+" does not exist",
		`SELECT doc FROM tracing_projects WHERE name = ?1 AND (?2 = '' OR tenant_id = ?2)`, name, tenantID)
}

// TracingProjects lists a tenant's tracing projects; their ids rise with time.
func (t *tx) TracingProjects(q slipway.TracingProjectQuery) ([]slipway.TracingProject, error) {
	w := &where{}
	w.and("tenant_id = ?", q.TenantID)
	if q.Name != "" {
		w.and("name = ?", q.Name)
	}
	tail, args := w.page(" ORDER BY id DESC", q.Limit, q.Offset)
	return all(t.c, doc[slipway.TracingProject], `SELECT doc FROM tracing_projects`+tail, args...)
}
