package git

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/graphconfig"
)

// missing says that a reference is not in the repository, and what it may have been meant to be.
func (c checkout) missing(ctx context.Context, what ref) error {
	branches, tags := c.refs(ctx)
	var hint string
	switch {
	case what.name == "" || len(branches)+len(tags) == 0:
		return slipway.Errorf(slipway.CodeBadRequest, "the repository %s has no default branch: push a commit to it, or name a branch with repo_ref", c.from.shown)
	case what.commit:
		hint = "check repo_commit_sha, and that the commit was pushed"
	case slices.Contains(tags, what.name):
		hint = fmt.Sprintf("it has a tag of that name, write repo_ref as %q", "refs/tags/"+what.name)
	default:
		candidates, prefix := branches, ""
		short, tag := strings.CutPrefix(what.name, "refs/tags/")
		if tag {
			candidates, prefix = tags, "refs/tags/"
		}
		if hint = "check repo_ref"; graphconfig.Nearest(short, candidates) != "" {
			hint = fmt.Sprintf("did you mean %q?", prefix+graphconfig.Nearest(short, candidates))
		}
	}
	return slipway.Errorf(slipway.CodeBadRequest, "the repository %s has no %s: %s", c.from.shown, what, hint)
}

// refs lists the names of the remote's branches and tags.
func (c checkout) refs(ctx context.Context) (branches, tags []string) {
	out, err := c.git(ctx, "ls-remote", "--heads", "--tags", "--refs", "origin")
	if err != nil {
		return nil, nil
	}
	for line := range strings.Lines(out) {
		_, name, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if short, ok := strings.CutPrefix(name, "refs/heads/"); ok {
			branches = append(branches, short)
		} else if short, ok := strings.CutPrefix(name, "refs/tags/"); ok {
			tags = append(tags, short)
		}
	}
	return branches, tags
}
