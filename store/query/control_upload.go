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
