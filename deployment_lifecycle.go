package slipway

import "time"

// statusWith returns the status of a deployment that is not being deleted (control-plane reference 4). Its storage is made
// with the first revision, so until one has deployed an unfinished revision means AWAITING_DATABASE.
func (d Deployment) statusWith(unfinished bool) DeploymentStatus {
	switch {
	case d.Status == DeploymentAwaitingDelete:
		return DeploymentAwaitingDelete
	case d.Unreachable:
		return DeploymentUnknown
	case d.ActiveRevisionID != "":
		return DeploymentReady
	case unfinished:
		return DeploymentAwaitingDatabase
	}
	return DeploymentUnused
}

// Settled returns the deployment with the status that follows from what is active and whether a revision is unfinished.
func (d Deployment) Settled(unfinished bool, now time.Time) Deployment {
	if s := d.statusWith(unfinished); s != d.Status {
		d.Status, d.UpdatedAt = s, now
	}
	return d
}

// Touched returns the deployment in the next generation: executors that act on an older one are refused from now on.
func (d Deployment) Touched(now time.Time) Deployment {
	d.Generation++
	d.UpdatedAt = now
	return d
}

// Unreached returns the deployment as it stands while its listener is offline: UNKNOWN, whatever happens to it, until it is
// Reached again (control-plane reference 4).
func (d Deployment) Unreached(now time.Time) Deployment {
	d.Unreachable = true
	return d.Settled(false, now)
}

// Reached returns the deployment with the status it would have had all along.
func (d Deployment) Reached(unfinished bool, now time.Time) Deployment {
	d.Unreachable = false
	return d.Settled(unfinished, now)
}
