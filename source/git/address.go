package git

import (
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway"
)

// address is where a repository is.
type address struct {
	url   string // as git gets it
	shown string // as users see it: without credentials
	file  bool
	plain bool // http
}

var scpForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*@[A-Za-z0-9][A-Za-z0-9.-]*:[^-:][^:]*$`)

// address checks where a repository lies: https and ssh anywhere, file only below the operator's directories.
func (f *Fetcher) address(repo string) (address, error) {
	if strings.TrimSpace(repo) == "" || strings.HasPrefix(repo, "-") || strings.ContainsAny(repo, "\x00\n\r") {
		return address{}, slipway.Errorf(slipway.CodeBadRequest, "repo_url is %q: give the URL of a git repository, such as https://host/owner/name", repo)
	}
	if scpForm.MatchString(repo) {
		return address{url: repo, shown: repo}, nil
	}
	u, err := url.Parse(repo)
	switch {
	case err != nil:
		return address{}, slipway.Errorf(slipway.CodeBadRequest, "repo_url is %q, which is no URL: give one such as https://host/owner/name", repo)
	case u.Scheme == "file" && (u.Host == "" || u.Host == "localhost"), u.Scheme == "" && filepath.IsAbs(repo):
		return f.local(u.Path)
	case u.Scheme == "http" && !slices.Contains(f.cfg.PlainHosts, u.Host):
		return address{}, slipway.Errorf(slipway.CodeBadRequest, "repo_url is %q: plain http is not allowed, use https or ssh, or let the operator allow the host with --allow-http-git", hidden(u))
	case u.Scheme != "https" && u.Scheme != "ssh" && u.Scheme != "http":
		return address{}, slipway.Errorf(slipway.CodeBadRequest, "repo_url is %q: that protocol is not allowed, use https or ssh", hidden(u))
	case u.Hostname() == "" || strings.HasPrefix(u.Hostname(), "-") || strings.HasPrefix(u.User.Username(), "-"):
		return address{}, slipway.Errorf(slipway.CodeBadRequest, "repo_url is %q: it names no host", hidden(u))
	}
	return address{url: repo, shown: hidden(u), plain: u.Scheme == "http"}, nil
}

// hidden returns a URL without its credentials.
func hidden(u *url.URL) string {
	shown := *u
	if shown.Scheme == "https" || shown.Scheme == "http" {
		shown.User = nil
	}
	return shown.Redacted()
}

// local checks a repository on this machine, with all links resolved.
func (f *Fetcher) local(path string) (address, error) {
	refused := slipway.Errorf(slipway.CodeBadRequest, "repo_url is %q: a repository on this machine must lie in a directory that the operator allows with --allow-file-repos", "file://"+path)
	at, err := filepath.EvalSymlinks(filepath.Clean(path))
	for _, root := range f.cfg.FileRoots {
		absolute, bad := filepath.Abs(root)
		if bad != nil {
			continue
		}
		if real, bad := filepath.EvalSymlinks(absolute); bad == nil && err == nil && below(at, real) {
			return address{url: "file://" + at, shown: "file://" + path, file: true}, nil
		}
		if err != nil && below(filepath.Clean(path), absolute) {
			return address{}, slipway.Errorf(slipway.CodeBadRequest, "the repository %q does not exist: check repo_url", "file://"+path)
		}
	}
	return address{}, refused
}

func below(path, root string) bool {
	rel, err := filepath.Rel(root, path)
	return err == nil && filepath.IsLocal(rel)
}
