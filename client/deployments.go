package client

import (
	"context"
	"net/http"
	"net/url"
	"strings"
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
	SecretReferences     []SecretReference    `json:"secret_references"`
	Status               string               `json:"status"`
	LatestRevisionID     *string              `json:"latest_revision_id"`
	ActiveRevisionID     *string              `json:"active_revision_id"`
	ImageVersion         *string              `json:"image_version"`
	CreatedAt            time.Time            `json:"created_at"`
	UpdatedAt            time.Time            `json:"updated_at"`
	DisplayName          *string              `json:"display_name"`
	URL                  *string              `json:"url"`
	DeploymentTier       *string              `json:"deployment_tier"`
	ComputeTier          *string              `json:"compute_tier"`
	DatabaseTier         *string              `json:"database_tier"`
	DeletedAt            *time.Time           `json:"deleted_at"`   // while AWAITING_DELETE, like the next two
	TornDownAt           *time.Time           `json:"torn_down_at"` // nil = its workloads have not ended yet
	PurgeAt              *time.Time           `json:"purge_at"`     // until when it can be restored
}

// SourceConfig holds the fields of spec 2.2; nil is null.
type SourceConfig struct {
	IntegrationID  *string         `json:"integration_id,omitempty"`
	RepoURL        *string         `json:"repo_url,omitempty"`
	DeploymentType *string         `json:"deployment_type,omitempty"`
	BuildOnPush    *bool           `json:"build_on_push,omitempty"`
	CustomURL      *string         `json:"custom_url,omitempty"`
	ResourceSpec   *ResourceSpec   `json:"resource_spec,omitempty"`
	ListenerID     *string         `json:"listener_id,omitempty"`
	ListenerConfig *ListenerConfig `json:"listener_config,omitempty"`
	InstallCommand *string         `json:"install_command,omitempty"`
	BuildCommand   *string         `json:"build_command,omitempty"`
	TemplateID     *string         `json:"template_id,omitempty"`
	ImageDigest    *string         `json:"image_digest,omitempty"` // answered only: what image_uri stood for
}

// ListenerConfig says where a listener places a deployment (spec 2.2).
type ListenerConfig struct {
	ClusterNamespace *string `json:"cluster_namespace,omitempty"`
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

// SecretReference fills an environment variable from a cluster secret (spec 2.5).
type SecretReference struct {
	Name       string `json:"name"`
	SecretName string `json:"secret_name"`
	SecretKey  string `json:"secret_key"`
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
	SecretReferences     []SecretReference    `json:"secret_references,omitempty"`
	DisplayName          *string              `json:"display_name,omitempty"`
}

// DeploymentPatch is the body of PATCH /v2/deployments/{id}; nil fields stay as they are (spec 4.1).
type DeploymentPatch struct {
	RevisionSource       *string               `json:"revision_source,omitempty"`
	SourceConfig         *SourceConfig         `json:"source_config,omitempty"`
	SourceRevisionConfig *SourceRevisionConfig `json:"source_revision_config,omitempty"`
	Secrets              *[]Secret             `json:"secrets,omitempty"`
	SecretReferences     *[]SecretReference    `json:"secret_references,omitempty"`
	DisplayName          *string               `json:"display_name,omitempty"`
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

// DeploymentFilter selects deployments; what is empty selects nothing out (control-plane reference 2).
type DeploymentFilter struct {
	Name             string   // exactly
	NameContains     string   // in any case; exact matches come first
	Statuses         []string // AWAITING_DELETE lists what was deleted
	IDs              []string
	TagValueIDs      []string
	ImageVersion     string
	DeploymentType   string
	RemoteReconciled *bool // whether a listener elsewhere looks after it
	Limit, Offset    int   // 1..100; 0 = the server's own 20
}

func (f DeploymentFilter) query() url.Values {
	q := url.Values{}
	text(q, "name", f.Name)
	text(q, "name_contains", f.NameContains)
	text(q, "status", strings.Join(f.Statuses, ","))
	text(q, "deployment_ids", strings.Join(f.IDs, ","))
	text(q, "tag_value_ids", strings.Join(f.TagValueIDs, ","))
	text(q, "image_version", f.ImageVersion)
	text(q, "deployment_type", f.DeploymentType)
	truth(q, "remote_reconciled", f.RemoteReconciled)
	number(q, "limit", f.Limit)
	number(q, "offset", f.Offset)
	return q
}

// Deployments lists one page, newest first; next is the offset of the following page.
func (c *Client) Deployments(ctx context.Context, limit, offset int) (list []Deployment, next int, err error) {
	return c.FindDeployments(ctx, DeploymentFilter{Limit: limit, Offset: offset})
}

// FindDeployments lists one page of those that the filter selects; next is the offset of the following page.
func (c *Client) FindDeployments(ctx context.Context, f DeploymentFilter) (list []Deployment, next int, err error) {
	var out page[Deployment]
	err = c.do(ctx, http.MethodGet, "/v2/deployments", f.query(), nil, &out)
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
