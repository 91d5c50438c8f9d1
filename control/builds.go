package control

import (
	"context"
	"sort"
	"strings"
	"time"

	"github.com/slipway-dev/slipway"
)

var _ slipway.BuildQueue = (*Service)(nil)

// LocalBuilder begins the names under which a builder in the process of the control service holds leases.
const LocalBuilder = "local-"

// Recover frees every build lease of a LocalBuilder, every keyed request and every delivery that was under way. Only whoever
// knows that no such builder and no other control service is alive may call it: the single-machine platform at its start,
// whose parts died with the process before.
func (s *Service) Recover(ctx context.Context) error {
	return wrap("recover builds", s.update(ctx, func(tx slipway.Tx) error {
		if err := tx.FreeIdempotencyClaims(); err != nil {
			return err
		}
		if err := s.freeDeliveries(tx); err != nil {
			return err
		}
		held, err := tx.Revisions(slipway.RevisionQuery{Statuses: []slipway.RevisionStatus{slipway.Building}})
		if err != nil {
			return err
		}
		for _, r := range held {
			if !strings.HasPrefix(r.LeaseOwner, LocalBuilder) {
				continue // it may live on another machine
			}
			r.LeaseExpires = time.UnixMicro(1)
			if err := tx.PutRevision(r); err != nil {
				return err
			}
		}
		return nil
	}))
}

// Claim implements slipway.BuildQueue, for a builder of this process: it builds for every tenant.
func (s *Service) Claim(ctx context.Context, owner string) (slipway.BuildJob, error) {
	return s.claim(ctx, ctx, "", owner)
}

// claim is Claim for the builds of one tenant, "" = of all. It waits no longer than patience lasts, but no claim is broken
// off for that: a build that was taken is handed out. Changes wake it; the timer is for leases, whose expiry changes nothing.
func (s *Service) claim(ctx, patience context.Context, tenantID, owner string) (slipway.BuildJob, error) {
	for {
		_, changed := s.changed.state()
		job, err := s.tryClaim(ctx, tenantID, owner)
		if err == nil && job.RevisionID != "" {
			job, err = s.admit(ctx, job)
		}
		if err == nil && job.RevisionID != "" {
			job, err = s.lend(ctx, job)
		}
		if err == nil && job.RevisionID == "" {
			continue // it could not be built; the next one
		}
		if err == nil || slipway.ErrorCode(err) != slipway.CodeNotFound {
			return job, wrap("claim build", err)
		}
		if err := wait(patience, changed, s.cfg.BuildLease/3); err != nil {
			return slipway.BuildJob{}, err
		}
	}
}

// wait returns nil when changed closes or the time is over, and ctx's error when that ends first.
func wait(ctx context.Context, changed <-chan struct{}, atMost time.Duration) error {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-changed:
	case <-timer.C:
	}
	return nil
}

func (s *Service) tryClaim(ctx context.Context, tenantID, owner string) (slipway.BuildJob, error) {
	var job slipway.BuildJob
	if err := s.store.View(ctx, func(tx slipway.Tx) error { // most wake-ups are not for builders: look before writing
		_, err := tx.ClaimBuild(tenantID, s.clock())
		return err
	}); err != nil {
		return job, err
	}
	err := s.update(ctx, func(tx slipway.Tx) error {
		r, err := tx.ClaimBuild(tenantID, s.clock())
		if err != nil {
			return err
		}
		r.LeaseOwner, r.LeaseExpires = owner, s.clock().Add(s.cfg.BuildLease)
		r.LeaseEpoch++
		if err := tx.TakeBuildTurn(r.TenantID, s.clock()); err != nil {
			return err
		}
		if r.Status == slipway.Building {
			err = tx.PutRevision(r)
		} else {
			err = s.move(tx, &r, slipway.Building, "")
		}
		if err != nil {
			return err
		}
		job, err = s.job(tx, r)
		if slipway.ErrorCode(err) == slipway.CodeInvalid {
			job = slipway.BuildJob{}
			return s.buildFailed(tx, r, err.Error()) // it must not stand in the way of the others
		}
		return err
	})
	return job, err
}

func (s *Service) buildFailed(tx slipway.Tx, r slipway.Revision, reason string) error {
	d, err := tx.Deployment("", r.DeploymentID)
	if err != nil {
		return err
	}
	r.LeaseOwner = ""
	if err := s.move(tx, &r, slipway.BuildFailed, reason); err != nil {
		return err
	}
	return s.settle(tx, d)
}

