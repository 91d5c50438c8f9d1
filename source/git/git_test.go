package git_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/source/git"
)

// repo is a repository of a test.
type repo struct {
	t   *testing.T
	dir string
}

func newRepo(t *testing.T, dir string) repo {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r := repo{t, dir}
	r.git("init", "-q", "-b", "main")
	return r
}

func (r repo) git(args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Dir, cmd.Env = r.dir, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit writes a file and returns the commit.
func (r repo) commit(file, content string) string {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, file), []byte(content), 0o644); err != nil {
		r.t.Fatal(err)
	}
	r.git("add", ".")
	r.git("commit", "-q", "-m", file)
	return r.git("rev-parse", "HEAD")
}

func (r repo) url() string { return "file://" + r.dir }

func fetch(t *testing.T, cfg git.Config, job slipway.BuildJob) (dir, commit string, err error) {
	t.Helper()
	dir = t.TempDir()
	commit, err = git.New(cfg).Fetch(t.Context(), job, dir, func(string) {})
	return dir, commit, err
}

func content(t *testing.T, dir, file string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestFetch(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	r := newRepo(t, filepath.Join(root, "repo"))
	one := r.commit("a", "one")
	r.git("tag", "-a", "v1", "-m", "v1")
	two := r.commit("a", "two")
	r.git("checkout", "-q", "-b", "feature/x")
	three := r.commit("a", "three")
	r.git("checkout", "-q", "main")
	for name, c := range map[string]struct {
		ref, sha, want, commit string
	}{
		"branch":            {"main", "", "two", two},
		"branch with slash": {"feature/x", "", "three", three},
		"tag":               {"refs/tags/v1", "", "one", one},
		"default branch":    {"", "", "two", two},
		"full ref":          {"refs/heads/feature/x", "", "three", three},
		"commit as ref":     {one, "", "one", one},
		"replay":            {"main", one, "one", one},
	} {
		dir, commit, err := fetch(t, git.Config{FileRoots: []string{root}}, slipway.BuildJob{RepoURL: r.url(), RepoRef: c.ref, CommitSHA: c.sha})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := content(t, dir, "a"); got != c.want || commit != c.commit {
			t.Errorf("%s: got %q at %s, want %q at %s", name, got, commit, c.want, c.commit)
		}
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
			t.Errorf("%s: the repository was left", name)
		}
	}
}

func TestFetchSubmodules(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	inner, middle := newRepo(t, filepath.Join(root, "inner")), newRepo(t, filepath.Join(root, "middle"))
	outer := newRepo(t, filepath.Join(root, "outer"))
	inner.commit("i", "inner")
	middle.commit("m", "middle")
	middle.git("submodule", "add", "-q", "../inner", "in")
	middle.git("commit", "-q", "-m", "sub")
	outer.commit("o", "outer")
	outer.git("submodule", "add", "-q", middle.url(), "libs/mid")
	outer.git("commit", "-q", "-m", "sub")
	middle.commit("m", "newer") // what is pinned is fetched, not the newest
	dir, _, err := fetch(t, git.Config{FileRoots: []string{root}}, slipway.BuildJob{RepoURL: outer.url()})
	if err != nil {
		t.Fatal(err)
	}
	if got := content(t, dir, "libs/mid/m") + content(t, dir, "libs/mid/in/i"); got != "middleinner" {
		t.Errorf("got %q, want %q", got, "middleinner")
	}
	left, _ := filepath.Glob(filepath.Join(dir, "libs/mid/.git"))
	if len(left) > 0 {
		t.Error("a submodule's .git was left")
	}
}

