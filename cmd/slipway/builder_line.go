package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/client"
	"github.com/slipway-dev/slipway/shelf"
	"github.com/slipway-dev/slipway/source/tarball"
)

const (
	// claimWait is how long one claim waits for a build, in seconds.
	claimWait = 25
	// retryPause is how long a builder rests when the control service does not answer.
	retryPause = 2 * time.Second
	// reportPatience is how long a report of a build's end is tried again.
	reportPatience = 5 * time.Minute
	// logBatch and logBytes bound one delivery of log lines.
	logBatch = 1000
	logBytes = 8 << 20
)

// builderLine is the line of this builder to a control service elsewhere: its queue, its sources and its depot.
type builderLine struct {
	client *client.Client
	shelf  *shelf.Shelf
	failAt failpoint

	mu      sync.Mutex
	sources map[string]string // signed paths of uploaded archives by revision
}

var (
	_ slipway.BuildQueue    = (*builderLine)(nil)
	_ slipway.Depot         = (*builderLine)(nil)
	_ slipway.SourceFetcher = (*builderLine)(nil)
)

// lineError gives answers of the control API the codes that the builder acts on.
func lineError(err error) error {
	var answer *client.Error
	if !errors.As(err, &answer) {
		return err
	}
	code := slipway.CodeBadRequest
	switch answer.Status {
	case http.StatusConflict, http.StatusNotFound:
		code = slipway.CodeStale // purged, interrupted or given to somebody else: nobody wants this build any more
	case http.StatusUnauthorized:
		code = slipway.CodeUnauthenticated
	case http.StatusForbidden:
		code = slipway.CodeForbidden
	case http.StatusUnprocessableEntity:
		code = slipway.CodeInvalid
	}
	if answer.Status >= 500 {
		code = slipway.CodeUnavailable
	}
	return slipway.Errorf(code, "%s", answer.Detail)
}

// again says whether the same call may succeed later.
func again(err error) bool {
	var unreachable *client.UnreachableError
	var answer *client.Error
	return errors.As(err, &unreachable) || errors.As(err, &answer) && answer.Status >= 500
}

// persistently makes a call until it is answered, the patience or ctx ends.
func persistently(ctx context.Context, call func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, reportPatience)
	defer cancel()
	for {
		err := call(ctx)
		if err == nil || !again(err) {
			return lineError(err)
		}
		select {
		case <-ctx.Done():
			return lineError(err)
		case <-time.After(retryPause):
		}
	}
}

// Claim implements slipway.BuildQueue.
func (l *builderLine) Claim(ctx context.Context, owner string) (slipway.BuildJob, error) {
	for {
		job, err := l.client.ClaimBuild(ctx, owner, claimWait)
		if err != nil {
			return slipway.BuildJob{}, lineError(err)
		}
		if job != nil {
			return l.accept(*job), nil
		}
		if ctx.Err() != nil {
			return slipway.BuildJob{}, ctx.Err()
		}
	}
}

