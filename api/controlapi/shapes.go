package controlapi

import (
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/control"
)

// Deployment is the answer about a deployment (spec 2.1).
type Deployment struct {
	Name                 string               `json:"name" required:"true"`
	Source               string               `json:"source" required:"true" enum:"githost,external_container,internal_container,internal_source,internal_template"`
	SourceConfig         SourceConfig         `json:"source_config" required:"true"`
	SourceRevisionConfig SourceRevisionConfig `json:"source_revision_config" required:"true"`
	Secrets              []Secret             `json:"secrets" required:"true" nullable:"false"`
	SecretReferences     []SecretReference    `json:"secret_references"`
	ID                   string               `json:"id" required:"true" format:"uuid"`
	TenantID             string               `json:"tenant_id" required:"true" format:"uuid"`
	CreatedAt            time.Time            `json:"created_at" required:"true"`
	UpdatedAt            time.Time            `json:"updated_at" required:"true"`
	Status               string               `json:"status" required:"true" enum:"AWAITING_DATABASE,READY,UNUSED,AWAITING_DELETE,UNKNOWN"`
	LatestRevisionID     *string              `json:"latest_revision_id" required:"true" format:"uuid"`
	ActiveRevisionID     *string              `json:"active_revision_id" required:"true" format:"uuid"`
	ImageVersion         *string              `json:"image_version"`
	DisplayName          *string              `json:"display_name" doc:"what people call it; not unique, cannot be cleared"`
	URL                  *string              `json:"url" doc:"where it is served, like source_config.custom_url"`
	DeploymentTier       *string              `json:"deployment_tier" enum:"SERVERLESS_S,SERVERLESS_M,SERVERLESS_L,DEDICATED_S,DEDICATED_M,DEDICATED_L" doc:"the same as compute_tier"`
	ComputeTier          *string              `json:"compute_tier" enum:"SERVERLESS_S,SERVERLESS_M,SERVERLESS_L,DEDICATED_S,DEDICATED_M,DEDICATED_L" doc:"size of its servers; null while it has none"`
	DatabaseTier         *string              `json:"database_tier" enum:"DEDICATED_S,DEDICATED_M,DEDICATED_L" doc:"size of its database; null while that is shared or has no tier"`
	DeletedAt            *time.Time           `json:"deleted_at,omitempty" doc:"while AWAITING_DELETE"`
	TornDownAt           *time.Time           `json:"torn_down_at,omitempty" doc:"when its workloads had ended"`
	PurgeAt              *time.Time           `json:"purge_at,omitempty" doc:"until when it can be restored"`
}

// SourceConfig holds the fields of spec 2.2, in requests and answers.
type SourceConfig struct {
	IntegrationID  *string               `json:"integration_id" format:"uuid"`
	RepoURL        *string               `json:"repo_url"`
	DeploymentType *string               `json:"deployment_type" enum:"dev_free,dev,prod"`
	BuildOnPush    *bool                 `json:"build_on_push"`
	CustomURL      *string               `json:"custom_url"`
	ResourceSpec   *slipway.ResourceSpec `json:"resource_spec"`
	ListenerID     *string               `json:"listener_id" format:"uuid"`
	ListenerConfig *ListenerConfig       `json:"listener_config"`
	InstallCommand *string               `json:"install_command"`
	BuildCommand   *string               `json:"build_command"`
	TemplateID     *string               `json:"template_id"`
	ImageDigest    *string               `json:"image_digest" readOnly:"true" doc:"digest of the image that a revision runs"`
}

// ListenerConfig is the listener's part of a SourceConfig (spec 2.2).
type ListenerConfig struct {
	ClusterNamespace *string `json:"cluster_namespace"`
}

// SourceRevisionConfig holds the fields of spec 2.3 as they are answered.
type SourceRevisionConfig struct {
	SourceRevisionConfigRequest
	RepoCommitSHA *string `json:"repo_commit_sha"`
}

// SourceRevisionConfigRequest holds the fields of spec 2.3 as they are asked for.
type SourceRevisionConfigRequest struct {
	RepoRef              *string `json:"repo_ref"`
	AgentgraphConfigPath *string `json:"agentgraph_config_path"`
	ImageURI             *string `json:"image_uri"`
	SourceTarballPath    *string `json:"source_tarball_path"`
}

// Secret is an environment variable (spec 2.5).
type Secret struct {
	Name  string `json:"name" required:"true"`
	Value string `json:"value" required:"true"`
}

// SecretReference fills an environment variable from a cluster secret (spec 2.5).
type SecretReference struct {
	Name       string `json:"name" required:"true"`
	SecretName string `json:"secret_name" required:"true"`
	SecretKey  string `json:"secret_key" required:"true"`
}

