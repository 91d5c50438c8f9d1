package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Revision is the answer of the revision calls (control-plane reference 3).
type Revision struct {
	ID                   string               `json:"id"`
	DeploymentID         string               `json:"deployment_id"`
	Status               string               `json:"status"`
	StatusReason         *string              `json:"status_reason"`
	Source               string               `json:"source"`
	SourceRevisionConfig SourceRevisionConfig `json:"source_revision_config"`
	CreatedAt            time.Time            `json:"created_at"`
	UpdatedAt            time.Time            `json:"updated_at"`
}

// Reason returns why the revision stands where it stands, or "".
func (r Revision) Reason() string {
	if r.StatusReason == nil {
		return ""
	}
	return *r.StatusReason
}

// Ended says whether the revision will not move any more (control-plane reference 4).
func (r Revision) Ended() bool {
	switch r.Status {
	case "DEPLOYED", "CREATE_FAILED", "BUILD_FAILED", "DEPLOY_FAILED", "SKIPPED", "INTERRUPTED":
		return true
	}
	return false
}

func revisionsPath(deploymentID string) string {
	return "/v2/deployments/" + url.PathEscape(deploymentID) + "/revisions"
}

// Revision reads one revision.
func (c *Client) Revision(ctx context.Context, deploymentID, id string) (Revision, error) {
	var out Revision
	err := c.do(ctx, http.MethodGet, revisionsPath(deploymentID)+"/"+url.PathEscape(id), nil, nil, &out)
	return out, err
}

// Revisions lists the newest revisions first.
func (c *Client) Revisions(ctx context.Context, deploymentID string, limit int) ([]Revision, error) {
	var out struct {
		Resources []Revision `json:"resources"`
	}
	q := url.Values{"limit": {strconv.Itoa(limit)}}
	err := c.do(ctx, http.MethodGet, revisionsPath(deploymentID), q, nil, &out)
	return out.Resources, err
}

// Redeploy makes a new revision from the blueprint of an old one.
func (c *Client) Redeploy(ctx context.Context, deploymentID, id string) (Deployment, error) {
	var out Deployment
	err := c.do(ctx, http.MethodPost, revisionsPath(deploymentID)+"/"+url.PathEscape(id)+"/redeploy", nil, nil, &out)
	return out, err
}

// LogEntry is one log line.
type LogEntry struct {
	ID        string  `json:"id"`
	Timestamp float64 `json:"timestamp"` // epoch milliseconds
	Level     string  `json:"level"`
	Message   string  `json:"message"`
}

// Time returns when the line was written.
func (e LogEntry) Time() time.Time { return time.UnixMicro(int64(e.Timestamp * 1000)) }

// LogQuery selects log lines. Without RevisionID the deploy logs of all revisions are read.
type LogQuery struct {
	DeploymentID string
	RevisionID   string
	Build        bool   // build logs of the revision; else deploy logs
	Offset       string // NextOffset of the page before; "" = from the start
	Descending   bool
	Limit        int // 1..1000
}

// Logs returns a page of log lines and the offset behind it; "" means that the stream has ended.
func (c *Client) Logs(ctx context.Context, q LogQuery) (entries []LogEntry, next string, err error) {
	path := "/v2/deployments/" + url.PathEscape(q.DeploymentID) + "/logs"
	values := url.Values{"limit": {strconv.Itoa(q.Limit)}, "order": {"asc"}}
	if q.RevisionID != "" {
		path = revisionsPath(q.DeploymentID) + "/" + url.PathEscape(q.RevisionID) + "/logs"
		values.Set("type", "deploy")
	}
	if q.Build {
		values.Set("type", "build")
	}
	if q.Descending {
		values.Set("order", "desc")
	}
	if q.Offset != "" {
		values.Set("offset", q.Offset)
	}
	var out struct {
		Logs       []LogEntry `json:"logs"`
		NextOffset *string    `json:"next_offset"`
	}
	err = c.do(ctx, http.MethodGet, path, values, nil, &out)
	if out.NextOffset != nil {
		next = *out.NextOffset
	}
	return out.Logs, next, err
}
