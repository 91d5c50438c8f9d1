// Package generic reaches plain git servers, which have no API: with a token over https, or a deploy key over ssh. Their
// pushes are told by whoever writes a hook for them, in GitHub's form and with its signature.
package generic

import (
	"context"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/githost/rest"
)

// Host is everything below one address of a git server.
type Host struct {
	of      slipway.Integration
	secrets slipway.IntegrationSecrets
}

var _ slipway.GitHost = (*Host)(nil)

// New makes a Host. It calls nobody.
func New(i slipway.Integration, secrets slipway.IntegrationSecrets) *Host { return &Host{i, secrets} }

// Repositories implements slipway.GitHost: git cannot list any.
func (h *Host) Repositories(_ context.Context, cursor string, limit int) ([]slipway.Repository, string, error) {
	_, err := rest.PageAt(cursor, limit)
	return []slipway.Repository{}, "", err
}

// Repository implements slipway.GitHost. Over https the server is asked; over ssh the first build finds out.
func (h *Host) Repository(ctx context.Context, repoURL string) (slipway.Repository, error) {
	at, err := h.path(repoURL)
	if err != nil {
		return slipway.Repository{}, err
	}
	repo := slipway.Repository{Name: path.Base(at), Owner: strings.TrimPrefix(path.Dir(at), "."), URL: repoURL}
	if h.keyed() {
		return repo, nil
	}
	refs, err := h.refs(ctx, repoURL)
	repo.DefaultBranch = strings.TrimPrefix(refs.head, "refs/heads/")
	return repo, err
}

func (h *Host) keyed() bool { return h.secrets.PrivateKey != "" }

// path is that of a repository below the integration's address.
func (h *Host) path(repoURL string) (string, error) {
	if !h.keyed() {
		return rest.PathOn(h.of.HostURL, repoURL)
	}
	prefix, name := slipway.RepositoryName(h.of.HostURL+"/x"), slipway.RepositoryName(repoURL)
	at, below := strings.CutPrefix(name, strings.TrimSuffix(prefix, "x"))
	if !below || at == "" || strings.HasPrefix(repoURL, "http") || path.Clean(at) != at {
		return "", slipway.Errorf(slipway.CodeNotFound, "the repository is not at %s: use an address that begins so", h.of.HostURL)
	}
	return at, nil
}

// CloneCredentials implements slipway.GitHost.
func (h *Host) CloneCredentials(_ context.Context, repoURL string) (slipway.CloneCredentials, error) {
	if _, err := h.path(repoURL); err != nil {
		return slipway.CloneCredentials{}, err
	}
	if h.keyed() {
		return slipway.CloneCredentials{PrivateKey: h.secrets.PrivateKey, KnownHosts: h.secrets.KnownHosts}, nil
	}
	return rest.PasswordFor(h.of.HostURL, h.user(), h.secrets.Token), nil
}

func (h *Host) user() string {
	if h.secrets.Username != "" {
		return h.secrets.Username
	}
	return "git"
}

// Resolve implements slipway.GitHost. CodeBadRequest over ssh, which only git itself speaks.
func (h *Host) Resolve(ctx context.Context, repoURL, ref string) (string, error) {
	if _, err := h.path(repoURL); err != nil {
		return "", err
	}
	if h.keyed() {
		return "", slipway.Errorf(slipway.CodeBadRequest, "references of %s are known to builds only", h.of.HostURL)
	}
	all, err := h.refs(ctx, repoURL)
	if err != nil {
		return "", err
	}
	name, tag := rest.Ref(ref)
	full := "refs/heads/" + name
	switch {
	case tag:
		full = ref
	case name == "":
		full = "HEAD"
	}
	for _, at := range []string{full + "^{}", full} { // a tag with a message leads on to its commit
		if commit, ok := all.commits[at]; ok {
			return commit, nil
		}
	}
	return "", slipway.Errorf(slipway.CodeNotFound, "the repository has no reference %q", ref)
}

// SetStatus implements slipway.GitHost: there is nothing that would show it.
func (h *Host) SetStatus(_ context.Context, s slipway.CommitStatus) error {
	_, err := h.path(s.RepoURL)
	return err
}

// ReadHook implements slipway.GitHost.
func (h *Host) ReadHook(header func(string) string, body []byte) (slipway.Hook, error) {
	if err := rest.CheckSignature(h.secrets.WebhookSecret, header("X-Hub-Signature-256"), body); err != nil {
		return slipway.Hook{}, err
	}
	hook := slipway.Hook{Keys: rest.Keys(header("X-Delivery-Id"), body)}
	var err error
	hook.Push, err = rest.ReadPush(body)
	return hook, err
}

// client speaks git's own protocol with the repository's server.
func (h *Host) client(repoURL string) *rest.Client {
	return rest.New(strings.TrimRight(repoURL, "/"), map[string]string{"User-Agent": "git/slipway"}, func(_ context.Context, r *http.Request) error {
		r.SetBasicAuth(h.user(), h.secrets.Token)
		return nil
	})
}

// refs asks for the references of a repository.
func (h *Host) refs(ctx context.Context, repoURL string) (references, error) {
	raw, err := h.client(repoURL).Raw(ctx, http.MethodGet, "/info/refs?service="+url.QueryEscape("git-upload-pack"))
	if err != nil {
		return references{}, err
	}
	return parseRefs(raw)
}
