package controltest

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/slipway-dev/slipway"
)

// Hosts is a slipway.GitHosts in memory: one host, which every integration leads to. Its zero value has no repositories.
type Hosts struct {
	mu       sync.Mutex
	repos    []slipway.Repository
	statuses []slipway.CommitStatus
	err      error
	password string
}

var _ slipway.GitHosts = (*Hosts)(nil)

// Add adds a repository.
func (h *Hosts) Add(r slipway.Repository) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.repos = append(h.repos, r)
}

// Lend sets the password that repositories are cloned with.
func (h *Hosts) Lend(password string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.password = password
}

// Fail lets every call answer err from now on; nil = no more.
func (h *Hosts) Fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = err
}

// Statuses lists what the host was told.
func (h *Hosts) Statuses() []slipway.CommitStatus {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.statuses)
}

// Open implements slipway.GitHosts.
func (h *Hosts) Open(_ slipway.Integration, secrets slipway.IntegrationSecrets) (slipway.GitHost, error) {
	return gitHost{h, secrets}, nil
}

// ConvertManifest implements slipway.GitHosts; the code is taken for the app's name.
func (h *Hosts) ConvertManifest(_ context.Context, _ slipway.Integration, code string) (slipway.App, error) {
	return slipway.App{ID: 7, Slug: code, Secrets: slipway.IntegrationSecrets{WebhookSecret: code, PrivateKey: "canary-key"}}, nil
}

type gitHost struct {
	*Hosts
	secrets slipway.IntegrationSecrets
}

func (h gitHost) Repositories(_ context.Context, cursor string, _ int) ([]slipway.Repository, string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if cursor != "" {
		return nil, "", slipway.Errorf(slipway.CodeInvalid, "no cursor of this host")
	}
	return slices.Clone(h.repos), "", h.err
}

func (h gitHost) Repository(_ context.Context, repoURL string) (slipway.Repository, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err != nil {
		return slipway.Repository{}, h.err
	}
	for _, r := range h.repos {
		if slipway.SameRepository(r.URL, repoURL) {
			return r, nil
		}
	}
	return slipway.Repository{}, none("repository", repoURL)
}

func (h gitHost) CloneCredentials(ctx context.Context, repoURL string) (slipway.CloneCredentials, error) {
	_, err := h.Repository(ctx, repoURL)
	h.mu.Lock()
	defer h.mu.Unlock()
	return slipway.CloneCredentials{Host: "https://git.example.com", Username: "u", Password: h.password}, err
}

func (h gitHost) Resolve(context.Context, string, string) (string, error) {
	return "", none("reference", "")
}

func (h gitHost) SetStatus(_ context.Context, s slipway.CommitStatus) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err == nil {
		h.statuses = append(h.statuses, s)
	}
	return h.err
}

// ReadHook takes a slipway.Hook as JSON, with the secret beside it.
func (h gitHost) ReadHook(header func(string) string, body []byte) (slipway.Hook, error) {
	var hook slipway.Hook
	if header("X-Secret") != h.secrets.WebhookSecret {
		return hook, slipway.Errorf(slipway.CodeUnauthenticated, "the delivery's signature is missing or wrong")
	}
	err := json.Unmarshal(body, &hook)
	return hook, err
}
