package query

import "github.com/slipway-dev/slipway"

// PutUpload stores a slot for a source tarball.
func (t *tx) PutUpload(u slipway.Upload) error {
	_, err := t.c.Exec(`INSERT INTO uploads (id, deployment_id, tenant_id, object_path, doc) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET doc = excluded.doc`, u.ID, u.DeploymentID, u.TenantID, u.ObjectPath, encode(u))
	return err
}

// Upload returns one slot.
func (t *tx) Upload(id string) (slipway.Upload, error) {
	return find[slipway.Upload](t.c, "Upload "+id+" does not exist", `SELECT doc FROM uploads WHERE id = ?`, id)
}

// UploadByPath returns the slot that a deployment got under a path.
func (t *tx) UploadByPath(deploymentID, objectPath string) (slipway.Upload, error) {
	return find[slipway.Upload](t.c, "Upload "+objectPath+" does not exist",
		`SELECT doc FROM uploads WHERE deployment_id = ? AND object_path = ?`, deploymentID, objectPath)
}

// PutTenant stores a tenant.
func (t *tx) PutTenant(v slipway.Tenant) error {
	_, err := t.c.Exec(`INSERT INTO tenants (id, created_at, doc) VALUES (?, ?, ?)
ON CONFLICT (id) DO UPDATE SET doc = excluded.doc`, v.ID, micros(v.CreatedAt), encode(v))
	return err
}

// Tenants lists tenants, oldest first.
func (t *tx) Tenants() ([]slipway.Tenant, error) {
	return all(t.c, doc[slipway.Tenant], `SELECT doc FROM tenants ORDER BY created_at, id`)
}

// PutAPIKey stores the record of a key.
func (t *tx) PutAPIKey(k slipway.APIKey) error {
	_, err := t.c.Exec(`INSERT INTO api_keys (id, tenant_id, hash, doc) VALUES (?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET hash = excluded.hash, doc = excluded.doc`, k.ID, k.TenantID, k.Hash, encode(k))
	return err
}

// APIKeyByHash returns the record of a key.
func (t *tx) APIKeyByHash(hash string) (slipway.APIKey, error) {
	return find[slipway.APIKey](t.c, "the API key is unknown", `SELECT doc FROM api_keys WHERE hash = ?`, hash)
}

// AppendAudit records who changed what.
func (t *tx) AppendAudit(e slipway.AuditEntry) error {
	_, err := t.c.Exec(`INSERT INTO audit (id, tenant_id, principal, operation, subject, detail, at) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		e.ID, e.TenantID, e.Principal, e.Operation, e.Subject, e.Detail, micros(e.At))
	return err
}
