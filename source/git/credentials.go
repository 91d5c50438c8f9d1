package git

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipway-dev/slipway"
)

// helper hands git a user name and password from the environment. It is set for one host, so git asks it for no other:
// neither where a redirect leads nor where a submodule or an LFS server is.
const helper = `!f() { test "$1" = get && printf 'username=%s\npassword=%s\n' "$SLIPWAY_GIT_USERNAME" "$SLIPWAY_GIT_PASSWORD"; }; f`

// lent is what a repository is fetched with, beside what the operator's account has.
type lent struct {
	slipway.CloneCredentials
	dir string // of the key and of git's home; "" = nothing is lent
}

// borrow prepares the credentials of a job. The key lies in git's own directory of the checkout, which is removed with it;
// a password is never on a disk.
func borrow(c slipway.CloneCredentials, dir string) (lent, error) {
	if c.Password == "" && c.PrivateKey == "" {
		return lent{}, nil
	}
	l := lent{c, filepath.Join(dir, ".git", "slipway")}
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return l, fmt.Errorf("lend credentials: %w", err)
	}
	if c.PrivateKey == "" {
		return l, nil
	}
	for name, content := range map[string]string{"key": c.PrivateKey, "known_hosts": c.KnownHosts} {
		if err := os.WriteFile(filepath.Join(l.dir, name), []byte(strings.TrimRight(content, "\r\n")+"\n"), 0o600); err != nil {
			return l, fmt.Errorf("lend credentials: %w", err)
		}
	}
	return l, nil
}

// giveBack removes what lies on the disk.
func (l lent) giveBack() error {
	if l.dir == "" {
		return nil
	}
	return os.RemoveAll(l.dir)
}

// settings are git's, for the command line: which everybody may read, so no secret is in them.
func (l lent) settings() []string {
	if l.Password == "" {
		return nil
	}
	return []string{"-c", "credential." + l.Host + ".helper=" + helper}
}

// environment is what git and its children get. With credentials of an integration those of the operator's account are out
// of reach: a tenant's repository is no matter of theirs.
func (l lent) environment() []string {
	const quiet = "ssh -o BatchMode=yes -o ConnectTimeout=20"
	if l.dir == "" {
		return []string{"GIT_SSH_COMMAND=" + quiet}
	}
	env := []string{"HOME=" + l.dir}
	if l.Password != "" {
		env = append(env, "SLIPWAY_GIT_USERNAME="+l.Username, "SLIPWAY_GIT_PASSWORD="+l.Password)
	}
	if l.PrivateKey == "" {
		return append(env, "GIT_SSH_COMMAND="+quiet+" -F none -o IdentityAgent=none -o IdentityFile=none")
	}
	return append(env, fmt.Sprintf("GIT_SSH_COMMAND=%s -F none -i %s -o IdentitiesOnly=yes -o IdentityAgent=none -o StrictHostKeyChecking=yes -o UserKnownHostsFile=%s -o GlobalKnownHostsFile=none",
		quiet, quoted(filepath.Join(l.dir, "key")), quoted(filepath.Join(l.dir, "known_hosts"))))
}

// quoted protects a path from the shell that git starts ssh with.
func quoted(path string) string { return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'" }

// hide removes the password from what a program said.
func (l lent) hide(text string) string {
	if l.Password == "" {
		return text
	}
	return strings.ReplaceAll(text, l.Password, "***")
}
