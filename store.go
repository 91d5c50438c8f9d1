package slipway

import (
	"context"
	"time"
)

// Store keeps the control service's records. Implementations pass store/storetest.
type Store interface {
	// Update runs fn in one serialisable write transaction and returns once its effects are durable. An error from fn
	// rolls everything back and is returned as it is. fn may run again after a conflict, so it has no other effects.
	// Transactions of several callers may share one fsync, never their fate.
	Update(ctx context.Context, fn func(tx Tx) error) error
	// View runs fn on one consistent snapshot. Writing methods of its Tx fail with CodeInternal.
	View(ctx context.Context, fn func(tx Tx) error) error
	// AppendLogs stores log lines in order, filling Seq; it may group them with other writes and returns when durable.
	AppendLogs(ctx context.Context, entries []LogEntry) error
}

// Tx is one transaction of a Store. Every getter of one thing answers CodeNotFound with a readable sentence when there is
// none. A tenant id, where a method takes one, is part of the condition; "" means any and is for executors only.
type Tx interface {
	Deployment(tenantID, id string) (Deployment, error)
	// DeploymentByName finds also deployments awaiting deletion: their name stays reserved.
	DeploymentByName(tenantID, name string) (Deployment, error)
	Deployments(q DeploymentQuery) ([]Deployment, error)
	DeploymentRecords
	IdempotencyRecords
	LogRecords
	PutDeployment(d Deployment) error // insert or replace by ID; CodeConflict if the name is taken
	PurgeDeployment(id string) error  // removes it with everything that hangs on it

	Revision(tenantID, deploymentID, id string) (Revision, error)
	Revisions(q RevisionQuery) ([]Revision, error)
	PutRevision(r Revision) error
	// ClaimBuild returns the next revision to build of the tenant ("" = of any): one in AWAITING_BUILD, or in BUILDING with a
	// lease expired at now. Tenants take turns: the one with the fewest builds under way goes first, then the one whose last
	// turn (TakeBuildTurn) is longest ago, then the oldest revision. CodeNotFound without one.
	ClaimBuild(tenantID string, now time.Time) (Revision, error)
	ArtifactRecords
	AppendRevisionEvent(e RevisionEvent) error // fills Seq
	RevisionEvents(revisionID string) ([]RevisionEvent, error)

	PutSecretSet(s SecretSet) error
	SecretSet(id string) (SecretSet, error)
	// SecretSets returns those of the sets that exist, in no order.
	SecretSets(ids []string) ([]SecretSet, error)

	Logs(q LogQuery) ([]LogEntry, error)

	PutUpload(u Upload) error
	Upload(id string) (Upload, error)
	UploadByPath(deploymentID, objectPath string) (Upload, error)

	TenantRecords
	APIKeyRecords
	AuditRecords
	TracingProjectRecords
	IntegrationRecords
	ListenerRecords
	WebhookRecords
}

// DeploymentQuery selects deployments, newest first (exact matches of NameContains before the others).
type DeploymentQuery struct {
	TenantID     string   // "" = every tenant
	Name         string   // exact; "" = any
	NameContains string   // case-insensitive substring, taken literally; "" = any
	Statuses     []string // empty = all but AWAITING_DELETE
	IDs          []string // empty = any
	ImageVersion string   // "" = any
	Type         string   // source_config.deployment_type; "" = any
	Integration  string   // source_config.integration_id; "" = any
	Listener     *string  // source_config.listener_id, "" = those without one; nil = any
	Remote       *bool    // whether they have a listener_id; nil = any
	Limit        int      // 0 = no bound, for executors
	Offset       int
}

// RevisionQuery selects revisions, newest first.
type RevisionQuery struct {
	TenantID     string
	DeploymentID string // "" = of every deployment, for executors
	Statuses     []RevisionStatus
	Limit        int // 0 = no bound
	Offset       int
}

// LogQuery selects log lines of one deployment by Seq.
type LogQuery struct {
	DeploymentID string
	RevisionID   string // "" = all revisions
	Kind         LogKind
	After        int64     // only Seq > After when ascending, Seq < After when descending; 0 = from the end it starts at
	From, To     time.Time // inclusive bounds on At; zero = open
	Level        string    // exact; "" = any
	Contains     string    // case-insensitive substring; "" = any
	RunID        string    // only lines that name the run as run_id=ID; "" = any
	Descending   bool
	Limit        int
}

// Sealer encrypts secrets at rest. It is safe for concurrent use.
type Sealer interface {
	// Seal encrypts value so that only Open with the same tenant, deployment and name gives it back.
	Seal(tenantID, deploymentID, name, value string) ([]byte, error)
	// Open is Seal's inverse; anything altered or moved fails.
	Open(tenantID, deploymentID, name string, sealed []byte) (string, error)
}

// Clock tells the time; the ground never does.
type Clock func() time.Time

// IDs makes a new UUIDv7 as text.
type IDs func() string
