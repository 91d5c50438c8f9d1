package git

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/slipway-dev/slipway"
)

// lfs replaces the pointers of Git LFS in this working tree by their files, with the repository's own credentials.
func (c checkout) lfs(ctx context.Context) error {
	if !usesLFS(c.dir) {
		return nil
	}
	if err := c.lfsServer(ctx); err != nil {
		return err
	}
	if _, err := exec.LookPath("git-lfs"); err != nil {
		c.log("warning: the repository keeps files in Git LFS, but git-lfs is not installed on this machine: those files hold pointers; let the operator install the package git-lfs")
		return nil
	}
	c.log("fetching the files in Git LFS")
	if _, err := c.git(ctx, append(lfsFilter(), "lfs", "pull")...); err != nil {
		var f *failure
		if !errors.As(err, &f) {
			return err
		}
		return slipway.Errorf(slipway.CodeBadRequest, "the files in Git LFS of %s cannot be fetched: %s", c.from.shown, f.text)
	}
	return nil
}

// lfsFilter lets git-lfs write files into the working tree; it does so only where it is set up.
func lfsFilter() []string {
	return []string{
		"-c", "filter.lfs.clean=git-lfs clean -- %f", "-c", "filter.lfs.smudge=git-lfs smudge -- %f",
		"-c", "filter.lfs.process=git-lfs filter-process", "-c", "filter.lfs.required=true",
	}
}

// lfsServer checks where the repository wants its files fetched from: no protocol and directory that a repository may not
// have either. Credentials go to the repository's own host alone, whatever stands here.
func (c checkout) lfsServer(ctx context.Context) error {
	if _, err := os.Lstat(filepath.Join(c.dir, ".lfsconfig")); err != nil {
		return nil
	}
	found, err := c.settings(ctx, "--file=.lfsconfig", `(^|\.)(lfs\..*url|lfsurl|lfspushurl)$|^lfs\.(push)?url$`)
	if err != nil {
		return slipway.Errorf(slipway.CodeInvalid, "the file .lfsconfig of %s cannot be read: mend or remove it", c.from.shown)
	}
	for name, value := range found {
		if _, err := (&Fetcher{cfg: c.cfg}).address(value); err != nil {
			return slipway.Errorf(slipway.CodeInvalid, "%s of .lfsconfig cannot be used: %w", name, err)
		}
	}
	return nil
}

// usesLFS says whether any .gitattributes of a working tree gives files to Git LFS. Those of submodules are found again
// when their turn comes.
func usesLFS(dir string) bool {
	found := false
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
		case e.Name() == ".git" && e.IsDir():
			return filepath.SkipDir
		case e.Name() == ".gitattributes" && e.Type().IsRegular() && mentionsLFS(path):
			found = true
			return filepath.SkipAll
		}
		return nil
	})
	return found
}

func mentionsLFS(path string) bool {
	raw, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	for lines := bufio.NewScanner(bytes.NewReader(raw)); lines.Scan(); {
		if strings.Contains(lines.Text(), "filter=lfs") && !strings.HasPrefix(lines.Text(), "#") {
			return true
		}
	}
	return false
}
