package slipway

// TracingProjectRecords keeps tracing projects; it is part of Tx.
type TracingProjectRecords interface {
	// PutTracingProject inserts or replaces a project by ID; CodeConflict if the tenant has another of the name.
	PutTracingProject(p TracingProject) error
	// TracingProject returns one project of the tenant.
	TracingProject(tenantID, id string) (TracingProject, error)
	// TracingProjectByName returns the tenant's project of exactly this name.
	TracingProjectByName(tenantID, name string) (TracingProject, error)
	// TracingProjects lists the projects of one tenant, newest first.
	TracingProjects(q TracingProjectQuery) ([]TracingProject, error)
}

// TracingProjectQuery selects tracing projects of one tenant, newest first.
type TracingProjectQuery struct {
	TenantID string
	Name     string // exact; "" = any
	Limit    int    // 0 = no bound
	Offset   int
}
