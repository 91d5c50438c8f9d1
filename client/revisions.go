package client

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Revision is the answer of the revision calls (control-plane reference 3).
type Revision struct {
	ID                   string               `json:"id"`
	DeploymentID         string               `json:"deployment_id"`
	Status               string               `json:"status"`
	StatusReason         *string              `json:"status_reason"`
	StatusMessage        *string              `json:"status_message"`
	Source               string               `json:"source"`
	SourceConfig         SourceConfig         `json:"source_config"`
	SourceRevisionConfig SourceRevisionConfig `json:"source_revision_config"`
	ArtifactDigest       *string              `json:"artifact_digest"`
	ReplayOf             *string              `json:"replay_of"` // the revision whose blueprint it runs again
	CreatedBy            string               `json:"created_by"`
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
	list, _, err := c.FindRevisions(ctx, deploymentID, RevisionFilter{Limit: limit})
	return list, err
}

// RevisionFilter selects revisions of a deployment; what is empty selects nothing out.
type RevisionFilter struct {
	Statuses         []string
	RemoteReconciled *bool
	Limit, Offset    int // 1..100; 0 = the server's own 20
}

// FindRevisions lists one page, newest first; next is the offset of the following page.
func (c *Client) FindRevisions(ctx context.Context, deploymentID string, f RevisionFilter) (list []Revision, next int, err error) {
	q := url.Values{}
	text(q, "status", strings.Join(f.Statuses, ","))
	truth(q, "remote_reconciled", f.RemoteReconciled)
	number(q, "limit", f.Limit)
	number(q, "offset", f.Offset)
	var out page[Revision]
	err = c.do(ctx, http.MethodGet, revisionsPath(deploymentID), q, nil, &out)
	return out.Resources, out.Offset, err
}

// CreateRevision makes a new revision; the fields are those of a patch, and none at all builds the same again.
func (c *Client) CreateRevision(ctx context.Context, deploymentID string, in DeploymentPatch) (Revision, error) {
	var out Revision
	err := c.do(ctx, http.MethodPost, revisionsPath(deploymentID), nil, in, &out)
	return out, err
}

// Interrupt stops a revision's build or rollout; the active revision goes on serving (control-plane reference 4).
func (c *Client) Interrupt(ctx context.Context, deploymentID, id string) (Revision, error) {
	var out Revision
	err := c.do(ctx, http.MethodPost, revisionsPath(deploymentID)+"/"+url.PathEscape(id)+"/interruption", nil, nil, &out)
	return out, err
}

// RevisionEvent is one step of a revision's life.
type RevisionEvent struct {
	Seq    int64     `json:"seq"`
	Status string    `json:"status"`
	Reason *string   `json:"reason"`
	At     time.Time `json:"at"`
}

// RevisionEvents lists the steps of a revision's life, oldest first.
func (c *Client) RevisionEvents(ctx context.Context, deploymentID, id string) ([]RevisionEvent, error) {
	var out struct {
		Events []RevisionEvent `json:"events"`
	}
	err := c.do(ctx, http.MethodGet, revisionsPath(deploymentID)+"/"+url.PathEscape(id)+"/events", nil, nil, &out)
	return out.Events, err
}

// Redeploy makes a new revision from the blueprint of an old one.
func (c *Client) Redeploy(ctx context.Context, deploymentID, id string) (Deployment, error) {
	var out Deployment
	err := c.do(ctx, http.MethodPost, revisionsPath(deploymentID)+"/"+url.PathEscape(id)+"/redeploy", nil, nil, &out)
	return out, err
}