// DeploymentCreateRequest is the body of POST /v2/deployments (control-plane reference 3).
type DeploymentCreateRequest struct {
	Name                 string                      `json:"name" required:"true"`
	DisplayName          *string                     `json:"display_name" doc:"what people call it; not unique, cannot be cleared"`
	Source               string                      `json:"source" required:"true" enum:"githost,external_container,internal_container,internal_source,internal_template"`
	SourceConfig         SourceConfig                `json:"source_config" required:"true"`
	SourceRevisionConfig SourceRevisionConfigRequest `json:"source_revision_config" required:"true"`
	Secrets              []Secret                    `json:"secrets" required:"true" nullable:"false"`
	SecretReferences     *[]SecretReference          `json:"secret_references"`
}

// DeploymentPatchRequest is the body of PATCH and of POST revisions (spec 4.1).
type DeploymentPatchRequest struct {
	RevisionSource       *string                      `json:"revision_source" enum:"githost,internal_container,internal_source"`
	SourceConfig         *SourceConfig                `json:"source_config"`
	SourceRevisionConfig *SourceRevisionConfigRequest `json:"source_revision_config"`
	Secrets              *[]Secret                    `json:"secrets"`
	SecretReferences     *[]SecretReference           `json:"secret_references"`
	DisplayName          *string                      `json:"display_name" doc:"what people call it; not unique, cannot be cleared"`
}

// DeploymentsList is one page of deployments; offset is that of the next page.
type DeploymentsList struct {
	Resources []Deployment `json:"resources" required:"true" nullable:"false"`
	Offset    int          `json:"offset" required:"true"`
}

// Revision is the answer about a revision (control-plane reference 3).
type Revision struct {
	ID                   string               `json:"id" required:"true" format:"uuid"`
	CreatedAt            time.Time            `json:"created_at" required:"true"`
	UpdatedAt            time.Time            `json:"updated_at" required:"true"`
	Status               string               `json:"status" required:"true" enum:"CREATING,QUEUED,AWAITING_BUILD,BUILDING,AWAITING_DEPLOY,DEPLOYING,DEPLOYED,CREATE_FAILED,BUILD_FAILED,DEPLOY_FAILED,SKIPPED,INTERRUPTED,UNKNOWN"`
	Source               string               `json:"source" required:"true" enum:"githost,external_container,internal_container,internal_source,internal_template"`
	SourceRevisionConfig SourceRevisionConfig `json:"source_revision_config" required:"true"`
	DeploymentID         string               `json:"deployment_id" required:"true" format:"uuid"`
	StatusReason         *string              `json:"status_reason" required:"true"`
	StatusMessage        *string              `json:"status_message" required:"true"`
	SourceConfig         SourceConfig         `json:"source_config" required:"true"`
	ArtifactDigest       *string              `json:"artifact_digest" required:"true"`
	ReplayOf             *string              `json:"replay_of" required:"true" format:"uuid"`
	CreatedBy            string               `json:"created_by" required:"true"`
}

// RevisionsList is one page of revisions; offset is that of the next page.
type RevisionsList struct {
	Resources []Revision `json:"resources" required:"true" nullable:"false"`
	Offset    int        `json:"offset" required:"true"`
}

// RevisionEvent is one step of a revision's life.
type RevisionEvent struct {
	Seq    int64     `json:"seq" required:"true"`
	Status string    `json:"status" required:"true" enum:"CREATING,QUEUED,AWAITING_BUILD,BUILDING,AWAITING_DEPLOY,DEPLOYING,DEPLOYED,CREATE_FAILED,BUILD_FAILED,DEPLOY_FAILED,SKIPPED,INTERRUPTED,UNKNOWN"`
	Reason *string   `json:"reason" required:"true"`
	At     time.Time `json:"at" required:"true"`
}

func (c SourceConfig) domain() slipway.SourceConfig {
	out := slipway.SourceConfig{
		IntegrationID: c.IntegrationID, RepoURL: c.RepoURL, DeploymentType: c.DeploymentType, BuildOnPush: c.BuildOnPush,
		CustomURL: c.CustomURL, ResourceSpec: c.ResourceSpec, ListenerID: c.ListenerID, InstallCommand: c.InstallCommand,
		BuildCommand: c.BuildCommand, TemplateID: c.TemplateID,
	}
	if c.ListenerConfig != nil {
		out.ListenerConfig = &slipway.ListenerConfig{ClusterNamespace: c.ListenerConfig.ClusterNamespace}
	}
	return out
}

func (c SourceRevisionConfigRequest) domain() slipway.SourceRevisionConfig {
	return slipway.SourceRevisionConfig{
		RepoRef: c.RepoRef, AgentgraphConfigPath: c.AgentgraphConfigPath, ImageURI: c.ImageURI, SourceTarballPath: c.SourceTarballPath,
	}
}

func (r DeploymentCreateRequest) domain() slipway.DeploymentCreate {
	return slipway.DeploymentCreate{
		Name: r.Name, DisplayName: value(r.DisplayName), Source: slipway.Source(r.Source), SourceConfig: r.SourceConfig.domain(),
		SourceRevisionConfig: r.SourceRevisionConfig.domain(), Secrets: secrets(r.Secrets), SecretReferences: references(r.SecretReferences),
	}
}

