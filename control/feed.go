package control

import (
	"context"
	"slices"

	"github.com/slipway-dev/slipway"
)

var _ slipway.Feed = (*Service)(nil)

// Desired implements slipway.Feed for the listener that is part of this process: it sees the deployments that name none.
func (s *Service) Desired(ctx context.Context, cursor string) (slipway.DesiredState, error) {
	return s.desiredOf(ctx, "", cursor)
}

// desiredOf waits until something changed for the listener since the cursor, then reads.
func (s *Service) desiredOf(ctx context.Context, listenerID, cursor string) (slipway.DesiredState, error) {
	if err := s.awaitChange(ctx, listenerID, cursor); err != nil {
		return slipway.DesiredState{}, err
	}
	return s.readDesired(ctx, listenerID, cursor)
}

// awaitChange blocks until the listener's state is another than that of the cursor.
func (s *Service) awaitChange(ctx context.Context, listenerID, cursor string) error {
	from, known := s.topics.version(cursor)
	for {
		now, changed := s.topics.state(listenerID)
		if !known || from != now {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// readDesired reads, with a cursor of this process, only what changed since.
func (s *Service) readDesired(ctx context.Context, listenerID, cursor string) (slipway.DesiredState, error) {
	now, _ := s.topics.state(listenerID)
	state := slipway.DesiredState{Cursor: s.topics.cursor(now)}
	q := slipway.DeploymentQuery{Listener: &listenerID, Statuses: slipway.DeploymentStatuses()}
	if from, known := s.topics.version(cursor); known {
		q.IDs, state.Partial = s.topics.since(listenerID, from)
	}
	if state.Partial && len(q.IDs) == 0 {
		return state, nil // without ids a query selects all
	}
	err := s.store.View(ctx, func(tx slipway.Tx) (err error) {
		state.Deployments, err = s.desiredAll(tx, q)
		return err
	})
	if state.Partial {
		state.Absent = absent(q.IDs, state.Deployments)
	}
	return state, wrap("read desired state", err)
}

// absent returns the ids of which there is no deployment any more.
func absent(ids []string, found []slipway.DesiredDeployment) []string {
	var out []string
	for _, id := range ids {
		if !slices.ContainsFunc(found, func(d slipway.DesiredDeployment) bool { return d.DeploymentID == id }) {
			out = append(out, id)
		}
	}
	return out
}

func (s *Service) desiredAll(tx slipway.Tx, q slipway.DeploymentQuery) ([]slipway.DesiredDeployment, error) {
	found, err := tx.Deployments(q)
	if err != nil {
		return nil, err
	}
	out := make([]slipway.DesiredDeployment, 0, len(found))
	for _, d := range found {
		desired, err := s.desired(tx, d)
		if err != nil {
			return nil, err
		}
		out = append(out, desired)
	}
	return out, nil
}

func (s *Service) desired(tx slipway.Tx, d slipway.Deployment) (slipway.DesiredDeployment, error) {
	out := slipway.DesiredDeployment{DeploymentID: d.ID, TenantID: d.TenantID, Name: d.Name, Slug: s.Slug(d), Generation: d.Generation}
	if c := d.SourceConfig.ListenerConfig; c != nil {
		out.Namespace = text(c.ClusterNamespace)
	}
	if out.Deleted = d.Purged(); out.Deleted {
		return out, nil
	}
	if out.Retired = d.Retired; out.Retired {
		return out, nil
	}
	var err error
	if d.ActiveRevisionID != "" {
		r, err := tx.Revision("", d.ID, d.ActiveRevisionID)
		if err != nil {
			return out, err
		}
		if out.Active, err = s.blueprint(tx, d, r); err != nil {
			return out, err
		}
	}
	candidates, err := tx.Revisions(slipway.RevisionQuery{
		DeploymentID: d.ID, Statuses: []slipway.RevisionStatus{slipway.AwaitingDeploy, slipway.Deploying, slipway.StatusUnknown}, Limit: 1,
	})
	if err != nil || len(candidates) == 0 {
		return out, err
	}
	if out.Candidate, err = s.blueprint(tx, d, candidates[0]); err != nil {
		return out, err
	}
	keepsDatabase(out.Active, out.Candidate)
	return out, nil
}

// keepsDatabase breaks a candidate that would leave the database of its own that the active revision has: its data would
// seem gone. Another address is fine (control-plane reference 4).
func keepsDatabase(active, candidate *slipway.Blueprint) {
	const name = "POSTGRES_URI_CUSTOM"
	if active == nil || active.Env[name] == "" || candidate.Broken != "" || candidate.Env[name] != "" {
		return
	}
	candidate.Broken = name + " was removed, but the deployment keeps its data in that database; set it again, or make a new deployment"
	candidate.Env, candidate.Redact = nil, nil
}

// blueprint returns what a runtime needs to run the revision. Secrets that cannot be opened break this revision, not the
// desired state of everybody else.
func (s *Service) blueprint(tx slipway.Tx, d slipway.Deployment, r slipway.Revision) (*slipway.Blueprint, error) {
	b := slipway.Blueprint{
		RevisionID: r.ID, Number: r.Number, ArtifactDigest: r.ArtifactDigest, Resources: resources(r), SecretReferences: r.SecretReferences,
	}
	if !r.Source.Built() {
		b.Image = text(r.SourceRevisionConfig.ImageURI)
	}
	var err error
	b.Env, b.Redact, err = s.environment(tx, d, r)
	if slipway.ErrorCode(err) == slipway.CodeInvalid {
		b.Broken, err = err.Error(), nil
	}
	return &b, err
}

// resources returns what the revision was sized as: by its own spec, or by the deployment's tiers.
func resources(r slipway.Revision) *slipway.ResourceSpec {
	if r.SourceConfig.ResourceSpec != nil {
		return r.SourceConfig.ResourceSpec
	}
	return slipway.TierSpec(r.ComputeTier, r.DatabaseTier)
}

// environment composes a revision's environment: what the build found in a .env file, over it the secrets, over both what
// the platform sets. The `env` map of the configuration lies below all of it and is read from the bundle.
func (s *Service) environment(tx slipway.Tx, d slipway.Deployment, r slipway.Revision) (env map[string]string, redact []string, err error) {
	if env, err = s.openSecrets(tx, r.BuildSecretSetID); err != nil {
		return nil, nil, err
	}
	for name := range env {
		if slipway.ReservedSecret(name, r.Source) {
			delete(env, name) // a .env file is not refused for a reserved name, it just does not count
		}
	}
	secrets, err := s.openSecrets(tx, r.SecretSetID)
	if err != nil {
		return nil, nil, err
	}
	all := map[string]string{}
	for name, value := range env {
		all["file "+name] = value
	}
	for name, value := range secrets {
		env[name], all[name] = value, value
	}
	for name, value := range injected(d, r) {
		env[name] = value
	}
	return env, slipway.Redactions(all), nil
}

// injected are the variables that tell user code where it runs (control-plane reference 8). They are no secrets.
func injected(d slipway.Deployment, r slipway.Revision) map[string]string {
	return map[string]string{
		"LANGSMITH_HOST_PROJECT_ID":   d.ID,
		"LANGSMITH_HOST_PROJECT_NAME": d.Name,
		"LANGSMITH_HOST_REVISION_ID":  r.ID,
		"LANGSMITH_DEPLOYMENT_NAME":   d.Name,
		"LANGSMITH_PROJECT":           d.Name,
		"LANGSMITH_TENANT_ID":         d.TenantID,
	}
}

// Report implements slipway.Feed.
func (s *Service) Report(ctx context.Context, report slipway.Report) error {
	return s.reportOf(ctx, "", report)
}

// reportOf takes the report of one listener. One that says nothing new wakes nobody, or listener and service would keep each
// other awake. A deployment of somebody else is as unknown as one that does not exist.
func (s *Service) reportOf(ctx context.Context, listenerID string, report slipway.Report) error {
	return wrap("take report", s.commit(ctx, func(tx slipway.Tx) (bool, error) {
		d, err := tx.Deployment("", report.DeploymentID)
		if slipway.ErrorCode(err) == slipway.CodeNotFound || err == nil && (d.Generation != report.Generation || d.ListenerID() != listenerID) {
			return false, slipway.Errorf(slipway.CodeStale, "generation %d of deployment %s is no longer the current one", report.Generation, report.DeploymentID)
		}
		if err != nil {
			return false, err
		}
		if report.Gone {
			return true, s.gone(tx, d)
		}
		return s.progress(tx, d, report)
	}))
}

// gone notes that a deleted deployment's workloads have ended, and removes the records of one that is purged: its name is
// free from now on.
func (s *Service) gone(tx slipway.Tx, d slipway.Deployment) error {
	switch {
	case d.Purged():
		return tx.PurgeDeployment(d.ID)
	case d.Retired:
		return tx.PutDeployment(d.TornDown(s.clock()))
	}
	return slipway.Errorf(slipway.CodeConflict, "deployment %s is not deleted and cannot be gone", d.ID)
}

func (s *Service) progress(tx slipway.Tx, d slipway.Deployment, report slipway.Report) (news bool, err error) {
	r, err := tx.Revision("", d.ID, report.RevisionID)
	if slipway.ErrorCode(err) == slipway.CodeNotFound {
		return false, slipway.Errorf(slipway.CodeStale, "revision %s is not known", report.RevisionID)
	}
	if err != nil || r.Status == report.Status {
		return false, err
	}
	switch report.Status {
	case slipway.Deploying:
		return true, s.move(tx, &r, slipway.Deploying, report.Reason)
	case slipway.Deployed:
		return true, s.deployed(tx, d, r)
	case slipway.DeployFailed:
		if err := s.move(tx, &r, slipway.DeployFailed, report.Reason); err != nil {
			return false, err
		}
		return true, s.settle(tx, d)
	}
	return false, slipway.Errorf(slipway.CodeInvalid, "a listener cannot report %s", report.Status)
}

// deployed makes the revision the active one. It is the only place that switches, and every switch is audited.
func (s *Service) deployed(tx slipway.Tx, d slipway.Deployment, r slipway.Revision) error {
	if r.Status == slipway.AwaitingDeploy {
		if err := s.move(tx, &r, slipway.Deploying, ""); err != nil {
			return err
		}
	}
	if err := s.move(tx, &r, slipway.Deployed, ""); err != nil {
		return err
	}
	before, after := d.ActiveRevisionID, r.ID
	d.ActiveRevisionID = after
	if err := s.settle(tx, d); err != nil {
		return err
	}
	who := slipway.Principal{ID: reporter(d), TenantID: d.TenantID}
	return s.auditDiff(tx, who, "switch_revision", d.ID, map[string]any{"name": d.Name, "from": before, "to": after},
		map[string]any{"active_revision_id": given(before)}, map[string]any{"active_revision_id": after})
}

// reporter is who is behind a report, for the audit log.
func reporter(d slipway.Deployment) string {
	if id := d.ListenerID(); id != "" {
		return "listener:" + id
	}
	return "listener"
}

// AppendLogs implements slipway.Feed.
func (s *Service) AppendLogs(ctx context.Context, entries []slipway.LogEntry) error {
	return wrap("store logs", s.storeLogs(ctx, entries))
}
