// Package git fetches sources with the git command line, hardened.
package git

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/slipway-dev/slipway"
)

// Config says what may be fetched.
type Config struct {
	AllowFile bool          // the operator lets file:// and local paths be cloned
	Timeout   time.Duration // 0 = 5 minutes
}

// Fetcher fetches git repositories.
type Fetcher struct{ cfg Config }

var _ slipway.SourceFetcher = (*Fetcher)(nil)

// New makes a Fetcher.
func New(cfg Config) *Fetcher {
	if cfg.Timeout == 0 {
		cfg.Timeout = 5 * time.Minute
	}
	return &Fetcher{cfg: cfg}
}

// Fetch implements slipway.SourceFetcher: a shallow fetch of one commit, with submodules and without the repository.
func (f *Fetcher) Fetch(ctx context.Context, job slipway.BuildJob, dir string, log func(string)) (string, error) {
	if err := f.allowed(job.RepoURL); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, f.cfg.Timeout)
	defer cancel()
	ref := job.RepoRef
	switch {
	case job.CommitSHA != "":
		ref = job.CommitSHA
	case ref == "":
		ref = "HEAD"
	case !strings.HasPrefix(ref, "refs/"):
		ref = "refs/heads/" + ref
	}
	log("fetching " + ref)
	if _, err := f.git(ctx, dir, "init", "--quiet"); err != nil {
		return "", err
	}
	if _, err := f.git(ctx, dir, "fetch", "--quiet", "--depth=1", "--no-tags", "--end-of-options", job.RepoURL, ref); err != nil {
		return "", slipway.Errorf(slipway.CodeBadRequest, "%s of the repository cannot be fetched: check repo_url and repo_ref: %w", ref, err)
	}
	if _, err := f.git(ctx, dir, "checkout", "--quiet", "--detach", "FETCH_HEAD"); err != nil {
		return "", err
	}
	commit, err := f.git(ctx, dir, "rev-parse", "HEAD")
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(dir, ".gitmodules")); err == nil {
		if err := f.submodules(ctx, dir, job.RepoURL); err != nil {
			return "", err
		}
	}
	return strings.TrimSpace(commit), os.RemoveAll(filepath.Join(dir, ".git"))
}

func (f *Fetcher) submodules(ctx context.Context, dir, origin string) error {
	if _, err := f.git(ctx, dir, "remote", "add", "origin", origin); err != nil {
		return err
	}
	_, err := f.git(ctx, dir, "submodule", "update", "--quiet", "--init", "--recursive", "--depth=1")
	return err
}

func (f *Fetcher) allowed(repo string) error {
	u, err := url.Parse(repo)
	scp := err != nil || u.Scheme == "" && strings.Contains(repo, "@") && strings.Contains(repo, ":")
	switch {
	case repo == "" || strings.HasPrefix(repo, "-"):
		return slipway.Errorf(slipway.CodeBadRequest, "repo_url is %q: give the URL of a git repository", repo)
	case scp && !strings.Contains(repo, "::"), err == nil && (u.Scheme == "https" || u.Scheme == "ssh"):
		return nil
	case err == nil && (u.Scheme == "file" || u.Scheme == "" && filepath.IsAbs(repo)):
		if f.cfg.AllowFile {
			return nil
		}
		return slipway.Errorf(slipway.CodeBadRequest, "repo_url is a local path, which the operator does not allow: use https or ssh")
	}
	return slipway.Errorf(slipway.CodeBadRequest, "repo_url uses a protocol that is not allowed: use https or ssh")
}

func (f *Fetcher) git(ctx context.Context, dir string, args ...string) (string, error) {
	protocols := "https:ssh"
	if f.cfg.AllowFile {
		protocols += ":file"
	}
	hard := []string{"-c", "core.hooksPath=/dev/null", "-c", "credential.helper=", "-c", "core.fsmonitor=false", "-c", "init.defaultBranch=main"}
	cmd := exec.CommandContext(ctx, "git", append(hard, args...)...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0",
		"GIT_ASKPASS=true", "GIT_ALLOW_PROTOCOL=" + protocols, "GIT_SSH_COMMAND=ssh -o BatchMode=yes", "LC_ALL=C",
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 2 * time.Second
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", fmt.Errorf("git was stopped: %w", context.Cause(ctx))
		}
		return "", fmt.Errorf("git %s: %s: %w", args[0], strings.Join(strings.Fields(errs.String()), " "), err)
	}
	return out.String(), nil
}
