package git

import (
	"regexp"
	"strings"

	"github.com/slipway-dev/slipway"
)

// ref is what of a repository is fetched.
type ref struct {
	spec   string // as git gets it
	name   string // as users wrote it; "" = the default branch
	commit bool
}

// String names the reference in messages.
func (r ref) String() string {
	short, tag := strings.CutPrefix(r.spec, "refs/tags/")
	switch {
	case r.commit:
		return "commit " + r.spec
	case r.name == "":
		return "the default branch"
	case tag:
		return `tag "` + short + `"`
	case strings.HasPrefix(r.spec, "refs/heads/"):
		return `branch "` + strings.TrimPrefix(r.spec, "refs/heads/") + `"`
	}
	return `reference "` + r.name + `"`
}

var (
	commitForm = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)
	refForm    = regexp.MustCompile(`^[^-./\x00-\x20\x7f~^:?*\[\\][^\x00-\x20\x7f~^:?*\[\\]*$`)
)

// refOf chooses what to fetch: the recorded commit of a replay, else repo_ref, else the default branch.
func refOf(job slipway.BuildJob) (ref, error) {
	name := job.RepoRef
	switch {
	case job.CommitSHA != "" && !commitForm.MatchString(job.CommitSHA):
		return ref{}, slipway.Errorf(slipway.CodeBadRequest, "repo_commit_sha is %q: give all 40 hexadecimal digits of a commit", job.CommitSHA)
	case job.CommitSHA != "":
		return ref{spec: job.CommitSHA, name: job.CommitSHA, commit: true}, nil
	case name == "":
		return ref{spec: "HEAD"}, nil
	case commitForm.MatchString(name):
		return ref{spec: name, name: name, commit: true}, nil
	case !refForm.MatchString(name) || strings.Contains(name, "..") || strings.Contains(name, "@{") || strings.Contains(name, "//") ||
		strings.HasSuffix(name, "/") || strings.HasSuffix(name, ".") || strings.HasSuffix(name, ".lock"):
		return ref{}, slipway.Errorf(slipway.CodeBadRequest, "repo_ref is %q, which git does not allow as a name: give a branch, or refs/tags/ and a tag", name)
	case strings.HasPrefix(name, "refs/"):
		return ref{spec: name, name: name}, nil
	}
	return ref{spec: "refs/heads/" + name, name: name}, nil
}
