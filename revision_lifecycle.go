package slipway

import "time"

// NextStatuses lists the statuses a revision in status s may move to (control-plane reference 4). It is the only place that
// knows; the stores' CHECK constraints name the same statuses. A terminal status has none; UNKNOWN, which is not
// terminal, may be followed by whatever is observed.
func (s RevisionStatus) NextStatuses() []RevisionStatus {
	switch s {
	case Creating:
		return []RevisionStatus{Queued, CreateFailed, Interrupted}
	case Queued:
		return []RevisionStatus{AwaitingBuild, AwaitingDeploy, Skipped, Interrupted}
	case AwaitingBuild:
		return []RevisionStatus{Building, Interrupted}
	case Building:
		return []RevisionStatus{AwaitingDeploy, BuildFailed, Interrupted}
	case AwaitingDeploy:
		return []RevisionStatus{Deploying, DeployFailed, Interrupted, StatusUnknown}
	case Deploying:
		return []RevisionStatus{Deployed, DeployFailed, Interrupted, StatusUnknown}
	case StatusUnknown:
		return []RevisionStatus{AwaitingDeploy, Deploying, Deployed, DeployFailed, Interrupted}
	case Deployed, CreateFailed, BuildFailed, DeployFailed, Skipped, Interrupted:
		return nil
	}
	return nil
}

// RevisionStatuses lists every status, in the order of a revision's life.
func RevisionStatuses() []RevisionStatus {
	return []RevisionStatus{
		Creating, Queued, AwaitingBuild, Building, AwaitingDeploy, Deploying, Deployed,
		CreateFailed, BuildFailed, DeployFailed, Skipped, Interrupted, StatusUnknown,
	}
}

// Terminal says whether a revision in this status moves no more. DEPLOYED is terminal: a replaced revision keeps it, and
// the deployment's active revision tells which one serves.
func (s RevisionStatus) Terminal() bool {
	return s != StatusUnknown && len(s.NextStatuses()) == 0
}

// InProgress says whether the revision holds its deployment's only place: it is built or deployed, or waits for that.
func (s RevisionStatus) InProgress() bool {
	switch s {
	case AwaitingBuild, Building, AwaitingDeploy, Deploying, StatusUnknown:
		return true
	}
	return false
}

// Move returns the revision in its new status, or CodeConflict if the machine has no such step. Moving to the status it
// already has is a no-op: executors may report twice.
func (r Revision) Move(to RevisionStatus, reason string, now time.Time) (Revision, error) {
	if r.Status == to {
		return r, nil
	}
	for _, next := range r.Status.NextStatuses() {
		if next == to {
			r.Status, r.StatusReason, r.UpdatedAt = to, reason, now
			return r, nil
		}
	}
	return r, Errorf(CodeConflict, "revision %s is %s and cannot become %s", r.ID, r.Status, to)
}

// Ready returns the status in which a queued revision goes on: straight to deployment when its artifact is there or is
// an image (control-plane reference 4).
func (r Revision) Ready() RevisionStatus {
	if r.ArtifactDigest != "" || !r.Source.Built() {
		return AwaitingDeploy
	}
	return AwaitingBuild
}

// Promotion says which queued revision of a deployment goes on and which are passed over.
type Promotion struct {
	Next    *Revision  // still QUEUED; nil = none
	Skipped []Revision // still QUEUED, older than Next
}

// Promote applies the rule of coalescing to the unfinished revisions of one deployment: one is in progress; when it has
// ended the newest queued one goes on and the older ones are skipped. The newest is never skipped (control-plane
// reference 4).
func Promote(unfinished []Revision) Promotion {
	var p Promotion
	for _, r := range unfinished {
		if r.Status.InProgress() {
			return Promotion{}
		}
		if r.Status != Queued {
			continue
		}
		switch {
		case p.Next == nil:
			p.Next = &r
		case r.Number > p.Next.Number:
			p.Skipped = append(p.Skipped, *p.Next)
			p.Next = &r
		default:
			p.Skipped = append(p.Skipped, r)
		}
	}
	return p
}
