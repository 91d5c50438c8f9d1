package slipway

import (
	"context"
	"io"
	"time"
)

// BuildQueue hands out revisions that wait for a build. One builder holds a revision at a time, by lease; every report
// carries the job and is refused with CodeStale once the lease went to somebody else or the revision was interrupted.
type BuildQueue interface {
	// Claim blocks until there is a job or ctx ends. The revision is then BUILDING.
	Claim(ctx context.Context, owner string) (BuildJob, error)
	// Renew extends the lease. A builder calls it every few seconds and stops, killing everything, on CodeStale.
	Renew(ctx context.Context, job BuildJob) error
	// Log stores build-log lines as they come.
	Log(ctx context.Context, job BuildJob, entries []LogEntry) error
	// Complete records the artifact: the revision is AWAITING_DEPLOY.
	Complete(ctx context.Context, job BuildJob, result BuildResult) error
	// Fail ends the revision with BUILD_FAILED and the reason, one sentence a user can act on.
	Fail(ctx context.Context, job BuildJob, reason string) error
}

// BuildJob is one revision to build.
type BuildJob struct {
	RevisionID   string
	DeploymentID string
	TenantID     string
	Name         string // of the deployment
	Owner        string
	Epoch        int64 // of the lease

	Source         Source
	RepoURL        string // githost
	RepoRef        string // githost: branch, or refs/tags/…; "" = the default branch
	CommitSHA      string // githost: set = exactly this commit (a replay, or a push)
	IntegrationID  string // githost: whose credentials Clone are; "" = none
	TarballDigest  string // internal_source: key in the blob store
	TemplateID     string // internal_template
	ConfigPath     string // of the graph configuration inside the source; "" = agentgraph.json, else langgraph.json
	InstallCommand string
	BuildCommand   string

	// Clone is what the repository is fetched with; zero = nothing but what the builder's own account has.
	Clone CloneCredentials

	// Redact lists the deployment's secret values; they are removed from the build log. Builds never receive them.
	Redact []string
}

// BuildResult is what a build found out.
type BuildResult struct {
	ArtifactDigest string // "sha256:…"
	CommitSHA      string // githost
	// Parts are what another machine makes the artifact from; nil = it lies where it will run.
	Parts []ArtifactPart
	// EnvFile holds the variables of a .env file named by the configuration; they are treated as secrets.
	EnvFile map[string]string
}

// Blob keeps immutable byte strings under their digest ("sha256:<hex>"). Implementations pass blob/blobtest.
type Blob interface {
	// Put stores what r yields, at most limit bytes (CodeTooLarge beyond), and returns digest and size once durable.
	// Storing the same bytes again is no error.
	Put(ctx context.Context, r io.Reader, limit int64) (digest string, size int64, err error)
	// Open returns the bytes; CodeNotFound without them.
	Open(ctx context.Context, digest string) (io.ReadCloser, error)
	// Touch says that the bytes are needed, as Put does: Expire leaves them. CodeNotFound without them.
	Touch(ctx context.Context, digest string) error
	// Delete removes them; absent ones are no error.
	Delete(ctx context.Context, digest string) error
	// Expire removes them unless Put or Touch was called for them after before, and says whether they are gone. It is safe
	// beside both: whoever of them succeeds first is heeded.
	Expire(ctx context.Context, digest string, before time.Time) (bool, error)
	// List calls fn for everything that is stored until fn returns an error, which it returns.
	List(ctx context.Context, fn func(BlobInfo) error) error
}

// BlobInfo describes what is stored under a digest.
type BlobInfo struct {
	Digest string
	Size   int64     // bytes
	UsedAt time.Time // of the last Put or Touch
}