func TestFetchRefuses(t *testing.T) {
	t.Parallel()
	root, outside := t.TempDir(), t.TempDir()
	r := newRepo(t, filepath.Join(root, "repo"))
	r.commit("a", "one")
	r.git("tag", "v1")
	newRepo(t, filepath.Join(root, "empty"))
	secret := newRepo(t, filepath.Join(outside, "secret"))
	secret.commit("s", "secret")
	if err := os.Symlink(secret.dir, filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	sub := newRepo(t, filepath.Join(root, "sub"))
	sub.git("submodule", "add", "-q", secret.url(), "s")
	sub.git("commit", "-q", "-m", "sub")
	marker := filepath.Join(outside, "ran")
	for name, c := range map[string]struct {
		url, ref, sha string
		want          []string
	}{
		"no repository":        {"file://" + root + "/none", "", "", []string{root + "/none", "does not exist"}},
		"no branch":            {r.url(), "mian", "", []string{`"mian"`, `did you mean "main"?`}},
		"no tag":               {r.url(), "refs/tags/v9", "", []string{`tag "v9"`}},
		"tag without prefix":   {r.url(), "v1", "", []string{`"refs/tags/v1"`}},
		"no commit":            {r.url(), "", strings.Repeat("1", 40), []string{"commit 111", "repo_commit_sha"}},
		"short commit":         {r.url(), "", "abc", []string{`"abc"`}},
		"empty":                {"file://" + root + "/empty", "", "", []string{"no default branch"}},
		"outside":              {secret.url(), "", "", []string{"--allow-file-repos", secret.dir}},
		"through a link":       {"file://" + root + "/link", "", "", []string{"--allow-file-repos"}},
		"through ..":           {"file://" + root + "/../" + filepath.Base(outside) + "/secret", "", "", []string{"--allow-file-repos"}},
		"submodule outside":    {sub.url(), "", "", []string{"submodule", "--allow-file-repos"}},
		"plain http":           {"http://127.0.0.1:1/x", "", "", []string{"https or ssh"}},
		"git protocol":         {"git://127.0.0.1:1/x", "", "", []string{"https or ssh"}},
		"ext":                  {"ext::touch " + marker, "", "", []string{"repo_url"}},
		"option as address":    {"--upload-pack=touch " + marker, "", "", []string{"repo_url"}},
		"option as ref":        {r.url(), "--upload-pack=touch " + marker, "", []string{"repo_ref"}},
		"refspec as ref":       {r.url(), "main:refs/heads/other", "", []string{"repo_ref"}},
		"option as host":       {"ssh://-oProxyCommand=touch%20" + marker + "/x", "", "", []string{"repo_url"}},
		"option as scp host":   {"git@-oProxyCommand=touch:x", "", "", []string{"repo_url"}},
		"nothing listens":      {"https://user:hunter2@127.0.0.1:1/x.git", "", "", []string{"cannot be reached", "https://127.0.0.1:1/x.git"}},
		"nothing":              {"", "", "", []string{"repo_url"}},
		"a relative directory": {"repo", "", "", []string{"repo_url"}},
	} {
		_, _, err := fetch(t, git.Config{FileRoots: []string{root}}, slipway.BuildJob{RepoURL: c.url, RepoRef: c.ref, CommitSHA: c.sha})
		if err == nil {
			t.Errorf("%s: fetched", name)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q, want %q in it", name, err, want)
			}
		}
		if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %q shows a password or is not one line", name, err)
		}
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("an injected command ran")
	}
}

func TestFetchRunsNoHooks(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	r := newRepo(t, filepath.Join(root, "repo"))
	r.commit("a", "one")
	marker := filepath.Join(root, "ran")
	for _, hook := range []string{"post-checkout", "pre-receive", "post-update", "reference-transaction"} {
		if err := os.WriteFile(filepath.Join(r.dir, ".git", "hooks", hook), []byte("#!/bin/sh\ntouch "+marker+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := fetch(t, git.Config{FileRoots: []string{root}}, slipway.BuildJob{RepoURL: r.url()}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("a hook ran")
	}
}

func TestFetchIsBounded(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	r := newRepo(t, filepath.Join(root, "repo"))
	r.commit("a", strings.Repeat("x", 1<<20))
	job := slipway.BuildJob{RepoURL: r.url()}
	if _, _, err := fetch(t, git.Config{FileRoots: []string{root}, MaxBytes: 1 << 19}, job); slipway.ErrorCode(err) != slipway.CodeTooLarge {
		t.Errorf("too large: got %v, want %s", err, slipway.CodeTooLarge)
	}
	if _, _, err := fetch(t, git.Config{FileRoots: []string{root}, Timeout: time.Nanosecond}, job); err == nil || !strings.Contains(err.Error(), "took longer than 1ns") {
		t.Errorf("too slow: got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := git.New(git.Config{FileRoots: []string{root}}).Fetch(ctx, job, t.TempDir(), func(string) {}); err == nil {
		t.Error("fetched after the end")
	}
}
