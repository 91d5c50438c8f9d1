package control

import (
	"context"

	"github.com/slipway-dev/slipway"
)

// Revision returns one revision of a deployment of the caller's tenant.
func (s *Service) Revision(ctx context.Context, who slipway.Principal, deploymentID, id string) (slipway.Revision, error) {
	if err := authorize(who, mayRead); err != nil {
		return slipway.Revision{}, err
	}
	var out slipway.Revision
	err := s.store.View(ctx, func(tx slipway.Tx) (err error) {
		out, err = visibleRevision(tx, who.TenantID, deploymentID, id)
		return err
	})
	return out, wrap("get revision", err)
}

// Revisions returns one page of a deployment's revisions, newest first.
func (s *Service) Revisions(ctx context.Context, who slipway.Principal, q slipway.RevisionQuery) ([]slipway.Revision, error) {
	if err := authorize(who, mayRead); err != nil {
		return nil, err
	}
	q.TenantID = who.TenantID
	var out []slipway.Revision
	err := s.store.View(ctx, func(tx slipway.Tx) (err error) {
		if _, err = visible(tx, who.TenantID, q.DeploymentID); err != nil {
			return err
		}
		out, err = tx.Revisions(q)
		return err
	})
	return out, wrap("list revisions", err)
}

// Events returns the steps of a revision's life, oldest first.
func (s *Service) Events(ctx context.Context, who slipway.Principal, deploymentID, id string) ([]slipway.RevisionEvent, error) {
	if err := authorize(who, mayRead); err != nil {
		return nil, err
	}
	var out []slipway.RevisionEvent
	err := s.store.View(ctx, func(tx slipway.Tx) (err error) {
		if _, err = visibleRevision(tx, who.TenantID, deploymentID, id); err != nil {
			return err
		}
		out, err = tx.RevisionEvents(id)
		return err
	})
	return out, wrap("list revision events", err)
}

// Revise makes a revision whatever the request holds: without fields, of the code as it is now (control-plane reference 2).
func (s *Service) Revise(ctx context.Context, who slipway.Principal, deploymentID string, in slipway.DeploymentPatch) (slipway.Revision, error) {
	if err := authorize(who, mayUpdate); err != nil {
		return slipway.Revision{}, err
	}
	d, err := s.patch(ctx, who, deploymentID, in, patchRule{check: slipway.Revise})
	if err != nil {
		return slipway.Revision{}, wrap("create revision", err)
	}
	return s.Revision(ctx, who, deploymentID, d.LatestRevisionID)
}

// Redeploy makes a new revision of an old one's blueprint: its artifact if it has one, never the latest code
// (control-plane reference 4).
func (s *Service) Redeploy(ctx context.Context, who slipway.Principal, deploymentID, id string) (Deployment, error) {
	if err := authorize(who, mayUpdate); err != nil {
		return Deployment{}, err
	}
	var out Deployment
	err := s.update(ctx, func(tx slipway.Tx) error {
		d, err := visible(tx, who.TenantID, deploymentID)
		if err != nil {
			return err
		}
		old, err := visibleRevision(tx, who.TenantID, deploymentID, id)
		if err != nil {
			return err
		}
		latest, err := latestNumber(tx, d.ID)
		if err != nil {
			return err
		}
		if old, err = s.replayable(tx, old); err != nil {
			return err
		}
		change := slipway.Replay(d, old, latest, who.ID, s.clock(), s.ids)
		if err := s.write(tx, change); err != nil {
			return err
		}
		detail := map[string]any{"name": d.Name, "revision_id": change.Revision.ID, "replay_of": old.ID}
		if err := s.auditDiff(tx, who, "update_deployment", d.ID, detail, auditView(d), auditView(change.Deployment)); err != nil {
			return err
		}
		out, err = s.shown(tx, who.TenantID, d.ID)
		return err
	})
	return s.revealed(ctx, who, out, wrap("redeploy revision", err))
}

// replayable returns the revision as it can be repeated: one whose artifact was given up to make room is built again, from
// the same commit or archive. CodeBadRequest: the archive is gone too.
func (s *Service) replayable(tx slipway.Tx, old slipway.Revision) (slipway.Revision, error) {
	if old.ArtifactDigest == "" || !old.Source.Built() {
		return old, nil
	}
	known, err := tx.Artifact(old.ArtifactDigest)
	switch {
	case slipway.ErrorCode(err) == slipway.CodeNotFound || err == nil && !known.Collected():
		return old, nil
	case err != nil:
		return old, err
	}
	old.ArtifactDigest, old.BuildSecretSetID = "", ""
	why, err := archiveGone(tx, old)
	if why != "" {
		return old, slipway.Errorf(slipway.CodeBadRequest, "revision %s cannot be redeployed: what was built of it was given up to make room, and %s", old.ID, why)
	}
	return old, err
}

// Interrupt stops a revision's build or rollout; what serves goes on serving. CodeBadRequest if it has ended already.
func (s *Service) Interrupt(ctx context.Context, who slipway.Principal, deploymentID, id string) (slipway.Revision, error) {
	if err := authorize(who, mayUpdate); err != nil {
		return slipway.Revision{}, err
	}
	var out slipway.Revision
	err := s.update(ctx, func(tx slipway.Tx) error {
		d, err := visible(tx, who.TenantID, deploymentID)
		if err != nil {
			return err
		}
		r, err := visibleRevision(tx, who.TenantID, deploymentID, id)
		if err != nil {
			return err
		}
		if r.Status.Terminal() {
			return slipway.Errorf(slipway.CodeBadRequest, "revision %s is %s already and cannot be interrupted", id, r.Status)
		}
		before := map[string]any{"revision_status": r.Status}
		if err := s.move(tx, &r, slipway.Interrupted, "interrupted by "+who.ID); err != nil {
			return err
		}
		out = r
		if err := s.settle(tx, d); err != nil {
			return err
		}
		return s.auditDiff(tx, who, "update_deployment", d.ID, map[string]any{"name": d.Name, "interrupted": id}, before, map[string]any{"revision_status": r.Status})
	})
	return out, wrap("interrupt revision", err)
}

func visibleRevision(tx slipway.Tx, tenantID, deploymentID, id string) (slipway.Revision, error) {
	if _, err := visible(tx, tenantID, deploymentID); err != nil {
		return slipway.Revision{}, err
	}
	r, err := tx.Revision(tenantID, deploymentID, id)
	if slipway.ErrorCode(err) == slipway.CodeNotFound {
		return r, slipway.Errorf(slipway.CodeNotFound, "Revision ID %s not found.", id)
	}
	return r, err
}
