package slipway

import "time"

// Source says where a deployment's code comes from (spec 2.1).
type Source string

// The sources of spec 2.1.
const (
	SourceGithost           Source = "githost"
	SourceExternalContainer Source = "external_container"
	SourceInternalContainer Source = "internal_container"
	SourceInternalSource    Source = "internal_source"
	SourceInternalTemplate  Source = "internal_template"
)

// DeploymentStatus is where a deployment stands (spec 2.1, 3; control-plane reference 4).
type DeploymentStatus string

// The statuses of a deployment.
const (
	DeploymentAwaitingDatabase DeploymentStatus = "AWAITING_DATABASE"
	DeploymentReady            DeploymentStatus = "READY"
	DeploymentUnused           DeploymentStatus = "UNUSED"
	DeploymentAwaitingDelete   DeploymentStatus = "AWAITING_DELETE"
	DeploymentUnknown          DeploymentStatus = "UNKNOWN"
)

// DeploymentStatuses lists all statuses, as DeploymentQuery takes them.
func DeploymentStatuses() []string {
	return []string{
		string(DeploymentAwaitingDatabase), string(DeploymentReady), string(DeploymentUnused), string(DeploymentAwaitingDelete),
		string(DeploymentUnknown),
	}
}

// Deployment is an agent server with a name, built from one source, that goes through revisions (spec 2.1).
type Deployment struct {
	ID       string // uuid
	TenantID string // uuid of the owner
	Name     string // unique in the tenant, immutable
	Source   Source // immutable
	Status   DeploymentStatus

	// SourceConfig is the current configuration; SourceRevisionConfig repeats the latest revision's (spec 2.1).
	SourceConfig         SourceConfig
	SourceRevisionConfig SourceRevisionConfig
	SecretReferences     []SecretReference // nil = none
	SecretSetID          string            // the current secrets; also those set before the first revision; "" = none

	LatestRevisionID string // "" = none yet
	ActiveRevisionID string // "" = nothing serves
	ImageVersion     string // "" = unknown
	TracingProjectID string // the tracing project of the same name (spec 2.1)

	// Unreachable says that its listener is offline, so that nobody knows how it fares.
	Unreachable bool

	// Generation rises by one with every change of desired state. Executors send it back with their reports; a report
	// that bears an older one is refused, so that no stale executor moves a deployment backwards.
	Generation int64

	// DisplayName is what people call it: settable, not unique (control-plane reference 3); "" = the name.
	DisplayName string
	// The tiers size a deployment whose source has no resource_spec (control-plane reference 2, 8); "" = the runtime's own
	// defaults. DatabaseTier is "" while the database is shared.
	ComputeTier, DatabaseTier Tier

	CreatedAt, UpdatedAt time.Time

	// What happens to a deleted deployment; all zero = not deleted. Set by Deleted, Advanced, Purge and TornDown.
	DeletedAt  time.Time
	TearDownAt time.Time // when its workloads are told to end
	TornDownAt time.Time // when the data plane said they have; zero = not yet
	PurgeAt    time.Time // when data, records and name go
	Retired    bool      // its workloads are told to end
	Purging    bool      // its data is told to go; final
}

// SourceConfig holds the fields that make no revision or cannot be changed (spec 2.2). Nil means null.
type SourceConfig struct {
	IntegrationID  *string         `json:"integration_id"`
	RepoURL        *string         `json:"repo_url"`
	DeploymentType *string         `json:"deployment_type"`
	BuildOnPush    *bool           `json:"build_on_push"`
	CustomURL      *string         `json:"custom_url"`
	ResourceSpec   *ResourceSpec   `json:"resource_spec"`
	ListenerID     *string         `json:"listener_id"`
	ListenerConfig *ListenerConfig `json:"listener_config"`
	InstallCommand *string         `json:"install_command"`
	BuildCommand   *string         `json:"build_command"`
	TemplateID     *string         `json:"template_id,omitempty"`
}

// ListenerConfig places a deployment inside its listener's data plane (spec 2.2).
type ListenerConfig struct {
	ClusterNamespace *string `json:"cluster_namespace"`
}

// SourceRevisionConfig holds the fields whose change makes a revision (spec 2.3). Nil means null.
type SourceRevisionConfig struct {
	RepoRef              *string `json:"repo_ref"`
	AgentgraphConfigPath *string `json:"agentgraph_config_path"`
	ImageURI             *string `json:"image_uri"`
	SourceTarballPath    *string `json:"source_tarball_path"`
	RepoCommitSHA        *string `json:"repo_commit_sha"` // read-only
}

// Secret is an environment variable of the graph's process (spec 2.5). The value is in clear only between the edge and
// the sealer, and again in the runtime's environment.
type Secret struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// SecretReference fills an environment variable from an existing cluster secret (spec 2.5).
type SecretReference struct {
	Name       string `json:"name"`
	SecretName string `json:"secret_name"`
	SecretKey  string `json:"secret_key"`
}

// SealedSecret is a Secret at rest: the value is encrypted and bound to tenant, deployment and name.
type SealedSecret struct {
	Name   string
	Sealed []byte
}

// SecretSet is one immutable version of a deployment's secrets; a revision names the version it runs with.
type SecretSet struct {
	ID           string // uuid
	DeploymentID string
	TenantID     string
	Secrets      []SealedSecret
	CreatedAt    time.Time
}
