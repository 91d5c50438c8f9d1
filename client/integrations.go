package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Integration is an account at a git host that deployments are built with.
type Integration struct {
	ID             string    `json:"id"`
	Name           string    `json:"name"`
	Kind           string    `json:"kind"` // "github", "gitea", "gitlab" or "generic"
	HostURL        string    `json:"host_url"`
	InstallationID int64     `json:"installation_id"`
	Pending        bool      `json:"pending"`
	WebhookURL     string    `json:"webhook_url"`
	WebhookSecret  string    `json:"webhook_secret,omitempty"` // of one that was just made
	CreatedBy      string    `json:"created_by"`
	CreatedAt      time.Time `json:"created_at"`
}

// IntegrationCreate makes an integration of a kind other than github.
type IntegrationCreate struct {
	Kind          string `json:"kind"`
	Name          string `json:"name"`
	HostURL       string `json:"host_url"`
	APIURL        string `json:"api_url,omitempty"`
	Username      string `json:"username,omitempty"`
	Token         string `json:"token,omitempty"`
	PrivateKey    string `json:"private_key,omitempty"`
	KnownHosts    string `json:"known_hosts,omitempty"`
	WebhookSecret string `json:"webhook_secret,omitempty"`
}

// Repository is a repository that may be deployed.
type Repository struct {
	IntegrationID string `json:"host_integration_id"`
	ID            int64  `json:"id"`
	Name          string `json:"name"`
	Owner         string `json:"owner"`
	URL           string `json:"url"`
	DefaultBranch string `json:"default_branch"`
}

// AppManifestRequest asks for the manifest of a GitHub App.
type AppManifestRequest struct {
	Name         string `json:"name"`
	HostURL      string `json:"host_url,omitempty"`
	APIURL       string `json:"api_url,omitempty"`
	Organization string `json:"organization,omitempty"`
	RedirectURL  string `json:"redirect_url"`
}

// AppManifest is what a browser POSTs to GitHub: Manifest as the form field of that name, to PostURL.
type AppManifest struct {
	IntegrationID string `json:"integration_id"`
	PostURL       string `json:"post_url"`
	Manifest      string `json:"manifest"`
}

const integrationsPath = "/v2/integrations"

// Integrations lists one page, newest first; next is the offset of the following page.
func (c *Client) Integrations(ctx context.Context, limit, offset int) (list []Integration, next int, err error) {
	var out page[Integration]
	err = c.do(ctx, http.MethodGet, integrationsPath, pageOf(limit, offset), nil, &out)
	return out.Resources, out.Offset, err
}

// CreateIntegration makes an integration; its webhook secret is in the answer and nowhere later.
func (c *Client) CreateIntegration(ctx context.Context, in IntegrationCreate) (Integration, error) {
	var out Integration
	err := c.do(ctx, http.MethodPost, integrationsPath, nil, in, &out)
	return out, err
}

// DeleteIntegration removes an integration.
func (c *Client) DeleteIntegration(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, integrationsPath+"/"+url.PathEscape(id), nil, nil, nil)
}

// Repositories lists what an integration offers, a thousand at most.
func (c *Client) Repositories(ctx context.Context, id string) ([]Repository, error) {
	var out []Repository
	err := c.do(ctx, http.MethodGet, "/v1/integrations/githost/"+url.PathEscape(id)+"/repos", nil, nil, &out)
	return out, err
}

// GithostIntegration is an integration in the shape of the reference (control-plane reference 3).
type GithostIntegration struct {
	ID             string `json:"id"`
	InstallationID int64  `json:"installation_id"`
	Name           string `json:"name"`
}

// cursored is a page of a list that goes on behind a cursor.
type cursored[T any] struct {
	Items      []T     `json:"items"`
	NextCursor *string `json:"next_cursor"`
}

func pageBehind(size int, cursor string) url.Values {
	query := url.Values{}
	if size > 0 {
		query.Set("page_size", strconv.Itoa(size))
	}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	return query
}

// GithostIntegrations lists every integration in the shape of the reference.
func (c *Client) GithostIntegrations(ctx context.Context) ([]GithostIntegration, error) {
	var out []GithostIntegration
	err := c.do(ctx, http.MethodGet, "/v1/integrations/githost/install", nil, nil, &out)
	return out, err
}

// Installations lists one page of the same; next is nil on the last one.
func (c *Client) Installations(ctx context.Context, size int, cursor string) (list []GithostIntegration, next *string, err error) {
	var out cursored[GithostIntegration]
	err = c.do(ctx, http.MethodGet, "/v2/integrations/githost/installations", pageBehind(size, cursor), nil, &out)
	return out.Items, out.NextCursor, err
}

// InstallationRepositories lists one page of what an integration offers; next is nil on the last one.
func (c *Client) InstallationRepositories(ctx context.Context, id string, size int, cursor string) (list []Repository, next *string, err error) {
	var out cursored[Repository]
	err = c.do(ctx, http.MethodGet, "/v2/integrations/githost/installations/"+url.PathEscape(id)+"/repositories", pageBehind(size, cursor), nil, &out)
	return out.Items, out.NextCursor, err
}

// DescribeApp asks for the manifest of a GitHub App.
func (c *Client) DescribeApp(ctx context.Context, in AppManifestRequest) (AppManifest, error) {
	var out AppManifest
	err := c.do(ctx, http.MethodPost, "/v2/integrations/githost/app-manifest", nil, in, &out)
	return out, err
}

// ConvertApp lets the server exchange GitHub's code for the app.
func (c *Client) ConvertApp(ctx context.Context, integrationID, code string) (Integration, error) {
	var out Integration
	in := map[string]string{"integration_id": integrationID, "code": code}
	err := c.do(ctx, http.MethodPost, "/v2/integrations/githost/app-conversion", nil, in, &out)
	return out, err
}

// InstallationLink says where the newest GitHub App is installed.
func (c *Client) InstallationLink(ctx context.Context) (string, error) {
	var out struct {
		InstallURL string `json:"install_url"`
	}
	err := c.do(ctx, http.MethodPost, "/v2/integrations/githost/installation-link", nil, nil, &out)
	return out.InstallURL, err
}
