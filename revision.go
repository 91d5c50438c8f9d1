package slipway

import "time"

// RevisionStatus is where a revision stands on its way to serving (spec 3; control-plane reference 4).
type RevisionStatus string

// The statuses of a revision. The table of moves is in revision_lifecycle.go.
const (
	Creating       RevisionStatus = "CREATING"
	Queued         RevisionStatus = "QUEUED"
	AwaitingBuild  RevisionStatus = "AWAITING_BUILD"
	Building       RevisionStatus = "BUILDING"
	AwaitingDeploy RevisionStatus = "AWAITING_DEPLOY"
	Deploying      RevisionStatus = "DEPLOYING"
	Deployed       RevisionStatus = "DEPLOYED"
	CreateFailed   RevisionStatus = "CREATE_FAILED"
	BuildFailed    RevisionStatus = "BUILD_FAILED"
	DeployFailed   RevisionStatus = "DEPLOY_FAILED"
	Skipped        RevisionStatus = "SKIPPED"
	Interrupted    RevisionStatus = "INTERRUPTED"
	StatusUnknown  RevisionStatus = "UNKNOWN"
)

// Revision is an immutable blueprint of a deployment and the record of bringing it to life (architecture 4).
type Revision struct {
	ID           string // uuid
	DeploymentID string
	TenantID     string
	Number       int64 // 1, 2, 3 … within the deployment
	Status       RevisionStatus
	StatusReason string // one readable sentence; "" while all is well

	// The blueprint: fixed when the revision is made, but for what the build finds out (commit, digest).
	Source               Source
	SourceConfig         SourceConfig
	SourceRevisionConfig SourceRevisionConfig
	SecretReferences     []SecretReference
	SecretSetID          string // the secrets it runs with
	BuildSecretSetID     string // the values of the .env file its build read, sealed like secrets; "" = none
	ArtifactDigest       string // "sha256:…"; "" until built
	ComputeTier          Tier   // of the deployment when the revision was made; "" = none
	DatabaseTier         Tier
	ReplayOf             string // the revision whose blueprint this one repeats; "" = none

	CreatedBy            string // principal
	RequestKey           string // keyed hash of the request that made it, by which its repetition is known; "" = none
	CreatedAt, UpdatedAt time.Time

	// Lease of whoever builds it now; the builder's reports carry LeaseEpoch and older ones are refused.
	LeaseOwner   string
	LeaseEpoch   int64
	LeaseExpires time.Time
}

// RevisionEvent is one step of a revision's life, kept forever with it.
type RevisionEvent struct {
	RevisionID string
	Seq        int64
	Status     RevisionStatus
	Reason     string
	At         time.Time
}

// LogKind tells build logs from those of the running agent server.
type LogKind string

// The kinds of log.
const (
	LogBuild  LogKind = "build"
	LogDeploy LogKind = "deploy"
)

// LogEntry is one line of a revision's build or deploy log (control-plane reference 2, 3).
type LogEntry struct {
	Seq          int64 // assigned by the store; rising within the deployment
	DeploymentID string
	RevisionID   string
	Kind         LogKind
	At           time.Time
	Level        string // DEBUG, INFO, WARNING, ERROR, CRITICAL
	Message      string // one line, redacted, at most MaxLogLine bytes
}

// MaxLogLine is the longest log line kept, in bytes; the rest of a longer one is cut off with a mark.
const MaxLogLine = 16 << 10

// Upload is a slot for a source tarball: signed, single-use, expiring (control-plane reference 5).
type Upload struct {
	ID           string
	DeploymentID string
	TenantID     string
	ObjectPath   string // what a client sends back as source_tarball_path
	ExpiresAt    time.Time
	UploadedAt   time.Time // zero = nothing arrived yet
	Size         int64     // bytes
	Digest       string    // "sha256:…" of the stored archive, its key in the blob store
	// CollectedAt is when the archive was given up, as no revision needed it; zero = it is stored.
	CollectedAt time.Time `json:",omitzero"`
}

// Stored says whether an archive has arrived and is there still.
func (u Upload) Stored() bool { return u.Digest != "" && u.CollectedAt.IsZero() }
