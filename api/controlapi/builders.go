package controlapi

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/api/authn"
	"github.com/slipway-dev/slipway/api/problem"
	"github.com/slipway-dev/slipway/control"
)

// BuildLease says which build a builder speaks of, and since when it holds it.
type BuildLease struct {
	DeploymentID string `json:"deployment_id" required:"true" format:"uuid" doc:"the deployment of the revision"`
	Owner        string `json:"owner" required:"true" minLength:"1" maxLength:"200" doc:"the name the builder claimed it under"`
	Epoch        int64  `json:"epoch" required:"true" minimum:"1" doc:"of the claim; an older one than the current is refused with 409"`
}

// BuildJob is one revision to build. It holds credentials of the repository in clear.
type BuildJob struct {
	RevisionID     string            `json:"revision_id" required:"true" format:"uuid" doc:"id of the revision"`
	Lease          BuildLease        `json:"lease" required:"true" doc:"sent back with every report"`
	TenantID       string            `json:"tenant_id" required:"true" format:"uuid" doc:"the tenant that owns it"`
	Name           string            `json:"name" required:"true" doc:"name of the deployment"`
	Source         string            `json:"source" required:"true" enum:"githost,internal_source,internal_template" doc:"where the source comes from"`
	RepoURL        string            `json:"repo_url" required:"true" doc:"githost: the repository"`
	RepoRef        string            `json:"repo_ref" required:"true" doc:"githost: branch or refs/tags/…; empty = the default branch"`
	CommitSHA      string            `json:"commit_sha" required:"true" doc:"githost: exactly this commit; empty = the newest of the reference"`
	Clone          *CloneCredentials `json:"clone,omitempty" doc:"githost: what the repository is fetched with; absent = nothing. Secret"`
	SourceDigest   string            `json:"source_digest" required:"true" doc:"internal_source: digest of the uploaded archive"`
	SourceURL      string            `json:"source_url" required:"true" doc:"internal_source: signed path to GET the archive from"`
	TemplateID     string            `json:"template_id" required:"true" doc:"internal_template: the template"`
	ConfigPath     string            `json:"config_path" required:"true" doc:"path of the graph configuration; empty = the usual names"`
	InstallCommand string            `json:"install_command" required:"true" doc:"runs in place of the package manager's installation"`
	BuildCommand   string            `json:"build_command" required:"true" doc:"runs after the installation"`
}

// CloneCredentials are what git fetches a repository with. They are secret.
type CloneCredentials struct {
	Host       string    `json:"host,omitempty" doc:"protocol and host they are for"`
	Username   string    `json:"username,omitempty" doc:"with the password"`
	Password   string    `json:"password,omitempty" doc:"password or token"`
	PrivateKey string    `json:"private_key,omitempty" doc:"in OpenSSH's form"`
	KnownHosts string    `json:"known_hosts,omitempty" doc:"with the private key; no other host's key is accepted"`
	Expires    time.Time `json:"expires,omitzero" doc:"when they end; absent = never"`
}

// ArtifactPart is one directory of an artifact as an archive.
type ArtifactPart struct {
	Path string `json:"path" required:"true" maxLength:"300" doc:"bundles/, layers/ or tools/ and a name"`
	Blob string `json:"blob" required:"true" maxLength:"71" doc:"digest of the archive"`
	Size int64  `json:"size" required:"true" minimum:"0" doc:"of the archive, in bytes"`
}

// BuildClaimRequest is the body of POST /v2/builds/claim.
type BuildClaimRequest struct {
	Owner string `json:"owner" required:"true" minLength:"1" maxLength:"200" doc:"name of the builder; another for each process"`
	Wait  int    `json:"wait" minimum:"0" maximum:"50" doc:"seconds to wait for a build"`
}

// BuildClaim is the answer: the job, or nothing when none came in time.
type BuildClaim struct {
	Job *BuildJob `json:"job,omitempty" doc:"the revision to build; absent = none came in time"`
}

// BuildRenewal is the body of POST .../renewal.
type BuildRenewal struct {
	Lease BuildLease `json:"lease" required:"true" doc:"of the build"`
}

// BuildLogs is the body of POST .../log-lines.
type BuildLogs struct {
	Lease   BuildLease `json:"lease" required:"true" doc:"of the build"`
	Entries []BuildLog `json:"entries" required:"true" nullable:"false" maxItems:"1000" doc:"lines in order; secrets are removed before they are stored"`
}

// BuildLog is one line of a build.
type BuildLog struct {
	Timestamp time.Time `json:"timestamp" required:"true" doc:"when it was written"`
	Level     string    `json:"level" required:"true" enum:"DEBUG,INFO,WARNING,ERROR,CRITICAL" doc:"how serious it is"`
	Message   string    `json:"message" required:"true" doc:"the line; beyond 16384 bytes it is cut off"`
}