func (l *builderLine) accept(j client.BuildJob) slipway.BuildJob {
	out := slipway.BuildJob{
		RevisionID: j.RevisionID, DeploymentID: j.Lease.DeploymentID, TenantID: j.TenantID, Name: j.Name, Owner: j.Lease.Owner, Epoch: j.Lease.Epoch,
		Source: slipway.Source(j.Source), RepoURL: j.RepoURL, RepoRef: j.RepoRef, CommitSHA: j.CommitSHA, TarballDigest: j.SourceDigest,
		TemplateID: j.TemplateID, ConfigPath: j.ConfigPath, InstallCommand: j.InstallCommand, BuildCommand: j.BuildCommand,
	}
	if j.Clone != nil {
		out.Clone = slipway.CloneCredentials(*j.Clone)
		if j.Clone.Password != "" {
			out.Redact = []string{j.Clone.Password}
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sources[j.RevisionID] = j.SourceURL
	return out
}

func leaseOf(job slipway.BuildJob) client.BuildLease {
	return client.BuildLease{DeploymentID: job.DeploymentID, Owner: job.Owner, Epoch: job.Epoch}
}

// Renew implements slipway.BuildQueue.
func (l *builderLine) Renew(ctx context.Context, job slipway.BuildJob) error {
	return lineError(l.client.RenewBuild(ctx, job.RevisionID, leaseOf(job)))
}

// Log implements slipway.BuildQueue.
func (l *builderLine) Log(ctx context.Context, job slipway.BuildJob, entries []slipway.LogEntry) error {
	for len(entries) > 0 {
		var lines []client.BuildLog
		for size := 0; len(lines) < len(entries) && len(lines) < logBatch && size < logBytes; {
			e := entries[len(lines)]
			size += len(e.Message)
			lines = append(lines, client.BuildLog{Timestamp: e.At, Level: e.Level, Message: e.Message})
		}
		entries = entries[len(lines):]
		if err := persistently(ctx, func(ctx context.Context) error {
			return l.client.AppendBuildLogs(ctx, job.RevisionID, leaseOf(job), lines)
		}); err != nil {
			return err
		}
	}
	return nil
}

// Complete implements slipway.BuildQueue.
func (l *builderLine) Complete(ctx context.Context, job slipway.BuildJob, result slipway.BuildResult) error {
	in := client.BuildCompletion{Lease: leaseOf(job), ArtifactDigest: result.ArtifactDigest, CommitSHA: result.CommitSHA, EnvFile: result.EnvFile}
	for _, p := range result.Parts {
		in.Parts = append(in.Parts, client.ArtifactPart(p))
	}
	return persistently(ctx, func(ctx context.Context) error { return l.client.CompleteBuild(ctx, job.RevisionID, in) })
}

// Fail implements slipway.BuildQueue.
func (l *builderLine) Fail(ctx context.Context, job slipway.BuildJob, reason string) error {
	return persistently(ctx, func(ctx context.Context) error { return l.client.FailBuild(ctx, job.RevisionID, leaseOf(job), reason) })
}

// Fetch implements slipway.SourceFetcher for uploaded archives: what arrives must have the digest of what was uploaded.
func (l *builderLine) Fetch(ctx context.Context, job slipway.BuildJob, dir string, _ func(string)) (string, error) {
	l.mu.Lock()
	at := l.sources[job.RevisionID]
	l.mu.Unlock()
	body, err := l.client.GetBlob(ctx, at)
	if client.IsStatus(err, http.StatusNotFound) {
		return "", slipway.Errorf(slipway.CodeBadRequest, "the uploaded archive is no longer there: upload it again")
	}
	if err != nil {
		return "", slipway.Errorf(slipway.CodeUnavailable, "the uploaded archive cannot be fetched from the control service: %w", lineError(err))
	}
	defer body.Close()
	sum := sha256.New()
	source := io.TeeReader(body, sum)
	if err := tarball.Unpack(ctx, source, dir, tarball.Limits{}); err != nil {
		return "", err
	}
	if _, err := io.Copy(io.Discard, source); err != nil {
		return "", slipway.Errorf(slipway.CodeUnavailable, "the uploaded archive did not arrive whole: deploy again: %w", err)
	}
	if got := "sha256:" + hex.EncodeToString(sum.Sum(nil)); got != job.TarballDigest {
		return "", slipway.Errorf(slipway.CodeBadRequest, "the uploaded archive arrived as %s, not as %s: deploy again", got, job.TarballDigest)
	}
	return "", nil
}

// Store implements slipway.Depot: what the control service has is not sent again.
func (l *builderLine) Store(ctx context.Context, job slipway.BuildJob, _, digest string, shared []string) ([]slipway.ArtifactPart, error) {
	var parts []slipway.ArtifactPart
	var digests []string
	for _, at := range append([]string{slipway.BundlePath("bundles", digest)}, shared...) {
		blob, size, err := l.shelf.Packed(ctx, at)
		if err != nil {
			return nil, err
		}
		parts, digests = append(parts, slipway.ArtifactPart{Path: at, Blob: blob, Size: size}), append(digests, blob)
	}
	missing, err := l.client.FindMissingBlobs(ctx, job.RevisionID, leaseOf(job), digests)
	if err != nil {
		return nil, fmt.Errorf("hand the artifact over: %w", lineError(err))
	}
	for _, slot := range missing {
		for _, p := range parts {
			if p.Blob != slot.Digest {
				continue
			}
			if err := persistently(ctx, func(ctx context.Context) error { return l.put(ctx, p.Path, slot.UploadURL) }); err != nil {
				return nil, fmt.Errorf("hand the artifact over: %w", err)
			}
			break
		}
	}
	return parts, nil
}

// put streams an archive as it is made.
func (l *builderLine) put(ctx context.Context, at, url string) error {
	r, w := io.Pipe()
	defer func() { _ = r.Close() }()
	go func() { w.CloseWithError(l.shelf.Pack(ctx, at, w)) }()
	return l.client.PutBlob(ctx, url, l.failAt.archive(r))
}
