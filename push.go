package slipway

import (
	"strings"
	"time"
)

// PushRefusal says why a push makes no revision of the deployment, "" if it makes one (spec 2.2; control-plane reference 4):
// only a commit to the tracked branch does, with build_on_push, and neither a tag nor a branch that is made or removed.
func PushRefusal(d Deployment, p PushEvent) string {
	branch, isBranch := strings.CutPrefix(p.Ref, "refs/heads/")
	switch push := d.SourceConfig.BuildOnPush; {
	case !isBranch:
		return "only branches are built on push, not " + short(p.Ref)
	case p.Deleted:
		return "the branch " + short(branch) + " was deleted"
	case p.Created:
		return "the branch " + short(branch) + " was only created"
	case push == nil || !*push:
		return "build_on_push is off"
	case branch != tracked(d, p):
		return "it tracks " + short(tracked(d, p)) + ", not " + short(branch)
	case !d.Buildable(SourceGithost):
		return "it has nothing to build from its repository"
	}
	return ""
}

// tracked is the branch that the deployment follows.
func tracked(d Deployment, p PushEvent) string {
	if ref := d.SourceRevisionConfig.RepoRef; ref != nil {
		return *ref
	}
	return p.DefaultBranch
}

// Pushed makes the revision of a push that PushRefusal lets through, of exactly the pushed commit.
func Pushed(d Deployment, p PushEvent, latestNumber int64, by string, now time.Time, ids IDs) Change {
	d.UpdatedAt = now
	c := Change{Deployment: d}
	c.addRevision(SourceGithost, latestNumber+1, by, now, ids)
	c.Deployment.SourceRevisionConfig.RepoCommitSHA = &p.Commit
	c.Revision.SourceRevisionConfig.RepoCommitSHA = &p.Commit
	return c
}
