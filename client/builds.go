package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// BuildLease says which build a builder speaks of, and since when it holds it.
type BuildLease struct {
	DeploymentID string `json:"deployment_id"`
	Owner        string `json:"owner"`
	Epoch        int64  `json:"epoch"`
}

// BuildJob is one revision to build. It holds credentials of the repository in clear.
type BuildJob struct {
	RevisionID     string            `json:"revision_id"`
	Lease          BuildLease        `json:"lease"`
	TenantID       string            `json:"tenant_id"`
	Name           string            `json:"name"`
	Source         string            `json:"source"`
	RepoURL        string            `json:"repo_url"`
	RepoRef        string            `json:"repo_ref"`
	CommitSHA      string            `json:"commit_sha"`
	Clone          *CloneCredentials `json:"clone"` // nil = none
	SourceDigest   string            `json:"source_digest"`
	SourceURL      string            `json:"source_url"` // for GetBlob
	TemplateID     string            `json:"template_id"`
	ConfigPath     string            `json:"config_path"`
	InstallCommand string            `json:"install_command"`
	BuildCommand   string            `json:"build_command"`
}

// CloneCredentials is what a repository is fetched with.
type CloneCredentials struct {
	Host       string    `json:"host,omitempty"`
	Username   string    `json:"username,omitempty"`
	Password   string    `json:"password,omitempty"`
	PrivateKey string    `json:"private_key,omitempty"`
	KnownHosts string    `json:"known_hosts,omitempty"`
	Expires    time.Time `json:"expires,omitzero"`
}

// BuildLog is one line of a build.
type BuildLog struct {
	Timestamp time.Time `json:"timestamp"`
	Level     string    `json:"level"`
	Message   string    `json:"message"`
}

// BlobSlot is where an archive that the server lacks goes.
type BlobSlot struct {
	Digest    string `json:"digest"`
	UploadURL string `json:"upload_url"` // for PutBlob
}

// ArtifactPart is one of the archives that an artifact consists of.
type ArtifactPart struct {
	Path string `json:"path"`
	Blob string `json:"blob"`
	Size int64  `json:"size"`
}

// BuildCompletion reports an artifact.
type BuildCompletion struct {
	Lease          BuildLease        `json:"lease"`
	ArtifactDigest string            `json:"artifact_digest"`
	Parts          []ArtifactPart    `json:"parts"`
	CommitSHA      string            `json:"commit_sha,omitempty"`
	EnvFile        map[string]string `json:"env_file,omitempty"`
}

func buildPath(revisionID, tail string) string {
	return "/v2/builds/" + url.PathEscape(revisionID) + "/" + tail
}

// ClaimBuild waits for a revision to build, at most so many seconds; nil = none came. Keep them below the 30 that bound
// every call.
func (c *Client) ClaimBuild(ctx context.Context, owner string, wait int) (*BuildJob, error) {
	var out struct{ Job *BuildJob }
	err := c.do(ctx, http.MethodPost, "/v2/builds/claim", nil, map[string]any{"owner": owner, "wait": wait}, &out)
	return out.Job, err
}

// RenewBuild goes on holding a build.
func (c *Client) RenewBuild(ctx context.Context, revisionID string, lease BuildLease) error {
	return c.do(ctx, http.MethodPost, buildPath(revisionID, "renewal"), nil, map[string]any{"lease": lease}, nil)
}

// AppendBuildLogs delivers up to 1000 lines.
func (c *Client) AppendBuildLogs(ctx context.Context, revisionID string, lease BuildLease, lines []BuildLog) error {
	return c.do(ctx, http.MethodPost, buildPath(revisionID, "log-lines"), nil, map[string]any{"lease": lease, "entries": lines}, nil)
}

// FindMissingBlobs asks which of up to 100 archives the server lacks.
func (c *Client) FindMissingBlobs(ctx context.Context, revisionID string, lease BuildLease, digests []string) ([]BlobSlot, error) {
	var out struct{ Missing []BlobSlot }
	err := c.do(ctx, http.MethodPost, buildPath(revisionID, "missing-blobs"), nil, map[string]any{"lease": lease, "digests": digests}, &out)
	return out.Missing, err
}

// CompleteBuild reports an artifact.
func (c *Client) CompleteBuild(ctx context.Context, revisionID string, in BuildCompletion) error {
	return c.do(ctx, http.MethodPost, buildPath(revisionID, "completion"), nil, in, nil)
}

// FailBuild reports that a build failed.
func (c *Client) FailBuild(ctx context.Context, revisionID string, lease BuildLease, reason string) error {
	return c.do(ctx, http.MethodPost, buildPath(revisionID, "failure"), nil, map[string]any{"lease": lease, "reason": reason}, nil)
}

// GetBlob fetches what a signed path leads to; no API key is sent. The caller closes it.
func (c *Client) GetBlob(ctx context.Context, path string) (io.ReadCloser, error) {
	return c.signed(ctx, http.MethodGet, path, nil)
}

// PutBlob stores an archive at a signed path; no API key is sent.
func (c *Client) PutBlob(ctx context.Context, path string, body io.Reader) error {
	answer, err := c.signed(ctx, http.MethodPut, path, body)
	if err != nil {
		return err
	}
	return answer.Close()
}

func (c *Client) signed(ctx context.Context, method, path string, body io.Reader) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, fmt.Errorf("the address is not usable: %w", err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/octet-stream")
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, c.transportError(ctx, err)
	}
	if res.StatusCode >= 300 {
		defer res.Body.Close()
		return nil, answerError(res)
	}
	return res.Body, nil
}

// CollectionRequest says how to collect.
type CollectionRequest struct {
	DryRun bool `json:"dry_run"`
	All    bool `json:"all"`
}

// Collection is what a collection removed, or would.
type Collection struct {
	Removals    []Removal `json:"removals"`
	FreedBytes  int64     `json:"freed_bytes"`
	KeptBytes   int64     `json:"kept_bytes"`
	NeededBytes int64     `json:"needed_bytes"`
}

// Removal is one thing that went, or would.
type Removal struct {
	Path      string    `json:"path"`
	SizeBytes int64     `json:"size_bytes"`
	UsedAt    time.Time `json:"used_at"`
	Reason    string    `json:"reason"`
}

// Collect removes what nobody needs from the installation's disk; the call has no bound of time but its context.
func (c *Client) Collect(ctx context.Context, in CollectionRequest) (Collection, error) {
	var out Collection
	err := c.do(ctx, http.MethodPost, "/v2/collections", nil, in, &out)
	return out, err
}

// RevisionDiff says what differs between two revisions.
type RevisionDiff struct {
	RevisionID string           `json:"revision_id"`
	Against    string           `json:"against"`
	Changes    []RevisionChange `json:"changes"`
}

// RevisionChange is one thing that differs.
type RevisionChange struct {
	Field  string  `json:"field"`
	Before *string `json:"before"` // nil = it was not there
	After  *string `json:"after"`  // nil = it is gone
}

// DiffRevisions says what changed from the revision against to another.
func (c *Client) DiffRevisions(ctx context.Context, deploymentID, revisionID, against string) (RevisionDiff, error) {
	var out RevisionDiff
	path := "/v2/deployments/" + url.PathEscape(deploymentID) + "/revisions/" + url.PathEscape(revisionID) + "/diff"
	err := c.do(ctx, http.MethodGet, path, url.Values{"against": {against}}, nil, &out)
	return out, err
}
