//go:build realgitea

package git_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/githost/githosttest"
	"github.com/slipway-dev/slipway/source/git"
)

// TestRealGiteaLFS fetches a private repository with a private submodule, both with files in Git LFS, from a real server
// of all three, with one token.
func TestRealGiteaLFS(t *testing.T) {
	g := githosttest.StartGitea(t, os.Getenv("GITEA"), os.Getenv("GITEA_STATIC"))
	a := g.NewAccount(t)
	var urls []string
	for _, name := range []string{"inner", "outer"} {
		repo := a.NewRepository(t, name, "")
		work := githosttest.NewWork(t, a.PushURL(repo))
		work.Git("lfs", "install", "--local")
		work.Git("lfs", "track", "*.bin")
		work.Write("weights.bin", "weights of "+name)
		work.Commit("a", name)
		if name == "outer" {
			work.Git("submodule", "add", "-q", a.PushURL(urls[0]), "in")
			work.Write(".gitmodules", "[submodule \"in\"]\n\tpath = in\n\turl = "+urls[0]+"\n")
			work.Git("add", ".")
			work.Git("commit", "-q", "-m", "sub")
		}
		work.Git("push", "-q", "origin", "main")
		urls = append(urls, repo)
	}
	job := slipway.BuildJob{RepoURL: urls[1], RepoRef: "main", Clone: slipway.CloneCredentials{Host: g.URL, Username: "oauth2", Password: a.Token}}
	cfg := git.Config{PlainHosts: []string{strings.TrimPrefix(g.URL, "http://")}}
	dir, commit, err := fetch(t, cfg, job)
	if err != nil {
		t.Fatal(err)
	}
	if got := content(t, dir, "weights.bin") + ", " + content(t, dir, "in/weights.bin"); got != "weights of outer, weights of inner" {
		t.Errorf("got %q, want the files and not their pointers", got)
	}
	job.CommitSHA = commit
	if _, again, err := fetch(t, cfg, job); err != nil || again != commit {
		t.Errorf("by commit: %s %v, want %s", again, err, commit)
	}
	if out, err := exec.Command("grep", "-rl", a.Token, dir).Output(); err == nil {
		t.Errorf("the token lies in %s", out)
	}
}
