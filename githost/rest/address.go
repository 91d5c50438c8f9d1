package rest

import (
	"net/url"
	"strings"

	"github.com/slipway-dev/slipway"
)

// PathOn returns the path of a repository on a host, such as owner/name, without slashes at its ends and ".git". Addresses
// of other hosts, and others than http ones, are CodeNotFound: credentials of the host are no use for them.
func PathOn(hostURL, repoURL string) (string, error) {
	host, err := url.Parse(hostURL)
	if err != nil {
		return "", slipway.Errorf(slipway.CodeInvalid, "the integration's host_url is no address")
	}
	repo, err := url.Parse(repoURL)
	if err != nil || repo.Scheme != host.Scheme || !strings.EqualFold(repo.Host, host.Host) || repo.User != nil || repo.RawQuery != "" || repo.Fragment != "" {
		return "", slipway.Errorf(slipway.CodeNotFound, "the repository is not at %s: use its address that begins so, without credentials", hostURL)
	}
	path, below := strings.CutPrefix(repo.Path, strings.TrimRight(host.Path, "/")+"/")
	path = strings.TrimSuffix(strings.Trim(path, "/"), ".git")
	for part := range strings.SplitSeq(path, "/") {
		if !below || part == "" || part == "." || part == ".." {
			return "", slipway.Errorf(slipway.CodeNotFound, "%s/%s names no repository", hostURL, path)
		}
	}
	return path, nil
}

// OwnerAndName returns the two parts of a repository's path on a host that has two.
func OwnerAndName(hostURL, repoURL string) (owner, name string, err error) {
	path, err := PathOn(hostURL, repoURL)
	if err != nil {
		return "", "", err
	}
	owner, name, ok := strings.Cut(path, "/")
	if !ok || strings.Contains(name, "/") {
		return "", "", slipway.Errorf(slipway.CodeNotFound, "%s/%s is no repository: its address ends with owner/name", hostURL, path)
	}
	return owner, name, nil
}

// Ref splits a reference as deployments name it.
func Ref(ref string) (name string, tag bool) {
	if name, tag = strings.CutPrefix(ref, "refs/tags/"); tag {
		return name, true
	}
	return strings.TrimPrefix(ref, "refs/heads/"), false
}

// PasswordFor is what git fetches from a host with a token.
func PasswordFor(hostURL, username, token string) slipway.CloneCredentials {
	u, err := url.Parse(hostURL)
	if err != nil {
		return slipway.CloneCredentials{}
	}
	return slipway.CloneCredentials{Host: u.Scheme + "://" + u.Host, Username: username, Password: token}
}
