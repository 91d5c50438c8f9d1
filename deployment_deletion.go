package slipway

import "time"

// DeletionTerms say how long what of a deleted deployment is kept (control-plane reference 4, Deletion).
type DeletionTerms struct {
	Grace     time.Duration // how long its workloads go on after the DELETE
	Retention time.Duration // how long data, records and name are kept after the DELETE, so that it can be restored
}

// Deleted returns the deployment as deletion leaves it: out of sight, its name reserved. Its workloads end after the
// grace period; until the retention is over it can be restored.
func (d Deployment) Deleted(now time.Time, terms DeletionTerms) Deployment {
	d = d.Touched(now)
	d.Status, d.DeletedAt = DeploymentAwaitingDelete, now
	d.TearDownAt, d.PurgeAt = now.Add(terms.Grace), now.Add(terms.Retention)
	if d.PurgeAt.Before(d.TearDownAt) {
		d.PurgeAt = d.TearDownAt
	}
	d, _ = d.Advanced(now)
	return d
}

// Due returns when the next step of the deletion is to be taken by Advanced; zero = nothing waits for time.
func (d Deployment) Due() time.Time {
	switch {
	case d.Status != DeploymentAwaitingDelete, d.Purged():
		return time.Time{}
	case !d.Retired:
		return d.TearDownAt
	}
	return d.PurgeAt
}

// Advanced returns the deployment with the steps of its deletion taken that are due, and whether there were any.
func (d Deployment) Advanced(now time.Time) (Deployment, bool) {
	advanced := false
	for due := d.Due(); !due.IsZero() && !now.Before(due); due = d.Due() {
		advanced = true
		if !d.Retired {
			d.Retired = true
		} else {
			d.Purging = true
		}
	}
	if advanced {
		d = d.Touched(now)
	}
	return d, advanced
}

// Purged says whether nothing of the deleted deployment is to be kept: its data is destroyed, then its records go. One
// that was deleted before there was a retention has no time at which it would be purged: it is purged now.
func (d Deployment) Purged() bool {
	return d.Status == DeploymentAwaitingDelete && (d.Purging || d.PurgeAt.IsZero())
}

// Purge returns the deleted deployment on its way to nothing, whatever is left of its retention. CodeBadRequest: it is
// not deleted.
func (d Deployment) Purge(now time.Time) (Deployment, error) {
	if d.Status != DeploymentAwaitingDelete {
		return d, Errorf(CodeBadRequest, "deployment %q is not deleted, so it cannot be purged; DELETE it first", d.Name)
	}
	d = d.Touched(now)
	d.Retired, d.Purging, d.PurgeAt = true, true, now
	return d, nil
}

// Restored returns the deleted deployment as it was before the DELETE; its active revision serves again. CodeBadRequest:
// it is not deleted, or is being purged already.
func (d Deployment) Restored(now time.Time) (Deployment, error) {
	switch {
	case d.Status != DeploymentAwaitingDelete:
		return d, Errorf(CodeBadRequest, "deployment %q is not deleted, so there is nothing to restore", d.Name)
	case d.Purged():
		return d, Errorf(CodeBadRequest, "deployment %q is being purged and cannot be restored any more; create it anew", d.Name)
	}
	d = d.Touched(now)
	d.Status, d.Retired = DeploymentUnused, false
	d.DeletedAt, d.TearDownAt, d.TornDownAt, d.PurgeAt = time.Time{}, time.Time{}, time.Time{}, time.Time{}
	return d.Settled(false, now), nil
}

// TornDown returns the deleted deployment with the note that its workloads have ended.
func (d Deployment) TornDown(now time.Time) Deployment {
	if d.TornDownAt.IsZero() {
		d.TornDownAt, d.UpdatedAt = now, now
	}
	return d
}
