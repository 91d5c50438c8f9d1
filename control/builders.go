package control

import (
	"context"
	"errors"
	"time"

	"github.com/slipway-dev/slipway"
)

// MaxClaimWait bounds how long a builder elsewhere waits in one call.
const MaxClaimWait = 50 * time.Second

// MaxArtifactBlob bounds one archive of an artifact, in bytes.
const MaxArtifactBlob = 8 << 30

// BuildLine is the line of a builder on another machine: the build queue for the builds that its key may see, and the blobs
// that go with them. Its jobs carry no secrets of deployments.
type BuildLine struct {
	svc    *Service
	who    slipway.Principal
	tenant string // "" = builds of every tenant
}

// BuildLine lets a builder in. A key of a tenant builds for that tenant, one of the organisation for all.
func (s *Service) BuildLine(who slipway.Principal) (*BuildLine, error) {
	if who.ID == "" {
		return nil, slipway.Errorf(slipway.CodeUnauthenticated, "this call needs an API key; send it as X-Api-Key")
	}
	if err := permitted(who, mayBuild); err != nil {
		return nil, err
	}
	if who.Organisation {
		return &BuildLine{s, who, ""}, nil
	}
	return &BuildLine{s, who, who.TenantID}, nil
}

// LentJob is a job as a builder elsewhere gets it.
type LentJob struct {
	slipway.BuildJob
	SourceURL string // signed path to GET the uploaded archive from; "" = the source is no archive
}

// Claim waits for a job at most so long, 0 = takes one that is there; ok is false if there was none.
func (l *BuildLine) Claim(ctx context.Context, owner string, atMost time.Duration) (job LentJob, ok bool, err error) {
	if owner == "" || len(owner) > 200 {
		var problems slipway.Problems
		problems.Add([]any{"body", "owner"}, "%q is no name of a builder; give 1 to 200 bytes, another for each process", owner)
		return job, false, problems.Err()
	}
	limited, cancel := context.WithTimeout(ctx, min(atMost, MaxClaimWait))
	defer cancel()
	claimed, err := l.svc.claim(ctx, limited, l.tenant, owner)
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return job, false, nil
	}
	if err != nil {
		return job, false, err
	}
	job.BuildJob = claimed
	job.Redact = nil
	if claimed.TarballDigest != "" {
		job.SourceURL = l.svc.blobURL("GET", claimed.TarballDigest)
	}
	return job, true, nil
}

// mine checks that the line may see the job's revision; whether its lease is current is each call's matter.
func (l *BuildLine) mine(ctx context.Context, job slipway.BuildJob) error {
	return l.svc.store.View(ctx, func(tx slipway.Tx) error {
		r, err := tx.Revision(l.tenant, job.DeploymentID, job.RevisionID)
		if err == nil && r.DeploymentID != job.DeploymentID {
			err = slipway.Errorf(slipway.CodeNotFound, "")
		}
		if slipway.ErrorCode(err) == slipway.CodeNotFound {
			return slipway.Errorf(slipway.CodeNotFound, "Revision ID %s not found.", job.RevisionID)
		}
		return err
	})
}

// Renew is slipway.BuildQueue's.
func (l *BuildLine) Renew(ctx context.Context, job slipway.BuildJob) error {
	if err := l.mine(ctx, job); err != nil {
		return wrap("renew build", err)
	}
	return l.svc.Renew(ctx, job)
}

// Log is slipway.BuildQueue's; the lines are redacted here.
func (l *BuildLine) Log(ctx context.Context, job slipway.BuildJob, entries []slipway.LogEntry) error {
	if err := l.mine(ctx, job); err != nil {
		return wrap("store build log", err)
	}
	job.Redact = nil
	return l.svc.Log(ctx, job, entries)
}

// Fail is slipway.BuildQueue's.
func (l *BuildLine) Fail(ctx context.Context, job slipway.BuildJob, reason string) error {
	if err := l.mine(ctx, job); err != nil {
		return wrap("fail build", err)
	}
	return l.svc.fail(ctx, l.who, job, reason)
}

// Complete is slipway.BuildQueue's. All parts of the artifact must have been uploaded: CodeInvalid names one that was not.
func (l *BuildLine) Complete(ctx context.Context, job slipway.BuildJob, result slipway.BuildResult) error {
	if err := l.mine(ctx, job); err != nil {
		return wrap("complete build", err)
	}
	if err := slipway.ValidParts(result.ArtifactDigest, result.Parts); err != nil {
		return err
	}
	var problems slipway.Problems
	for i, p := range result.Parts {
		err := l.svc.blob.Touch(ctx, p.Blob)
		if slipway.ErrorCode(err) == slipway.CodeNotFound {
			problems.Add([]any{"body", "parts", i, "blob"}, "%s was not uploaded; ask what is missing and upload that", p.Blob)
		} else if err != nil {
			return wrap("complete build", err)
		}
	}
	if err := problems.Err(); err != nil {
		return err
	}
	return l.svc.complete(ctx, l.who, job, result)
}

// BlobSlot is where an archive that is not stored here goes.
type BlobSlot struct {
	Digest string
	URL    string // signed path to PUT it to
}

// Missing says which of the blobs are not stored here; the others are kept for the build.
func (l *BuildLine) Missing(ctx context.Context, job slipway.BuildJob, digests []string) ([]BlobSlot, error) {
	if err := l.mine(ctx, job); err != nil {
		return nil, wrap("look for blobs", err)
	}
	if err := l.svc.store.View(ctx, func(tx slipway.Tx) error {
		_, err := held(tx, job)
		return err
	}); err != nil {
		return nil, wrap("look for blobs", err)
	}
	slots := []BlobSlot{}
	for i, digest := range digests {
		if !slipway.ValidDigest(digest) {
			var problems slipway.Problems
			problems.Add([]any{"body", "digests", i}, "%q is no digest; give sha256: and 64 hexadecimal digits", digest)
			return nil, problems.Err()
		}
		err := l.svc.blob.Touch(ctx, digest)
		if slipway.ErrorCode(err) == slipway.CodeNotFound {
			slots = append(slots, BlobSlot{digest, l.svc.blobURL("PUT", digest)})
		} else if err != nil {
			return nil, wrap("look for blobs", err)
		}
	}
	return slots, nil
}
