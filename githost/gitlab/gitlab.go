// Package gitlab reaches GitLab with an access token of a person, a group or a project: repositories, commit statuses and
// webhooks.
package gitlab

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/githost/rest"
)

// Host is one account at a GitLab.
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
		base = i.HostURL + "/api/v4"
	}
	return &Host{of: i, secrets: secrets, api: rest.New(base, nil, func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+secrets.Token)
		return nil
	})}
}

type project struct {
	ID            int64  `json:"id"`
	Path          string `json:"path"`
	URL           string `json:"http_url_to_repo"`
	DefaultBranch string `json:"default_branch"`
	Namespace     struct {
		FullPath string `json:"full_path"`
	} `json:"namespace"`
}

func (p project) record() slipway.Repository {
	return slipway.Repository{ID: p.ID, Name: p.Path, Owner: p.Namespace.FullPath, URL: p.URL, DefaultBranch: p.DefaultBranch}
}

// Repositories implements slipway.GitHost.
func (h *Host) Repositories(ctx context.Context, cursor string, limit int) ([]slipway.Repository, string, error) {
	page, err := rest.PageAt(cursor, limit)
	if err != nil {
		return nil, "", err
	}
	var found []project
	header, err := h.api.Call(ctx, http.MethodGet, fmt.Sprintf("/projects?membership=true&simple=true&order_by=id&per_page=%d&page=%d", page.Size, page.Number), nil, &found)
	if err != nil {
		return nil, "", err
	}
	out := make([]slipway.Repository, len(found))
	for k, p := range found {
		out[k] = p.record()
	}
	return out, page.Next(header), nil
}

// Repository implements slipway.GitHost.
func (h *Host) Repository(ctx context.Context, repoURL string) (slipway.Repository, error) {
	at, err := h.path(repoURL)
	if err != nil {
		return slipway.Repository{}, err
	}
	var found project
	_, err = h.api.Call(ctx, http.MethodGet, at, nil, &found)
	return found.record(), err
}

// path is where the API has a project: its whole path, groups and all, is one part of the address.
func (h *Host) path(repoURL string) (string, error) {
	path, err := rest.PathOn(h.of.HostURL, repoURL)
	return "/projects/" + url.PathEscape(path), err
}

// CloneCredentials implements slipway.GitHost.
func (h *Host) CloneCredentials(_ context.Context, repoURL string) (slipway.CloneCredentials, error) {
	if _, err := h.path(repoURL); err != nil {
		return slipway.CloneCredentials{}, err
	}
	user := h.secrets.Username
	if user == "" {
		user = "oauth2"
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
			ID string `json:"id"`
		} `json:"commit"`
	}
	kind := "/repository/branches/"
	if tag {
		kind = "/repository/tags/"
	}
	_, err = h.api.Call(ctx, http.MethodGet, at+kind+url.PathEscape(name), nil, &found)
	if slipway.ErrorCode(err) == slipway.CodeNotFound {
		return "", slipway.Errorf(slipway.CodeNotFound, "the repository has no reference %q", ref)
	}
	return found.Commit.ID, err
}

// states are GitLab's words for how a commit does.
var states = map[slipway.CommitState]string{ // a table
	slipway.CommitPending: "pending", slipway.CommitSuccess: "success", slipway.CommitFailure: "failed", slipway.CommitCanceled: "canceled",
}

// SetStatus implements slipway.GitHost.
func (h *Host) SetStatus(ctx context.Context, s slipway.CommitStatus) error {
	at, err := h.path(s.RepoURL)
	if err != nil {
		return err
	}
	in := map[string]string{"state": states[s.State], "name": s.Context, "description": s.Description, "target_url": s.TargetURL}
	_, err = h.api.Call(ctx, http.MethodPost, at+"/statuses/"+url.PathEscape(s.Commit), in, nil)
	if err != nil && strings.Contains(err.Error(), "Cannot transition status") {
		return nil // it shows this already
	}
	return err
}

// ReadHook implements slipway.GitHost. GitLab signs nothing: it sends the secret along.
func (h *Host) ReadHook(header func(string) string, body []byte) (slipway.Hook, error) {
	if err := rest.CheckToken(h.secrets.WebhookSecret, header("X-Gitlab-Token")); err != nil {
		return slipway.Hook{}, err
	}
	delivery := header("Idempotency-Key")
	if delivery == "" {
		delivery = header("X-Gitlab-Event-UUID")
	}
	hook := slipway.Hook{Keys: rest.Keys(delivery, body)}
	if delivery != "" {
		hook.Keys = hook.Keys[1:] // the same body may come of another push: it bears no time
	}
	var err error
	if event := header("X-Gitlab-Event"); event == "Push Hook" {
		hook.Push, err = readPush(body)
	} else {
		hook.About = fmt.Sprintf("the event %.40q makes no revision", event)
	}
	return hook, err
}

func readPush(body []byte) (*slipway.PushEvent, error) {
	var p struct {
		Ref     string `json:"ref"`
		Before  string `json:"before"`
		After   string `json:"after"`
		Project struct {
			HTTP          string `json:"git_http_url"`
			SSH           string `json:"git_ssh_url"`
			Web           string `json:"web_url"`
			DefaultBranch string `json:"default_branch"`
		} `json:"project"`
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return nil, rest.Unreadable()
	}
	event := &slipway.PushEvent{DefaultBranch: p.Project.DefaultBranch}
	for _, address := range []string{p.Project.HTTP, p.Project.Web, p.Project.SSH} {
		if address != "" {
			event.RepoURLs = append(event.RepoURLs, address)
		}
	}
	rest.Moved(event, p.Ref, p.Before, p.After)
	return rest.Checked(event)
}
