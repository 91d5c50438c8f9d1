// Package github reaches GitHub and GitHub Enterprise Server as a GitHub App: repositories, installation tokens, commit
// statuses and webhooks.
package github

import (
	"context"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/githost/rest"
)

// Host is one GitHub App at GitHub.
type Host struct {
	of      slipway.Integration
	secret  string // of the webhook
	key     *rsa.PrivateKey
	clock   slipway.Clock
	asApp   *rest.Client // with the app's own signature
	api     *rest.Client // with the installation's token
	mu      sync.Mutex   // over what follows
	install int64
	tokens  map[string]token // by the permissions asked for
}

var _ slipway.GitHost = (*Host)(nil)

// New makes a Host. It calls nobody.
func New(i slipway.Integration, secrets slipway.IntegrationSecrets, clock slipway.Clock) (*Host, error) {
	key, err := privateKey(secrets.PrivateKey)
	if err != nil {
		return nil, err
	}
	h := &Host{of: i, secret: secrets.WebhookSecret, key: key, clock: clock, install: i.InstallationID, tokens: map[string]token{}}
	h.asApp = client(i, func(_ context.Context, r *http.Request) error {
		signed, err := h.signed()
		r.Header.Set("Authorization", "Bearer "+signed)
		return err
	})
	h.api = client(i, func(ctx context.Context, r *http.Request) error {
		t, err := h.token(ctx, everything)
		r.Header.Set("Authorization", "Bearer "+t.Token)
		return err
	})
	return h, nil
}

func client(i slipway.Integration, authorize func(context.Context, *http.Request) error) *rest.Client {
	header := map[string]string{"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28", "User-Agent": "slipway"}
	return rest.New(apiURL(i), header, authorize)
}

// apiURL is where the API of a GitHub is: github.com has a host of its own for it, others a path.
func apiURL(i slipway.Integration) string {
	switch {
	case i.APIURL != "":
		return i.APIURL
	case i.HostURL == "https://github.com":
		return "https://api.github.com"
	}
	return i.HostURL + "/api/v3"
}

// Convert exchanges the code of an app's manifest for the app.
func Convert(ctx context.Context, i slipway.Integration, code string) (slipway.App, error) {
	var made struct {
		ID            int64  `json:"id"`
		Slug          string `json:"slug"`
		PEM           string `json:"pem"`
		WebhookSecret string `json:"webhook_secret"`
	}
	_, err := client(i, nil).Call(ctx, http.MethodPost, "/app-manifests/"+url.PathEscape(code)+"/conversions", nil, &made)
	if slipway.ErrorCode(err) == slipway.CodeNotFound {
		return slipway.App{}, slipway.Errorf(slipway.CodeBadRequest, "GitHub does not know this code: it is good once and for an hour; make the app again")
	}
	if err == nil && (made.ID == 0 || made.PEM == "") {
		err = slipway.Errorf(slipway.CodeUnavailable, "GitHub's answer lacks the app's id or key: try again")
	}
	return slipway.App{
		ID: made.ID, Slug: made.Slug, Secrets: slipway.IntegrationSecrets{PrivateKey: made.PEM, WebhookSecret: made.WebhookSecret},
	}, err
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
	var answer struct {
		Repositories []repository `json:"repositories"`
	}
	header, err := h.api.Call(ctx, http.MethodGet, fmt.Sprintf("/installation/repositories?per_page=%d&page=%d", page.Size, page.Number), nil, &answer)
	if err != nil {
		return nil, "", err
	}
	out := make([]slipway.Repository, len(answer.Repositories))
	for k, r := range answer.Repositories {
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

// CloneCredentials implements slipway.GitHost: a token that may read and nothing else, for an hour at most.
func (h *Host) CloneCredentials(ctx context.Context, repoURL string) (slipway.CloneCredentials, error) {
	if _, err := h.path(repoURL); err != nil {
		return slipway.CloneCredentials{}, err
	}
	t, err := h.token(ctx, reading)
	c := rest.PasswordFor(h.of.HostURL, "x-access-token", t.Token)
	c.Expires = t.ExpiresAt
	return c, err
}

// Resolve implements slipway.GitHost.
func (h *Host) Resolve(ctx context.Context, repoURL, ref string) (string, error) {
	at, err := h.path(repoURL)
	if err != nil {
		return "", err
	}
	name, tag := rest.Ref(ref)
	switch {
	case tag:
		name = "tags/" + name
	case name == "":
		name = "HEAD"
	default:
		name = "heads/" + name
	}
	var found struct {
		SHA string `json:"sha"`
	}
	_, err = h.api.Call(ctx, http.MethodGet, at+"/commits/"+escaped(name), nil, &found)
	return found.SHA, missingRef(err, ref)
}

// escaped keeps the slashes of a reference.
func escaped(ref string) string { return strings.ReplaceAll(url.PathEscape(ref), "%2F", "/") }

// missingRef says what GitHub says with 404 or 422: that there is no such reference.
func missingRef(err error, ref string) error {
	if code := slipway.ErrorCode(err); code == slipway.CodeNotFound || code == slipway.CodeBadRequest && strings.Contains(err.Error(), "(422)") {
		return slipway.Errorf(slipway.CodeNotFound, "the repository has no reference %q", ref)
	}
	return err
}

// SetStatus implements slipway.GitHost.
func (h *Host) SetStatus(ctx context.Context, s slipway.CommitStatus) error {
	at, err := h.path(s.RepoURL)
	if err != nil {
		return err
	}
	state := string(s.State)
	if s.State == slipway.CommitCanceled {
		state = "error"
	}
	in := map[string]string{"state": state, "context": s.Context, "description": s.Description, "target_url": s.TargetURL}
	_, err = h.api.Call(ctx, http.MethodPost, at+"/statuses/"+url.PathEscape(s.Commit), in, nil)
	return err
}

// ReadHook implements slipway.GitHost.
func (h *Host) ReadHook(header func(string) string, body []byte) (slipway.Hook, error) {
	if err := rest.CheckSignature(h.secret, header("X-Hub-Signature-256"), body); err != nil {
		return slipway.Hook{}, err
	}
	hook := slipway.Hook{Keys: rest.Keys(header("X-GitHub-Delivery"), body)}
	var err error
	switch event := header("X-GitHub-Event"); event {
	case "push":
		hook.Push, err = rest.ReadPush(body)
	case "installation":
		hook.Installation, err = readInstallation(body)
		hook.About = "the installation was noted"
	default:
		hook.About = fmt.Sprintf("the event %.40q makes no revision", event)
	}
	return hook, err
}

func readInstallation(body []byte) (*slipway.InstallationEvent, error) {
	var e struct {
		Action       string `json:"action"`
		Installation struct {
			ID int64 `json:"id"`
		} `json:"installation"`
	}
	if json.Unmarshal(body, &e) != nil || e.Installation.ID == 0 {
		return nil, rest.Unreadable()
	}
	return &slipway.InstallationEvent{ID: e.Installation.ID, Removed: e.Action == "deleted" || e.Action == "suspend"}, nil
}

// token is what GitHub lets an installation work with.
type token struct {
	Token     string    `json:"token"`
	ExpiresAt time.Time `json:"expires_at"`
}
