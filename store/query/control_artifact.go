package query

import (
	"time"

	"github.com/slipway-dev/slipway"
)

// Artifact returns what is known of an artifact.
func (t *tx) Artifact(digest string) (slipway.Artifact, error) {
	return find[slipway.Artifact](t.c, "Artifact "+digest+" does not exist", `SELECT doc FROM artifacts WHERE digest = ?`, digest)
}

// Artifacts lists what is known of artifacts.
func (t *tx) Artifacts() ([]slipway.Artifact, error) {
	return all(t.c, doc[slipway.Artifact], `SELECT doc FROM artifacts ORDER BY digest`)
}

// PutArtifact inserts or replaces an artifact.
func (t *tx) PutArtifact(a slipway.Artifact) error {
	_, err := t.c.Exec(`INSERT INTO artifacts (digest, doc) VALUES (?, ?) ON CONFLICT (digest) DO UPDATE SET doc = excluded.doc`, a.Digest, encode(a))
	return err
}

// DeleteArtifact removes a record.
func (t *tx) DeleteArtifact(digest string) error {
	_, err := t.c.Exec(`DELETE FROM artifacts WHERE digest = ?`, digest)
	return err
}

// TakeBuildTurn records that a build of the tenant begins.
func (t *tx) TakeBuildTurn(tenantID string, now time.Time) error {
	_, err := t.c.Exec(`INSERT INTO build_turns (tenant_id, at) VALUES (?, ?) ON CONFLICT (tenant_id) DO UPDATE SET at = excluded.at`, tenantID, micros(now))
	return err
}

// Uploads lists the slots.
func (t *tx) Uploads() ([]slipway.Upload, error) {
	return all(t.c, doc[slipway.Upload], `SELECT doc FROM uploads ORDER BY id`)
}

// DeleteUpload removes a slot.
func (t *tx) DeleteUpload(id string) error {
	_, err := t.c.Exec(`DELETE FROM uploads WHERE id = ?`, id)
	return err
}
