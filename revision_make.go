package slipway

import "time"

// addRevision adds a revision that is a snapshot of the changed deployment, so that later changes do not reach it.
func (c *Change) addRevision(source Source, number int64, by string, now time.Time, ids IDs) {
	d := &c.Deployment
	r := Revision{
		ID: ids(), DeploymentID: d.ID, TenantID: d.TenantID, Number: number, Status: Creating,
		Source: source, SourceConfig: d.SourceConfig, SecretReferences: d.SecretReferences, SecretSetID: d.SecretSetID,
		ComputeTier: d.ComputeTier, DatabaseTier: d.DatabaseTier,
		CreatedBy: by, CreatedAt: now, UpdatedAt: now,
	}
	d.SourceRevisionConfig.RepoCommitSHA = nil
	r.SourceRevisionConfig = d.SourceRevisionConfig
	if !source.Built() {
		r.ArtifactDigest = imageDigest(r.SourceRevisionConfig.ImageURI)
	}
	if spec := d.SourceConfig.ResourceSpec; spec != nil {
		full := spec.WithDefaults()
		r.SourceConfig.ResourceSpec = &full
	}
	d.LatestRevisionID = r.ID
	c.Revision = &r
}

// Replay makes a revision that repeats the blueprint of old byte for byte: its artifact if there is one, else its tarball
// or commit, its secrets and its environment, never the latest code (control-plane reference 4, 10 row 15). The deployment
// shows the repeated configuration afterwards.
func Replay(d Deployment, old Revision, latestNumber int64, by string, now time.Time, ids IDs) Change {
	r := old
	r.ID, r.Number, r.Status, r.StatusReason = ids(), latestNumber+1, Creating, ""
	r.CreatedBy, r.CreatedAt, r.UpdatedAt = by, now, now
	r.LeaseOwner, r.LeaseEpoch, r.LeaseExpires = "", 0, time.Time{}
	r.ReplayOf, r.RequestKey = old.ID, ""

	d.SourceRevisionConfig = old.SourceRevisionConfig
	d.SourceConfig.ResourceSpec = old.SourceConfig.ResourceSpec
	d.SourceConfig.InstallCommand = old.SourceConfig.InstallCommand
	d.SourceConfig.BuildCommand = old.SourceConfig.BuildCommand
	d.ComputeTier, d.DatabaseTier = old.ComputeTier, old.DatabaseTier
	d.SecretReferences, d.SecretSetID = old.SecretReferences, old.SecretSetID
	d.LatestRevisionID, d.UpdatedAt = r.ID, now
	return Change{Deployment: d, Revision: &r}
}