func (r DeploymentPatchRequest) domain() slipway.DeploymentPatch {
	out := slipway.DeploymentPatch{SecretReferences: references(r.SecretReferences), DisplayName: r.DisplayName}
	if r.RevisionSource != nil {
		source := slipway.Source(*r.RevisionSource)
		out.RevisionSource = &source
	}
	if r.SourceConfig != nil {
		out.SourceConfig = r.SourceConfig.domain()
	}
	if r.SourceRevisionConfig != nil {
		out.SourceRevisionConfig = r.SourceRevisionConfig.domain()
	}
	if r.Secrets != nil {
		list := secrets(*r.Secrets)
		out.Secrets = &list
	}
	return out
}

func secrets(in []Secret) []slipway.Secret {
	out := make([]slipway.Secret, len(in))
	for i, s := range in {
		out[i] = slipway.Secret{Name: s.Name, Value: s.Value}
	}
	return out
}

func references(in *[]SecretReference) *[]slipway.SecretReference {
	if in == nil {
		return nil
	}
	out := make([]slipway.SecretReference, len(*in))
	for i, r := range *in {
		out[i] = slipway.SecretReference{Name: r.Name, SecretName: r.SecretName, SecretKey: r.SecretKey}
	}
	return &out
}

// shown makes the answer. custom_url is filled for every source when nobody set it: clients print it.
func (a *api) shown(d control.Deployment) Deployment {
	out := Deployment{
		Name: d.Name, Source: string(d.Source), SourceConfig: a.config(d.SourceConfig, a.svc.Slug(d.Deployment)),
		SourceRevisionConfig: revisionConfig(d.SourceRevisionConfig), Secrets: []Secret{}, ID: d.ID, TenantID: d.TenantID,
		CreatedAt: d.CreatedAt.UTC(), UpdatedAt: d.UpdatedAt.UTC(), Status: string(d.Status),
		LatestRevisionID: orNull(d.LatestRevisionID), ActiveRevisionID: orNull(d.ActiveRevisionID), ImageVersion: orNull(d.ImageVersion),
		DisplayName: orNull(d.DisplayName), DeploymentTier: orNull(string(d.ComputeTier)), ComputeTier: orNull(string(d.ComputeTier)),
		DatabaseTier: orNull(string(d.DatabaseTier)), DeletedAt: timeOrNull(d.DeletedAt), TornDownAt: timeOrNull(d.TornDownAt),
		PurgeAt: timeOrNull(d.PurgeAt),
	}
	out.URL = out.SourceConfig.CustomURL
	for _, s := range d.Secrets {
		out.Secrets = append(out.Secrets, Secret{Name: s.Name, Value: s.Value})
	}
	for _, r := range d.SecretReferences {
		out.SecretReferences = append(out.SecretReferences, SecretReference{Name: r.Name, SecretName: r.SecretName, SecretKey: r.SecretKey})
	}
	return out
}

// config makes the answer; without a slug custom_url stays as it was set.
func (a *api) config(c slipway.SourceConfig, slug string) SourceConfig {
	out := SourceConfig{
		IntegrationID: c.IntegrationID, RepoURL: c.RepoURL, DeploymentType: c.DeploymentType, BuildOnPush: c.BuildOnPush,
		CustomURL: c.CustomURL, ResourceSpec: c.ResourceSpec, ListenerID: c.ListenerID, InstallCommand: c.InstallCommand,
		BuildCommand: c.BuildCommand, TemplateID: c.TemplateID,
	}
	if c.ListenerConfig != nil {
		out.ListenerConfig = &ListenerConfig{ClusterNamespace: c.ListenerConfig.ClusterNamespace}
	}
	if out.CustomURL == nil && slug != "" {
		url := a.cfg.BaseURL + "/d/" + slug
		out.CustomURL = &url
	}
	return out
}

func revisionConfig(c slipway.SourceRevisionConfig) SourceRevisionConfig {
	return SourceRevisionConfig{
		SourceRevisionConfigRequest: SourceRevisionConfigRequest{
			RepoRef: c.RepoRef, AgentgraphConfigPath: c.AgentgraphConfigPath, ImageURI: c.ImageURI, SourceTarballPath: c.SourceTarballPath,
		},
		RepoCommitSHA: c.RepoCommitSHA,
	}
}

func (a *api) revision(r slipway.Revision) Revision {
	out := Revision{
		ID: r.ID, CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC(), Status: string(r.Status), Source: string(r.Source),
		SourceRevisionConfig: revisionConfig(r.SourceRevisionConfig), DeploymentID: r.DeploymentID,
		StatusReason: orNull(r.StatusReason), StatusMessage: orNull(r.StatusReason), SourceConfig: a.config(r.SourceConfig, ""),
		ArtifactDigest: orNull(r.ArtifactDigest), ReplayOf: orNull(r.ReplayOf), CreatedBy: r.CreatedBy,
	}
	if !r.Source.Built() {
		out.SourceConfig.ImageDigest = out.ArtifactDigest
	}
	return out
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
