package slipway

import (
	"context"
	"time"
)

// Feed is a listener's line to the control service; in-process on one machine, HTTP elsewhere. The control service never
// dials a data plane.
type Feed interface {
	// Desired returns the desired state of this data plane and a cursor: all of it without a cursor. Given the cursor of an
	// earlier answer it blocks until something changed since, or until ctx ends, and may answer a partial state.
	Desired(ctx context.Context, cursor string) (DesiredState, error)
	// Report tells what became of a revision or a deployment. CodeStale: Generation is no longer the current one; the
	// listener reads Desired again and forgets the report.
	Report(ctx context.Context, r Report) error
	// AppendLogs delivers lines of running agent servers, already redacted.
	AppendLogs(ctx context.Context, entries []LogEntry) error
}

// DesiredState is what a data plane should look like. Every deployment that is not in it, and not left out of a partial one,
// is none of this data plane's any more.
type DesiredState struct {
	Cursor      string
	Deployments []DesiredDeployment
	// Partial says that only the deployments which may have changed since the given cursor are in it; the others are as they
	// were.
	Partial bool
	Absent  []string // in a partial state: ids of deployments that are none of this data plane's any more
}

// DesiredDeployment is what should run of one deployment.
type DesiredDeployment struct {
	DeploymentID string
	TenantID     string
	Name         string
	Slug         string // the last part of its address (see Slug); "" = as Name
	Namespace    string // of the cluster, where the deployment is placed; "" = the data plane's own choice
	Generation   int64
	Active       *Blueprint // the revision that serves; nil = none yet
	Candidate    *Blueprint // the revision in AWAITING_DEPLOY or DEPLOYING; nil = none
	// Retired says that it is deleted but may be restored: keep no workload and route nothing, keep the data, then report
	// Gone. Active and Candidate are nil then.
	Retired bool
	Deleted bool // tear everything down and destroy the data, then report Gone
}

// Route is the name that requests for the deployment come under.
func (d DesiredDeployment) Route() string {
	if d.Slug == "" {
		return d.Name
	}
	return d.Slug
}

// Blueprint is all a runtime needs to run a revision (architecture 4).
type Blueprint struct {
	RevisionID     string
	Number         int64
	ArtifactDigest string
	// Image is the container image to run, pinned by its digest where that is known; "" = the artifact is a bundle.
	Image string
	// Env is the complete environment of the graph's process: configuration, then .env file, then secrets. Secret.
	Env map[string]string
	// Redact lists the values in Env that are secret and must not reach a log line.
	Redact []string
	// Resources is the resource spec after defaults; nil = the runtime's own defaults.
	Resources *ResourceSpec
	// SecretReferences are variables that the cluster fills from secrets of its own (spec 2.5).
	SecretReferences []SecretReference
	// Broken is why the revision cannot be started though it should run (its secrets cannot be opened), one sentence a
	// user can act on; "" = it can. Env and Redact are nil then. What runs of it already goes on.
	Broken string
}

// Report is what a listener found out, fenced by the generation of the desired state it acted on.
type Report struct {
	DeploymentID string
	Generation   int64
	RevisionID   string         // "" with Gone
	Status       RevisionStatus // DEPLOYING, DEPLOYED or DEPLOY_FAILED; DEPLOYED makes the revision active
	Reason       string         // one sentence, with exit code, last probe answer and last log lines where there are any
	Gone         bool           // what a retired or deleted deployment was told to end has ended
}

// Phase is how a workload looks from outside.
type Phase string

// The phases of a workload.
const (
	PhaseStarting Phase = "starting" // runs, not ready yet
	PhaseReady    Phase = "ready"    // API and queue answer and every graph loads
	PhaseDraining Phase = "draining" // was told to finish; takes no new work
	PhaseExited   Phase = "exited"   // no process any more
)

// Workload is a revision as a runtime is asked to run it.
type Workload struct {
	DeploymentID string
	TenantID     string
	Name         string // of the deployment
	Blueprint
}

// Observed is what a runtime sees of one workload.
type Observed struct {
	DeploymentID string
	RevisionID   string
	Phase        Phase
	Endpoint     string    // base URL of the agent server, "" until known
	StartedAt    time.Time // of the current attempt
	ExitedAt     time.Time // with PhaseExited
	ExitCode     int       // with PhaseExited; -1 = killed by a signal
	Restarts     int       // attempts after the first since it last stayed up for a while
	Probe        string    // last health answer while not ready, e.g. "GET /ok: connection refused" or "503 {...}"
	Failure      string    // why it can never become ready (a graph that does not import); "" = not known to be hopeless
	LastLines    []string  // last log lines, redacted, at most MaxLastLines
	DrainUntil   time.Time // with PhaseDraining: when its grace is over and it may be removed
}

// MaxLastLines is how many log lines an Observed carries.
const MaxLastLines = 20

// Runtime runs revisions on some engine. Methods may be called concurrently for different deployments, never for the
// same. Implementations pass runtime/runtimetest.
type Runtime interface {
	// Ensure brings the workload up, or up again after an exit. It is idempotent: for a workload that runs it does
	// nothing. It returns as soon as the engine accepted the work; progress is seen through Observe. An error that
	// retrying cannot mend has code CodeInvalid.
	Ensure(ctx context.Context, w Workload) error
	// Observe returns what there is of a deployment, in no particular order; nothing is no error.
	Observe(ctx context.Context, deploymentID string) ([]Observed, error)
	// Drain asks a workload to take no new work, to finish or hand back its runs within its grace period, and to exit.
	// It returns at once and is idempotent; an unknown workload is no error.
	Drain(ctx context.Context, deploymentID, revisionID string) error
	// Remove ends a workload with all its processes and forgets it. It is idempotent.
	Remove(ctx context.Context, deploymentID, revisionID string) error
	// Destroy removes what is left of a deployment whose workloads are all removed: its data.
	Destroy(ctx context.Context, deploymentID string) error
	// Recover adopts what this runtime started before a restart of slipway. It starts and stops nothing.
	Recover(ctx context.Context) ([]Observed, error)
	// Changes yields the id of a deployment whenever what Observe would say about it changed. Ids may be merged, never lost.
	Changes() <-chan string
}

// Router sends requests for a deployment to the revision that serves it.
type Router interface {
	// Route makes endpoint the one that new requests for the deployment go to; requests in flight stay where they are.
	// With an empty endpoint the deployment is known but nothing serves it: new requests wait for the next Route.
	Route(name, deploymentID, revisionID, endpoint string)
	// Unroute forgets the deployment.
	Unroute(deploymentID string)
}