func (s *Service) job(tx slipway.Tx, r slipway.Revision) (slipway.BuildJob, error) {
	d, err := tx.Deployment("", r.DeploymentID)
	if err != nil {
		return slipway.BuildJob{}, err
	}
	secrets, err := s.openSecrets(tx, r.SecretSetID)
	if err != nil {
		return slipway.BuildJob{}, err
	}
	rev, cfg := r.SourceRevisionConfig, r.SourceConfig
	job := slipway.BuildJob{
		RevisionID: r.ID, DeploymentID: r.DeploymentID, TenantID: r.TenantID, Name: d.Name, Owner: r.LeaseOwner, Epoch: r.LeaseEpoch,
		Source: r.Source, RepoURL: text(cfg.RepoURL), RepoRef: text(rev.RepoRef), CommitSHA: text(rev.RepoCommitSHA),
		TemplateID: text(cfg.TemplateID), ConfigPath: text(rev.AgentgraphConfigPath),
		IntegrationID: text(cfg.IntegrationID), InstallCommand: text(cfg.InstallCommand), BuildCommand: text(cfg.BuildCommand), Redact: slipway.Redactions(secrets),
	}
	if r.Source == slipway.SourceInternalSource {
		why, err := archiveGone(tx, r)
		if err != nil {
			return job, err
		}
		if why != "" {
			return job, slipway.Errorf(slipway.CodeInvalid, "revision %s cannot be built: %s", r.ID, why)
		}
		upload, err := tx.UploadByPath(r.DeploymentID, text(rev.SourceTarballPath))
		if err != nil {
			return job, err
		}
		job.TarballDigest = upload.Digest
	}
	return job, nil
}

// admit lets a build begin if there is room for what comes of it; its archive counts as used. A job without room has failed,
// which is answered by the empty job.
func (s *Service) admit(ctx context.Context, job slipway.BuildJob) (slipway.BuildJob, error) {
	if job.TarballDigest != "" {
		if err := s.blob.Touch(ctx, job.TarballDigest); err != nil && slipway.ErrorCode(err) != slipway.CodeNotFound { // the build tells what is missing
			return job, err
		}
	}
	err := s.room(ctx)
	if slipway.ErrorCode(err) == slipway.CodeTooLarge {
		return slipway.BuildJob{}, s.Fail(ctx, job, err.Error())
	}
	return job, err
}

// credentialLimit bounds how long a builder waits for a repository's credentials; it is well below a lease.
const credentialLimit = 15 * time.Second

