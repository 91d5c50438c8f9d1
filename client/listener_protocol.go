package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// ListenerState is what should run on a listener's data plane (control-plane reference 8). It holds secrets in clear.
type ListenerState struct {
	Cursor      string              `json:"cursor"`  // for the next call
	Partial     bool                `json:"partial"` // only what changed since the cursor is in it
	Deployments []DesiredDeployment `json:"deployments"`
	Absent      []string            `json:"absent"` // in a partial state: deployments that are none of this listener's any more
}

// DesiredDeployment is what should run of one deployment.
type DesiredDeployment struct {
	DeploymentID     string           `json:"deployment_id"`
	TenantID         string           `json:"tenant_id"`
	Name             string           `json:"name"`
	ClusterNamespace *string          `json:"cluster_namespace"` // nil = the listener's own choice
	Generation       int64            `json:"generation"`        // comes back with every report
	Active           *DesiredRevision `json:"active"`            // nil = none yet
	Candidate        *DesiredRevision `json:"candidate"`         // nil = none
	Deleted          bool             `json:"deleted"`           // tear everything down, then report gone
	Retired          bool             `json:"retired"`           // keep no workload but the data, then report gone
}

// DesiredRevision is all that is needed to run a revision.
type DesiredRevision struct {
	RevisionID       string            `json:"revision_id"`
	Number           int64             `json:"number"`
	ArtifactDigest   string            `json:"artifact_digest"` // "" for an image
	Image            *string           `json:"image"`           // nil for a built artifact
	Env              map[string]string `json:"env"`
	Redact           []string          `json:"redact"` // values that must not reach a log line
	Resources        *ResourceSpec     `json:"resources"`
	SecretReferences []SecretReference `json:"secret_references"`
	Broken           *string           `json:"broken"` // why it cannot be started; nil = it can
}

// ListenerReport says what became of a revision, or with Gone that nothing is left of a deleted deployment.
type ListenerReport struct {
	DeploymentID string  `json:"deployment_id"`
	Generation   int64   `json:"generation"` // of the state that was acted on; an older one is a 409
	RevisionID   *string `json:"revision_id,omitempty"`
	Status       *string `json:"status,omitempty"` // DEPLOYING, DEPLOYED or DEPLOY_FAILED
	Reason       *string `json:"reason,omitempty"`
	Probe        *string `json:"probe,omitempty"`
	Gone         bool    `json:"gone,omitempty"`
}

// ListenerLog is one log line of a running agent server, redacted.
type ListenerLog struct {
	DeploymentID string    `json:"deployment_id"`
	RevisionID   string    `json:"revision_id"`
	Timestamp    time.Time `json:"timestamp"`
	Level        string    `json:"level"`
	Message      string    `json:"message"`
}

// DeploymentMetrics is what was last measured of a deployment.
type DeploymentMetrics struct {
	DeploymentID  string    `json:"deployment_id"`
	RevisionID    *string   `json:"revision_id,omitempty"` // nil = all that runs
	Timestamp     time.Time `json:"timestamp"`
	Replicas      int       `json:"replicas"`
	ReadyReplicas int       `json:"ready_replicas"`
	Restarts      int       `json:"restarts"`
	CPUCores      float64   `json:"cpu_cores"`
	MemoryMB      float64   `json:"memory_mb"`
}

// Accepted counts what was kept of a delivery and what was not this listener's.
type Accepted struct {
	Accepted int `json:"accepted"`
	Dropped  int `json:"dropped"`
}

// ListenerState fetches what should run. With the cursor of the state before it waits for a change, at most so many seconds;
// keep them below the 30 that bound every call.
func (c *Client) ListenerState(ctx context.Context, id, cursor string, wait int) (ListenerState, error) {
	q := url.Values{"wait": {strconv.Itoa(wait)}}
	text(q, "cursor", cursor)
	var out ListenerState
	err := c.do(ctx, http.MethodGet, listenerPath(id)+"/state", q, nil, &out)
	return out, err
}

// ReportListenerStatus reports what became of a revision or a deployment.
func (c *Client) ReportListenerStatus(ctx context.Context, id string, in ListenerReport) error {
	return c.do(ctx, http.MethodPost, listenerPath(id)+"/reports", nil, in, nil)
}

// AppendListenerLogs delivers up to 1000 log lines.
func (c *Client) AppendListenerLogs(ctx context.Context, id string, lines []ListenerLog) (Accepted, error) {
	var out Accepted
	err := c.do(ctx, http.MethodPost, listenerPath(id)+"/logs", nil, map[string]any{"entries": lines}, &out)
	return out, err
}

// PutListenerMetrics delivers what was measured, one sample for each of up to 1000 deployments.
func (c *Client) PutListenerMetrics(ctx context.Context, id string, samples []DeploymentMetrics) (Accepted, error) {
	var out Accepted
	err := c.do(ctx, http.MethodPost, listenerPath(id)+"/metrics", nil, map[string]any{"samples": samples}, &out)
	return out, err
}

// DeploymentMetrics reads what was last measured of a deployment; found is false while nothing was.
func (c *Client) DeploymentMetrics(ctx context.Context, deploymentID string) (m DeploymentMetrics, found bool, err error) {
	var out struct {
		Metrics *DeploymentMetrics `json:"metrics"`
	}
	err = c.do(ctx, http.MethodGet, "/v2/deployments/"+url.PathEscape(deploymentID)+"/metrics", nil, nil, &out)
	if out.Metrics != nil {
		m, found = *out.Metrics, true
	}
	return m, found, err
}
