package control

import (
	"context"

	"github.com/slipway-dev/slipway"
)

// Deletion says how a deployment is deleted (control-plane reference 4).
type Deletion struct {
	Force          bool // remove the records of one that is deleted already without waiting for its data plane; final
	TracingProject bool // remove the tracing project too; else it stays for a later deployment of the name
}

// Delete takes a deployment out of sight at once. Its unfinished revisions are interrupted and, after the grace period,
// its workloads end; until the retention is over it can be restored. Deleting twice is no error. CodeBadRequest: Force on
// one that is not deleted.
func (s *Service) Delete(ctx context.Context, who slipway.Principal, id string, how Deletion) error {
	if err := authorize(who, mayDelete); err != nil {
		return err
	}
	return wrap("delete deployment", s.update(ctx, func(tx slipway.Tx) error { return s.deleteOne(tx, who, id, how) }))
}

func (s *Service) deleteOne(tx slipway.Tx, who slipway.Principal, id string, how Deletion) error {
	d, err := tx.Deployment(who.TenantID, id)
	if err != nil {
		return deploymentNotFound(id, err)
	}
	switch deleted := d.Status == slipway.DeploymentAwaitingDelete; {
	case deleted && how.Force:
		if err := s.condemnProject(tx, who, d, how); err != nil {
			return err
		}
		if err := s.auditDiff(tx, who, "purge_deployment", id, map[string]any{"name": d.Name, "force": true}, auditView(d), nil); err != nil {
			return err
		}
		return tx.PurgeDeployment(d.ID)
	case deleted:
		return s.condemnProject(tx, who, d, how)
	case how.Force:
		return slipway.Errorf(slipway.CodeBadRequest, "deployment %q is not deleted, so force does not apply; leave it out", d.Name)
	}
	if err := s.interruptAll(tx, d.ID); err != nil {
		return err
	}
	if _, err := projectGoes(tx, d, how.TracingProject); err != nil {
		return err
	}
	deleted := d.Deleted(s.clock(), s.cfg.Deletion)
	if err := tx.PutDeployment(deleted); err != nil {
		return err
	}
	return s.auditDiff(tx, who, "delete_deployment", id, map[string]any{"name": d.Name}, auditView(d), auditView(deleted))
}

// Deletions is what became of a deletion of several.
type Deletions struct {
	Deleted []string
	Failed  []FailedDeletion
}

// FailedDeletion is why one of several was not deleted.
type FailedDeletion struct{ ID, Detail string }

// DeleteAll deletes several deployments, each for itself, in the order given. CodeNotFound: none of them exists.
func (s *Service) DeleteAll(ctx context.Context, who slipway.Principal, ids []string) (Deletions, error) {
	if err := authorize(who, mayDelete); err != nil {
		return Deletions{}, err
	}
	var out Deletions
	err := s.update(ctx, func(tx slipway.Tx) error {
		out = Deletions{Deleted: []string{}, Failed: []FailedDeletion{}}
		var first error
		for _, id := range unique(ids) {
			err := s.deleteOne(tx, who, id, Deletion{})
			switch {
			case err == nil:
				out.Deleted = append(out.Deleted, id)
				continue
			case slipway.ErrorCode(err) != slipway.CodeNotFound:
				return err
			case first == nil:
				first = err
			}
			out.Failed = append(out.Failed, FailedDeletion{ID: id, Detail: err.Error()})
		}
		if len(out.Deleted) == 0 {
			return first
		}
		return nil
	})
	return out, wrap("delete deployments", err)
}

func unique(ids []string) []string {
	seen, out := map[string]bool{}, []string{}
	for _, id := range ids {
		if !seen[id] {
			seen[id] = true
			out = append(out, id)
		}
	}
	return out
}

// Restore brings a deleted deployment back: its active revision serves again, with its data, secrets and revisions
// (control-plane reference 4, 10 row 42). CodeBadRequest: it is not deleted, or is being purged.
func (s *Service) Restore(ctx context.Context, who slipway.Principal, id string) (Deployment, error) {
	if err := authorize(who, mayDelete); err != nil {
		return Deployment{}, err
	}
	var out Deployment
	err := s.update(ctx, func(tx slipway.Tx) error {
		d, err := tx.Deployment(who.TenantID, id)
		if err != nil {
			return deploymentNotFound(id, err)
		}
		before := d
		if d, err = d.Restored(s.clock()); err != nil {
			return err
		}
		project, err := tracingProject(tx, &d)
		if err != nil {
			return err
		}
		if err := tx.PutTracingProject(project); err != nil {
			return err
		}
		if err := tx.PutDeployment(d); err != nil {
			return err
		}
		if err := s.auditDiff(tx, who, "restore_deployment", id, map[string]any{"name": d.Name}, auditView(before), auditView(d)); err != nil {
			return err
		}
		out, err = s.shown(tx, who.TenantID, id)
		return err
	})
	return out, wrap("restore deployment", err)
}

// Purge ends the retention of a deleted deployment now. The data plane destroys its data, then its records go and its name
// is free; nothing brings it back. CodeBadRequest: it is not deleted.
func (s *Service) Purge(ctx context.Context, who slipway.Principal, id string) error {
	if err := authorize(who, mayDelete); err != nil {
		return err
	}
	return wrap("purge deployment", s.update(ctx, func(tx slipway.Tx) error {
		d, err := tx.Deployment(who.TenantID, id)
		if err != nil {
			return deploymentNotFound(id, err)
		}
		if d.Purged() {
			return nil
		}
		before := d
		if d, err = d.Purge(s.clock()); err != nil {
			return err
		}
		if err := tx.PutDeployment(d); err != nil {
			return err
		}
		return s.auditDiff(tx, who, "purge_deployment", id, map[string]any{"name": d.Name}, auditView(before), auditView(d))
	}))
}

// condemnProject lets the tracing project of a deployment that is deleted already go with it, if that is asked for now.
func (s *Service) condemnProject(tx slipway.Tx, who slipway.Principal, d slipway.Deployment, how Deletion) error {
	if !how.TracingProject {
		return nil
	}
	changed, err := projectGoes(tx, d, true)
	if err != nil || !changed {
		return err
	}
	return s.audit(tx, who, "delete_deployment", d.ID, map[string]any{"name": d.Name, "delete_tracing_project": true})
}

// projectGoes says whether the tracing project goes with its deployment when that is purged, or outlives it.
func projectGoes(tx slipway.Tx, d slipway.Deployment, goes bool) (changed bool, err error) {
	project, err := tx.TracingProjectByName(d.TenantID, d.Name)
	if slipway.ErrorCode(err) == slipway.CodeNotFound {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	owner := ""
	if goes {
		owner = d.ID
	}
	if project.DeploymentID == owner {
		return false, nil
	}
	project.DeploymentID = owner
	return true, tx.PutTracingProject(project)
}

func (s *Service) interruptAll(tx slipway.Tx, deploymentID string) error {
	open, err := unfinished(tx, deploymentID)
	if err != nil {
		return err
	}
	for _, r := range open {
		if err := s.move(tx, &r, slipway.Interrupted, "the deployment was deleted"); err != nil {
			return err
		}
	}
	return nil
}