// lend gives the job what its repository is fetched with. A job whose host does not give it has failed, which is answered by
// the empty job.
func (s *Service) lend(ctx context.Context, job slipway.BuildJob) (slipway.BuildJob, error) {
	if job.IntegrationID == "" || job.Source != slipway.SourceGithost {
		return job, nil
	}
	limited, cancel := context.WithTimeout(ctx, credentialLimit)
	defer cancel()
	_, host, err := s.host(limited, job.TenantID, job.IntegrationID)
	if err == nil {
		job.Clone, err = host.CloneCredentials(limited, job.RepoURL)
	}
	switch {
	case ctx.Err() != nil:
		return job, ctx.Err()
	case err != nil && slipway.ErrorCode(err) == slipway.CodeInternal:
		s.log.Error("no credentials for a build", "revision_id", job.RevisionID, "error", err)
		err = s.Fail(ctx, job, "the git host gave no credentials; the service's log says why")
		return slipway.BuildJob{}, err
	case err != nil:
		return slipway.BuildJob{}, s.Fail(ctx, job, "the repository's credentials cannot be had: "+err.Error())
	}
	if job.Clone.Password != "" {
		job.Redact = append(job.Redact, job.Clone.Password)
	}
	return job, nil
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// Renew implements slipway.BuildQueue.
func (s *Service) Renew(ctx context.Context, job slipway.BuildJob) error {
	return wrap("renew build", s.store.Update(ctx, func(tx slipway.Tx) error {
		r, err := held(tx, job)
		if err != nil {
			return err
		}
		r.LeaseExpires = s.clock().Add(s.cfg.BuildLease)
		return tx.PutRevision(r)
	}))
}

// held returns the job's revision while the job's lease is the current one, else CodeStale.
func held(tx slipway.Tx, job slipway.BuildJob) (slipway.Revision, error) {
	r, err := tx.Revision("", job.DeploymentID, job.RevisionID)
	if err != nil && slipway.ErrorCode(err) != slipway.CodeNotFound {
		return r, err
	}
	if err != nil || r.Status != slipway.Building || r.LeaseOwner != job.Owner || r.LeaseEpoch != job.Epoch {
		return r, slipway.Errorf(slipway.CodeStale, "the build of revision %s is no longer held by %s", job.RevisionID, job.Owner)
	}
	return r, nil
}

// Log implements slipway.BuildQueue.
func (s *Service) Log(ctx context.Context, job slipway.BuildJob, entries []slipway.LogEntry) error {
	secrets := slipway.Redactor(job.Redact) // for a job of this process they are at hand
	err := s.store.View(ctx, func(tx slipway.Tx) error {
		r, err := held(tx, job)
		if err == nil && job.Redact == nil {
			secrets, err = s.redactor(tx, r)
		}
		return err
	})
	if err != nil {
		return wrap("store build log", err)
	}
	lines := append([]slipway.LogEntry{}, entries...)
	for i := range lines {
		lines[i].DeploymentID, lines[i].RevisionID, lines[i].Kind = job.DeploymentID, job.RevisionID, slipway.LogBuild
		lines[i].Message = slipway.CutLine(secrets.Replace(lines[i].Message))
	}
	return wrap("store build log", s.storeLogs(ctx, lines))
}

// redactor removes a revision's secrets from text, all of which it opens.
func (s *Service) redactor(tx slipway.Tx, r slipway.Revision) (*strings.Replacer, error) {
	values, err := s.openSecrets(tx, r.SecretSetID)
	return slipway.Redactor(slipway.Redactions(values)), err
}

// Complete implements slipway.BuildQueue.
func (s *Service) Complete(ctx context.Context, job slipway.BuildJob, result slipway.BuildResult) error {
	return s.complete(ctx, localBuilder(), job, result)
}

// localBuilder is who reports a build of this process, for the audit log.
func localBuilder() slipway.Principal { return slipway.Principal{ID: "builder"} }

func (s *Service) complete(ctx context.Context, who slipway.Principal, job slipway.BuildJob, result slipway.BuildResult) error {
	return wrap("complete build", s.update(ctx, func(tx slipway.Tx) error {
		r, err := held(tx, job)
		if err != nil {
			return err
		}
		d, err := tx.Deployment("", r.DeploymentID)
		if err != nil {
			return err
		}
		r.ArtifactDigest, r.LeaseOwner = result.ArtifactDigest, ""
		if result.CommitSHA != "" {
			r.SourceRevisionConfig.RepoCommitSHA = &result.CommitSHA
			if d.LatestRevisionID == r.ID {
				d.SourceRevisionConfig.RepoCommitSHA = &result.CommitSHA
			}
		}
		if err := s.putArtifact(tx, result); err != nil {
			return err
		}
		if r.BuildSecretSetID, err = s.putEnvFile(tx, d, result.EnvFile); err != nil {
			return err
		}
		if err := s.move(tx, &r, slipway.AwaitingDeploy, ""); err != nil {
			return err
		}
		if err := s.auditBuild(tx, who, "complete_build", d, job, map[string]any{"artifact_digest": r.ArtifactDigest}); err != nil {
			return err
		}
		return s.settle(tx, d)
	}))
}

// auditBuild records the report of a build: who made it, by which builder, of which revision, and what came of it.
func (s *Service) auditBuild(tx slipway.Tx, who slipway.Principal, operation string, d slipway.Deployment, job slipway.BuildJob, detail map[string]any) error {
	who.TenantID = d.TenantID // an organisation's builder builds for every tenant
	detail["name"], detail["revision_id"], detail["builder"] = d.Name, job.RevisionID, job.Owner
	return s.audit(tx, who, operation, d.ID, detail)
}

// putArtifact records what an artifact is made from; one that was given up is there again.
func (s *Service) putArtifact(tx slipway.Tx, result slipway.BuildResult) error {
	known, err := tx.Artifact(result.ArtifactDigest)
	switch {
	case slipway.ErrorCode(err) == slipway.CodeNotFound && result.Parts == nil:
		return nil
	case err != nil && slipway.ErrorCode(err) != slipway.CodeNotFound:
		return err
	}
	if result.Parts != nil || known.Collected() {
		known.Parts = result.Parts
	}
	known.Digest, known.CollectedAt = result.ArtifactDigest, time.Time{}
	if known.CreatedAt.IsZero() {
		known.CreatedAt = s.clock()
	}
	return tx.PutArtifact(known)
}

func (s *Service) putEnvFile(tx slipway.Tx, d slipway.Deployment, values map[string]string) (string, error) {
	if len(values) == 0 {
		return "", nil
	}
	var secrets []slipway.Secret
	for name, value := range values {
		secrets = append(secrets, slipway.Secret{Name: name, Value: value})
	}
	sort.Slice(secrets, func(i, j int) bool { return secrets[i].Name < secrets[j].Name })
	set, err := s.sealSet(d, s.ids(), nil, secrets)
	if err != nil {
		return "", err
	}
	return set.ID, tx.PutSecretSet(set)
}

// Fail implements slipway.BuildQueue.
func (s *Service) Fail(ctx context.Context, job slipway.BuildJob, reason string) error {
	return s.fail(ctx, localBuilder(), job, reason)
}

func (s *Service) fail(ctx context.Context, who slipway.Principal, job slipway.BuildJob, reason string) error {
	return wrap("fail build", s.update(ctx, func(tx slipway.Tx) error {
		r, err := held(tx, job)
		if err != nil {
			return err
		}
		secrets, err := s.redactor(tx, r)
		if err != nil {
			return err
		}
		told := slipway.CutLine(secrets.Replace(reason))
		d, err := tx.Deployment("", r.DeploymentID)
		if err != nil {
			return err
		}
		if err := s.auditBuild(tx, who, "fail_build", d, job, map[string]any{"reason": told}); err != nil {
			return err
		}
		return s.buildFailed(tx, r, told)
	}))
}
