package slipway

import "time"

// StatusNote is a commit status on its way to the host; there is one for a revision at most, the newest.
type StatusNote struct {
	RevisionID    string
	TenantID      string
	IntegrationID string
	Status        CommitStatus
	Version       int64     // rises with every newer status of the revision: its time in microseconds
	Attempts      int       // to deliver this one
	NextAt        time.Time // not before
	CreatedAt     time.Time // of this status
}

// Bounds on the delivery of commit statuses.
const (
	StatusAttempts = 10
	StatusLifetime = 24 * time.Hour
	maxDescription = 140
)

// NoteOf says what the host shall show of a revision, and whether there is anything to show and a commit to show it at.
func NoteOf(d Deployment, r Revision, targetURL string, now time.Time) (StatusNote, bool) {
	cfg, commit := r.SourceConfig, r.SourceRevisionConfig.RepoCommitSHA
	if r.Source != SourceGithost || cfg.IntegrationID == nil || cfg.RepoURL == nil || commit == nil {
		return StatusNote{}, false
	}
	state, text := stateOf(r)
	return StatusNote{
		RevisionID: r.ID, TenantID: r.TenantID, IntegrationID: *cfg.IntegrationID, Version: now.UnixMicro(), NextAt: now, CreatedAt: now,
		Status: CommitStatus{
			RepoURL: *cfg.RepoURL, Commit: *commit, State: state, Context: "slipway/" + d.Name, Description: oneLine(text), TargetURL: targetURL,
		},
	}, true
}

func stateOf(r Revision) (CommitState, string) {
	switch r.Status {
	case Deployed:
		return CommitSuccess, "deployed"
	case BuildFailed, DeployFailed, CreateFailed:
		return CommitFailure, r.StatusReason
	case Skipped, Interrupted:
		return CommitCanceled, r.StatusReason
	case Building, AwaitingBuild:
		return CommitPending, "building"
	case AwaitingDeploy, Deploying, StatusUnknown:
		return CommitPending, "deploying"
	case Creating, Queued:
	}
	return CommitPending, "waiting for an earlier revision"
}

// oneLine cuts a text to what hosts take.
func oneLine(text string) string {
	runes := []rune{}
	for _, r := range text {
		if r < ' ' {
			r = ' '
		}
		if runes = append(runes, r); len(runes) > maxDescription {
			return string(runes[:maxDescription-1]) + "…"
		}
	}
	return string(runes)
}

// RetryAfter is how long to wait before a delivery is tried again after so many attempts.
func (n StatusNote) RetryAfter() time.Duration {
	return min(5*time.Second<<min(n.Attempts, 10), 10*time.Minute)
}

// Expired says whether the delivery is given up.
func (n StatusNote) Expired(now time.Time) bool {
	return n.Attempts >= StatusAttempts || now.Sub(n.CreatedAt) > StatusLifetime
}
