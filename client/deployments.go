package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Deployment is the answer of the deployment calls (spec 2.1).
type Deployment struct {
	ID                   string               `json:"id"`
	TenantID             string               `json:"tenant_id"`
	Name                 string               `json:"name"`
	Source               string               `json:"source"`
	SourceConfig         SourceConfig         `json:"source_config"`
	SourceRevisionConfig SourceRevisionConfig `json:"source_revision_config"`
	Secrets              []Secret             `json:"secrets"`
	Status               string               `json:"status"`
	LatestRevisionID     *string              `json:"latest_revision_id"`
	ActiveRevisionID     *string              `json:"active_revision_id"`
	CreatedAt            time.Time            `json:"created_at"`
	UpdatedAt            time.Time            `json:"updated_at"`
}

// SourceConfig holds the fields of spec 2.2 that this client sends or shows; nil is null.
type SourceConfig struct {
	RepoURL        *string `json:"repo_url,omitempty"`
	BuildOnPush    *bool   `json:"build_on_push,omitempty"`
	CustomURL      *string `json:"custom_url,omitempty"`
	InstallCommand *string `json:"install_command,omitempty"`
	BuildCommand   *string `json:"build_command,omitempty"`
	TemplateID     *string `json:"template_id,omitempty"`
}

// SourceRevisionConfig holds the fields of spec 2.3; nil is null.
type SourceRevisionConfig struct {
	RepoRef              *string `json:"repo_ref,omitempty"`
	AgentgraphConfigPath *string `json:"agentgraph_config_path,omitempty"`
	ImageURI             *string `json:"image_uri,omitempty"`
	SourceTarballPath    *string `json:"source_tarball_path,omitempty"`
	RepoCommitSHA        *string `json:"repo_commit_sha,omitempty"`
}

// Secret is an environment variable of the graph's process (spec 2.5).
type Secret struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// MaskedSecret is what the server shows instead of a secret's value. Sent back for an existing name it keeps the value.
const MaskedSecret = "••••••••"

// DeploymentCreate is the body of POST /v2/deployments.
type DeploymentCreate struct {
	Name                 string               `json:"name"`
	Source               string               `json:"source"`
	SourceConfig         SourceConfig         `json:"source_config"`
	SourceRevisionConfig SourceRevisionConfig `json:"source_revision_config"`
	Secrets              []Secret             `json:"secrets"`
}

// DeploymentPatch is the body of PATCH /v2/deployments/{id}; nil fields stay as they are (spec 4.1).
type DeploymentPatch struct {
	RevisionSource       *string               `json:"revision_source,omitempty"`
	SourceConfig         *SourceConfig         `json:"source_config,omitempty"`
	SourceRevisionConfig *SourceRevisionConfig `json:"source_revision_config,omitempty"`
	Secrets              *[]Secret             `json:"secrets,omitempty"`
}

// CreateDeployment makes a deployment.
func (c *Client) CreateDeployment(ctx context.Context, in DeploymentCreate) (Deployment, error) {
	if in.Secrets == nil {
		in.Secrets = []Secret{}
	}
	var out Deployment
	err := c.do(ctx, http.MethodPost, "/v2/deployments", nil, in, &out)
	return out, err
}

// Deployment reads one deployment by id.
func (c *Client) Deployment(ctx context.Context, id string) (Deployment, error) {
	var out Deployment
	err := c.do(ctx, http.MethodGet, "/v2/deployments/"+url.PathEscape(id), nil, nil, &out)
	return out, err
}

// Deployments lists one page, newest first; next is the offset of the following page.
func (c *Client) Deployments(ctx context.Context, limit, offset int) (page []Deployment, next int, err error) {
	var out struct {
		Resources []Deployment `json:"resources"`
		Offset    int          `json:"offset"`
	}
	q := url.Values{"limit": {strconv.Itoa(limit)}, "offset": {strconv.Itoa(offset)}}
	err = c.do(ctx, http.MethodGet, "/v2/deployments", q, nil, &out)
	return out.Resources, out.Offset, err
}

// DeploymentByName returns the deployment with exactly this name; found is false without one.
func (c *Client) DeploymentByName(ctx context.Context, name string) (d Deployment, found bool, err error) {
	var out struct {
		Resources []Deployment `json:"resources"`
	}
	err = c.do(ctx, http.MethodGet, "/v2/deployments", url.Values{"name": {name}}, nil, &out)
	if err != nil || len(out.Resources) == 0 {
		return Deployment{}, false, err
	}
	return out.Resources[0], true, nil
}

// PatchDeployment changes a deployment and may make a revision (spec 4.1).
func (c *Client) PatchDeployment(ctx context.Context, id string, in DeploymentPatch) (Deployment, error) {
	var out Deployment
	err := c.do(ctx, http.MethodPatch, "/v2/deployments/"+url.PathEscape(id), nil, in, &out)
	return out, err
}

// DeleteDeployment deletes a deployment.
func (c *Client) DeleteDeployment(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, "/v2/deployments/"+url.PathEscape(id), nil, nil, nil)
}

// AwaitingDelete says whether a deleted deployment is still being torn down; until it is gone its name is reserved.
func (c *Client) AwaitingDelete(ctx context.Context, id string) (bool, error) {
	var out struct {
		Resources []Deployment `json:"resources"`
	}
	query := url.Values{"deployment_ids": {id}, "status": {"AWAITING_DELETE"}}
	err := c.do(ctx, http.MethodGet, "/v2/deployments", query, nil, &out)
	return len(out.Resources) > 0, err
}
