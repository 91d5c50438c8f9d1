// Package gitea reaches Gitea and Forgejo with an access token: repositories, commit statuses and webhooks.
package gitea

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/githost/rest"
)

// Host is one account at a Gitea or Forgejo.
type Host struct {
	of      slipway.Integration
	secrets slipway.IntegrationSecrets
	api     *rest.Client
}

var _ slipway.GitHost = (*Host)(nil)

// New makes a Host. It calls nobody.
func New(i slipway.Integration, secrets slipway.IntegrationSecrets) *Host {
	base := i.APIURL
	if base == "" {
		base = i.HostURL + "/api/v1"
	}
	return &Host{of: i, secrets: secrets, api: rest.New(base, map[string]string{"Accept": "application/json"}, func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "token "+secrets.Token)
		return nil
	})}
}

type repository struct {
	ID            int64  `json:"id"`
	Name          string `json:"name"`
	CloneURL      string `json:"clone_url"`
	DefaultBranch string `json:"default_branch"`
	Owner         struct {
		Login string `json:"login"`
	} `json:"owner"`
}

func (r repository) record() slipway.Repository {
	return slipway.Repository{ID: r.ID, Name: r.Name, Owner: r.Owner.Login, URL: r.CloneURL, DefaultBranch: r.DefaultBranch}
}

// Repositories implements slipway.GitHost.
func (h *Host) Repositories(ctx context.Context, cursor string, limit int) ([]slipway.Repository, string, error) {
	page, err := rest.PageAt(cursor, limit)
	if err != nil {
		return nil, "", err
	}
	var found []repository
	header, err := h.api.Call(ctx, http.MethodGet, fmt.Sprintf("/user/repos?limit=%d&page=%d", page.Size, page.Number), nil, &found)
	if err != nil {
		return nil, "", err
	}
	out := make([]slipway.Repository, len(found))
	for k, r := range found {
		out[k] = r.record()
	}
	return out, page.Next(header), nil
}

// Repository implements slipway.GitHost.
func (h *Host) Repository(ctx context.Context, repoURL string) (slipway.Repository, error) {
	at, err := h.path(repoURL)
	if err != nil {
		return slipway.Repository{}, err
	}
	var found repository
	_, err = h.api.Call(ctx, http.MethodGet, at, nil, &found)
	return found.record(), err
}

// path is where the API has a repository.
func (h *Host) path(repoURL string) (string, error) {
	owner, name, err := rest.OwnerAndName(h.of.HostURL, repoURL)
	return "/repos/" + url.PathEscape(owner) + "/" + url.PathEscape(name), err
}

// CloneCredentials implements slipway.GitHost.
func (h *Host) CloneCredentials(_ context.Context, repoURL string) (slipway.CloneCredentials, error) {
	if _, err := h.path(repoURL); err != nil {
		return slipway.CloneCredentials{}, err
	}
	user := h.secrets.Username
	if user == "" {
		user = "oauth2" // a token needs no name, but git's protocol does
	}
	return rest.PasswordFor(h.of.HostURL, user, h.secrets.Token), nil
}

// Resolve implements slipway.GitHost.
func (h *Host) Resolve(ctx context.Context, repoURL, ref string) (string, error) {
	at, err := h.path(repoURL)
	if err != nil {
		return "", err
	}
	name, tag := rest.Ref(ref)
	if name == "" {
		repo, err := h.Repository(ctx, repoURL)
		if err != nil {
			return "", err
		}
		name = repo.DefaultBranch
	}
	var found struct {
		Commit struct {
			ID  string `json:"id"`  // of a branch
			SHA string `json:"sha"` // of a tag
		} `json:"commit"`
	}
	kind := "/branches/"
	if tag {
		kind = "/tags/"
	}
	_, err = h.api.Call(ctx, http.MethodGet, at+kind+strings.ReplaceAll(url.PathEscape(name), "%2F", "/"), nil, &found)
	if slipway.ErrorCode(err) == slipway.CodeNotFound {
		return "", slipway.Errorf(slipway.CodeNotFound, "the repository has no reference %q", ref)
	}
	return found.Commit.ID + found.Commit.SHA, err
}

// SetStatus implements slipway.GitHost.
func (h *Host) SetStatus(ctx context.Context, s slipway.CommitStatus) error {
	at, err := h.path(s.RepoURL)
	if err != nil {
		return err
	}
	state := string(s.State)
	if s.State == slipway.CommitCanceled {
		state = "warning"
	}
	in := map[string]string{"state": state, "context": s.Context, "description": s.Description, "target_url": s.TargetURL}
	_, err = h.api.Call(ctx, http.MethodPost, at+"/statuses/"+url.PathEscape(s.Commit), in, nil)
	return err
}

// ReadHook implements slipway.GitHost.
func (h *Host) ReadHook(header func(string) string, body []byte) (slipway.Hook, error) {
	if err := rest.CheckSignature(h.secrets.WebhookSecret, header("X-Gitea-Signature"), body); err != nil {
		return slipway.Hook{}, err
	}
	hook := slipway.Hook{Keys: rest.Keys(header("X-Gitea-Delivery"), body)}
	var err error
	if event := header("X-Gitea-Event"); event == "push" {
		hook.Push, err = rest.ReadPush(body)
	} else {
		hook.About = fmt.Sprintf("the event %.40q makes no revision", event)
	}
	return hook, err
}
