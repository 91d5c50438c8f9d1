// Package git fetches sources with the git command line, hardened: no prompts, no hooks, no protocols but https and ssh
// (and file where the operator allows it), bounded in time and size.
package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/slipway-dev/slipway"
)

// Config says what may be fetched and how much of it.
type Config struct {
	// FileRoots are the directories below which file:// repositories may be fetched (setting --allow-file-repos).
	FileRoots []string
	// PlainHosts are the hosts, as host:port, that may be spoken to without TLS (setting --allow-http-git).
	PlainHosts []string
	Timeout    time.Duration // of one fetch with its submodules; 0 = 5 minutes
	MaxBytes   int64         // of the repository and its files on disk; 0 = 2 GiB
}

// depthLimit is how deep submodules may nest.
const depthLimit = 8

// Fetcher fetches git repositories.
type Fetcher struct{ cfg Config }

var _ slipway.SourceFetcher = (*Fetcher)(nil)

// New makes a Fetcher.
func New(cfg Config) *Fetcher {
	if cfg.Timeout == 0 {
		cfg.Timeout = 5 * time.Minute
	}
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = 2 << 30
	}
	return &Fetcher{cfg: cfg}
}

// Fetch implements slipway.SourceFetcher: a shallow fetch of one commit with its submodules, without the repository's
// history, and with the files it keeps in Git LFS. Credentials are those of the job; without any, git and ssh take those of
// the operator's account (~/.netrc, ~/.ssh).
func (f *Fetcher) Fetch(ctx context.Context, job slipway.BuildJob, dir string, log func(string)) (string, error) {
	from, err := f.address(job.RepoURL)
	if err != nil {
		return "", err
	}
	what, err := refOf(job)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, f.cfg.Timeout, slipway.Errorf(slipway.CodeUnavailable,
		"fetching %s took longer than %s", from.shown, f.cfg.Timeout))
	defer cancel()
	repo := checkout{cfg: f.cfg, dir: dir, from: from, log: log}
	if repo.lent, err = borrow(job.Clone, dir); err != nil {
		return "", err
	}
	commit, err := repo.source(ctx, what)
	return commit, errors.Join(err, repo.lent.giveBack())
}

// source fills the working tree and leaves nothing else.
func (c checkout) source(ctx context.Context, what ref) (string, error) {
	c.log(fmt.Sprintf("fetching %s of %s", what, c.from.shown))
	if err := c.fetch(ctx, what); err != nil {
		return "", err
	}
	commit, err := c.git(ctx, "rev-parse", "HEAD")
	if err != nil {
		return "", err
	}
	if err := c.lfs(ctx); err != nil {
		return "", err
	}
	if err := c.submodules(ctx, depthLimit); err != nil {
		return "", err
	}
	return strings.TrimSpace(commit), forget(c.dir)
}

// checkout is a working tree on its way.
type checkout struct {
	cfg  Config
	dir  string
	from address
	lent lent
	log  func(string)
}

func (c checkout) fetch(ctx context.Context, what ref) error {
	if _, err := c.git(ctx, "init", "--quiet"); err != nil {
		return err
	}
	if _, err := c.git(ctx, "remote", "add", "origin", "--", c.from.url); err != nil {
		return err
	}
	_, err := c.git(ctx, "fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "origin", what.spec)
	target := "FETCH_HEAD"
	if err != nil && what.commit && ctx.Err() == nil { // a host that gives no single commits: fetch all and look for it
		_, err = c.git(ctx, "fetch", "--quiet", "--no-recurse-submodules", "origin", "+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*")
		if target = what.spec; err == nil {
			_, err = c.git(ctx, "cat-file", "-e", what.spec+"^{commit}")
			if err != nil {
				err = &failure{text: "couldn't find remote ref " + what.spec}
			}
		}
	}
	if err != nil {
		return c.explain(ctx, what, err)
	}
	_, err = c.git(ctx, "checkout", "--quiet", "--detach", target, "--")
	return err
}

// submodules checks out the submodules of the working tree one level after the other, each from an address that is allowed.
func (c checkout) submodules(ctx context.Context, depth int) error {
	if _, err := os.Lstat(filepath.Join(c.dir, ".gitmodules")); err != nil {
		return nil
	}
	if depth == 0 {
		return slipway.Errorf(slipway.CodeInvalid, "the submodules of %s nest deeper than %d levels", c.from.shown, depthLimit)
	}
	if _, err := c.git(ctx, "submodule", "--quiet", "init"); err != nil {
		return err
	}
	urls, err := c.settings(ctx, "--local", `^submodule\..*\.url$`)
	if err != nil {
		return err
	}
	for name, url := range urls {
		if _, err := (&Fetcher{cfg: c.cfg}).address(url); err != nil {
			return slipway.Errorf(slipway.CodeInvalid, "the submodule %s cannot be fetched: %w", strings.TrimSuffix(strings.TrimPrefix(name, "submodule."), ".url"), err)
		}
	}
	c.log(fmt.Sprintf("fetching %d submodules", len(urls)))
	if _, err := c.git(ctx, "submodule", "--quiet", "update", "--depth=1", "--no-recommend-shallow"); err != nil {
		return c.submoduleFailure(err)
	}
	paths, err := c.settings(ctx, "--file=.gitmodules", `^submodule\..*\.path$`)
	if err != nil {
		return err
	}
	for _, path := range paths {
		inner := c
		if inner.dir = filepath.Join(c.dir, path); !below(inner.dir, c.dir) {
			return slipway.Errorf(slipway.CodeInvalid, "the submodule path %q leads out of the repository", path)
		}
		if err := inner.lfs(ctx); err != nil {
			return err
		}
		if err := inner.submodules(ctx, depth-1); err != nil {
			return err
		}
	}
	return nil
}

func (c checkout) submoduleFailure(err error) error {
	var f *failure
	if !errors.As(err, &f) {
		return err
	}
	return slipway.Errorf(slipway.CodeInvalid, "a submodule of %s cannot be fetched: %s", c.from.shown, f.text)
}

// settings reads the git settings whose names match.
func (c checkout) settings(ctx context.Context, where, pattern string) (map[string]string, error) {
	out, err := c.git(ctx, "config", where, "-z", "--get-regexp", pattern)
	var f *failure
	if errors.As(err, &f) && f.text == "" { // none
		return nil, nil
	}
	values := map[string]string{}
	for entry := range strings.SplitSeq(out, "\x00") {
		if name, value, ok := strings.Cut(entry, "\n"); ok {
			values[name] = value
		}
	}
	return values, err
}

// forget removes git's own files, leaving the source.
func forget(dir string) error {
	return filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.Name() != ".git" {
			return err
		}
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("remove the repository: %w", err)
		}
		if e.IsDir() {
			return filepath.SkipDir
		}
		return nil
	})
}