// BuildBlobs is the body of POST .../missing-blobs.
type BuildBlobs struct {
	Lease   BuildLease `json:"lease" required:"true" doc:"of the build"`
	Digests []string   `json:"digests" required:"true" nullable:"false" maxItems:"100" doc:"digests of the archives the artifact consists of"`
}

// MissingBlobs says what is to be uploaded.
type MissingBlobs struct {
	Missing []BlobSlot `json:"missing" required:"true" nullable:"false" doc:"those of the digests that are not stored here"`
}

// BlobSlot is where an archive goes.
type BlobSlot struct {
	Digest    string `json:"digest" required:"true" doc:"what the body must hash to"`
	UploadURL string `json:"upload_url" required:"true" doc:"signed path to PUT it to, without a key"`
}

// BuildCompletion is the body of POST .../completion.
type BuildCompletion struct {
	Lease          BuildLease        `json:"lease" required:"true" doc:"of the build"`
	ArtifactDigest string            `json:"artifact_digest" required:"true" doc:"digest of the artifact"`
	Parts          []ArtifactPart    `json:"parts" required:"true" nullable:"false" maxItems:"100" doc:"the archives the artifact consists of"`
	CommitSHA      string            `json:"commit_sha" maxLength:"64" doc:"githost: the commit that was built"`
	EnvFile        map[string]string `json:"env_file" doc:"variables of the .env file that the configuration names. Secret"`
}

// BuildFailure is the body of POST .../failure.
type BuildFailure struct {
	Lease  BuildLease `json:"lease" required:"true" doc:"of the build"`
	Reason string     `json:"reason" required:"true" minLength:"1" maxLength:"1048576" doc:"one sentence a user can act on"`
}

type buildCall[T any] struct {
	RevisionID string `path:"revision_id" format:"uuid" doc:"id of the revision"`
	Body       T
}

const (
	buildsPath = "/v2/builds"
	blobPath   = "/blobs/{digest}"
)

func (a *api) builders(mux *http.ServeMux) {
	one := buildsPath + "/{revision_id}"
	line := func(id, path, summary string, codes ...int) huma.Operation {
		return reaching(control.ReachOrganisation, operation(id, http.MethodPost, path, summary, codes...))
	}
	claim := line("claim_build", buildsPath+"/claim", "Wait for a revision to build")
	claim.BodyReadTimeout = -1 // a deadline for the body would go on counting, and end the wait
	huma.Register(a.huma, claim, a.claimBuild)
	huma.Register(a.huma, line("renew_build", one+"/renewal", "Go on holding a build", 404, 409), a.renewBuild)
	huma.Register(a.huma, line("append_build_logs", one+"/log-lines", "Deliver log lines of a build", 404, 409), a.buildLogs)
	huma.Register(a.huma, line("find_missing_blobs", one+"/missing-blobs", "Ask which archives of an artifact to upload", 404, 409), a.missingBlobs)
	huma.Register(a.huma, line("complete_build", one+"/completion", "Report an artifact", 404, 409), a.completeBuild)
	huma.Register(a.huma, line("fail_build", one+"/failure", "Report that a build failed", 404, 409), a.failBuild)
	mux.HandleFunc("GET "+blobPath, a.getBlob)
	mux.HandleFunc("PUT "+blobPath, a.putBlob)
	a.huma.OpenAPI().AddOperation(blobOperation("get_blob", http.MethodGet, "Fetch an archive from a signed address"))
	a.huma.OpenAPI().AddOperation(blobOperation("put_blob", http.MethodPut, "Store an archive at a signed address"))
}

func (l BuildLease) job(revisionID string) slipway.BuildJob {
	return slipway.BuildJob{RevisionID: revisionID, DeploymentID: l.DeploymentID, Owner: l.Owner, Epoch: l.Epoch}
}

// held lets the caller in as a builder and runs fn, unless the body is missing.
func held[T any](ctx context.Context, a *api, in *buildCall[T], fn func(line *control.BuildLine, body T) error) error {
	line, err := a.svc.BuildLine(authn.Principal(ctx))
	if err == nil {
		err = fn(line, in.Body)
	}
	if err != nil {
		return a.problem(err)
	}
	return nil
}

func (a *api) claimBuild(ctx context.Context, in *struct{ Body BuildClaimRequest }) (*struct{ Body BuildClaim }, error) {
	out := &struct{ Body BuildClaim }{}
	err := held(ctx, a, &buildCall[BuildClaimRequest]{Body: in.Body}, func(line *control.BuildLine, body BuildClaimRequest) error {
		job, ok, err := line.Claim(ctx, body.Owner, time.Duration(body.Wait)*time.Second)
		if ok {
			out.Body.Job = buildJob(job)
		}
		return err
	})
	return out, err
}

func buildJob(j control.LentJob) *BuildJob {
	out := &BuildJob{
		RevisionID: j.RevisionID, Lease: BuildLease{DeploymentID: j.DeploymentID, Owner: j.Owner, Epoch: j.Epoch}, TenantID: j.TenantID, Name: j.Name,
		Source: string(j.Source), RepoURL: j.RepoURL, RepoRef: j.RepoRef, CommitSHA: j.CommitSHA, SourceDigest: j.TarballDigest, SourceURL: j.SourceURL,
		TemplateID: j.TemplateID, ConfigPath: j.ConfigPath, InstallCommand: j.InstallCommand, BuildCommand: j.BuildCommand,
	}
	if j.Clone != (slipway.CloneCredentials{}) {
		clone := CloneCredentials(j.Clone)
		out.Clone = &clone
	}
	return out
}

func (a *api) renewBuild(ctx context.Context, in *buildCall[BuildRenewal]) (*struct{}, error) {
	return nil, held(ctx, a, in, func(line *control.BuildLine, body BuildRenewal) error {
		return line.Renew(ctx, body.Lease.job(in.RevisionID))
	})
}

func (a *api) buildLogs(ctx context.Context, in *buildCall[BuildLogs]) (*struct{}, error) {
	return nil, held(ctx, a, in, func(line *control.BuildLine, body BuildLogs) error {
		entries := make([]slipway.LogEntry, len(body.Entries))
		for i, e := range body.Entries {
			entries[i] = slipway.LogEntry{At: e.Timestamp.UTC(), Level: e.Level, Message: e.Message}
		}
		return line.Log(ctx, body.Lease.job(in.RevisionID), entries)
	})
}

func (a *api) missingBlobs(ctx context.Context, in *buildCall[BuildBlobs]) (*struct{ Body MissingBlobs }, error) {
	out := &struct{ Body MissingBlobs }{}
	out.Body.Missing = []BlobSlot{}
	err := held(ctx, a, in, func(line *control.BuildLine, body BuildBlobs) error {
		slots, err := line.Missing(ctx, body.Lease.job(in.RevisionID), body.Digests)
		for _, s := range slots {
			out.Body.Missing = append(out.Body.Missing, BlobSlot{Digest: s.Digest, UploadURL: s.URL})
		}
		return err
	})
	return out, err
}

func (a *api) completeBuild(ctx context.Context, in *buildCall[BuildCompletion]) (*struct{}, error) {
	return nil, held(ctx, a, in, func(line *control.BuildLine, body BuildCompletion) error {
		parts := make([]slipway.ArtifactPart, len(body.Parts))
		for i, p := range body.Parts {
			parts[i] = slipway.ArtifactPart(p)
		}
		return line.Complete(ctx, body.Lease.job(in.RevisionID), slipway.BuildResult{
			ArtifactDigest: body.ArtifactDigest, Parts: parts, CommitSHA: body.CommitSHA, EnvFile: body.EnvFile,
		})
	})
}

func (a *api) failBuild(ctx context.Context, in *buildCall[BuildFailure]) (*struct{}, error) {
	return nil, held(ctx, a, in, func(line *control.BuildLine, body BuildFailure) error {
		return line.Fail(ctx, body.Lease.job(in.RevisionID), body.Reason)
	})
}

// getBlob and putBlob stream; the signature of their address is the whole authorisation.
func (a *api) getBlob(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	body, err := a.svc.OpenBlob(r.Context(), r.PathValue("digest"), q.Get("expires"), q.Get("signature"))
	if err != nil {
		problem.Write(w, a.problem(err))
		return
	}
	defer body.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = io.Copy(w, body) // whoever asked checks the digest
}

func (a *api) putBlob(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if err := a.svc.AcceptBlob(r.Context(), r.PathValue("digest"), q.Get("expires"), q.Get("signature"), r.Body); err != nil {
		problem.Write(w, a.problem(err))
		return
	}
	w.WriteHeader(http.StatusOK)
}

func blobOperation(id, method, summary string) *huma.Operation {
	text := &huma.Schema{Type: "string"}
	bytes := map[string]*huma.MediaType{"application/octet-stream": {Schema: &huma.Schema{Type: "string", Format: "binary"}}}
	op := &huma.Operation{
		OperationID: id, Method: method, Path: blobPath, Summary: summary,
		Parameters: []*huma.Param{
			{Name: "digest", In: "path", Required: true, Schema: text, Description: "digest of the archive"},
			{Name: "expires", In: "query", Required: true, Schema: text, Description: "as signed"},
			{Name: "signature", In: "query", Required: true, Schema: text, Description: "as signed"},
		},
		Responses: map[string]*huma.Response{"403": {Description: "Not signed, or expired"}},
	}
	if method == http.MethodPut {
		op.RequestBody = &huma.RequestBody{Required: true, Content: bytes}
		op.Responses["200"] = &huma.Response{Description: "Stored"}
		op.Responses["400"] = &huma.Response{Description: "Other bytes than the digest's, or cut short"}
		op.Responses["413"] = &huma.Response{Description: "Larger than 8 GiB"}
		return op
	}
	op.Responses["200"] = &huma.Response{Description: "The archive", Content: bytes}
	op.Responses["404"] = &huma.Response{Description: "There is no such archive"}
	return op
}
