package control

import (
	"context"
	"fmt"

	"github.com/slipway-dev/slipway"
)

// update runs one write transaction and wakes everyone whom it concerns once it is durable.
func (s *Service) update(ctx context.Context, fn func(tx slipway.Tx) error) error {
	return s.commit(ctx, func(tx slipway.Tx) (bool, error) { return true, fn(tx) })
}

// commit is update for what may turn out to change nothing: without news nobody is woken.
func (s *Service) commit(ctx context.Context, fn func(tx slipway.Tx) (news bool, err error)) error {
	var seen *tracked
	news := false
	err := s.store.Update(ctx, func(tx slipway.Tx) (err error) {
		seen = &tracked{Tx: tx}
		if news, err = fn(seen); err != nil {
			return err
		}
		if err := s.enqueue(seen); err != nil {
			return err
		}
		return attemptDone(ctx, tx)
	})
	if err == nil && news {
		s.wake(seen)
	}
	return err
}

// wrap prefixes an internal error with the operation; errors with a code are for the user and stay as they are.
func wrap(operation string, err error) error {
	if err == nil || slipway.ErrorCode(err) != slipway.CodeInternal {
		return err
	}
	return fmt.Errorf("%s: %w", operation, err)
}

// write stores what a change comes to and lets the deployment's queue of revisions go on.
func (s *Service) write(tx slipway.Tx, c slipway.Change) error {
	set, err := s.sealed(tx, c)
	if err != nil {
		return err
	}
	if err := tx.PutDeployment(c.Deployment); err != nil {
		return err
	}
	if c.Secrets != nil {
		if err := tx.PutSecretSet(set); err != nil {
			return err
		}
	}
	if c.Revision == nil {
		return nil
	}
	if err := s.begin(tx, *c.Revision); err != nil {
		return err
	}
	return s.settle(tx, c.Deployment)
}

// begin writes a new revision with its first events. One that lacks what it would be made of ends with CREATE_FAILED; the
// change that asked for it stands, and the next revision may have it.
func (s *Service) begin(tx slipway.Tx, r slipway.Revision) error {
	if err := tx.PutRevision(r); err != nil {
		return err
	}
	if err := s.event(tx, r); err != nil {
		return err
	}
	reason, err := s.unmakeable(tx, r)
	if err != nil {
		return err
	}
	if reason != "" {
		return s.move(tx, &r, slipway.CreateFailed, reason)
	}
	return s.move(tx, &r, slipway.Queued, "")
}

// unmakeable says what of a revision's blueprint is lost, in one sentence a user can act on; "" = it is all there.
func (s *Service) unmakeable(tx slipway.Tx, r slipway.Revision) (string, error) {
	for _, set := range []string{r.SecretSetID, r.BuildSecretSetID} {
		_, err := s.openSecrets(tx, set)
		switch slipway.ErrorCode(err) {
		case "":
		case slipway.CodeInvalid:
			return err.Error(), nil
		case slipway.CodeNotFound:
			return "its secrets are not stored any more; set them again", nil
		default:
			return "", err
		}
	}
	return archiveGone(tx, r)
}

// move takes a revision one step further; the event of it is kept forever.
func (s *Service) move(tx slipway.Tx, r *slipway.Revision, to slipway.RevisionStatus, reason string) error {
	if r.Status == to {
		return nil
	}
	moved, err := r.Move(to, reason, s.clock())
	if err != nil {
		return err
	}
	*r = moved
	if err := tx.PutRevision(moved); err != nil {
		return err
	}
	if err := s.note(tx, moved); err != nil {
		return err
	}
	return s.event(tx, moved)
}

func (s *Service) event(tx slipway.Tx, r slipway.Revision) error {
	return tx.AppendRevisionEvent(slipway.RevisionEvent{RevisionID: r.ID, Status: r.Status, Reason: r.StatusReason, At: s.clock()})
}

// settle lets the newest queued revision go on if none is in progress, and brings the deployment's status and generation
// up to date. It is the end of every transaction that moves a revision.
func (s *Service) settle(tx slipway.Tx, d slipway.Deployment) error {
	open, err := unfinished(tx, d.ID)
	if err != nil {
		return err
	}
	p := slipway.Promote(open)
	for _, r := range p.Skipped {
		if err := s.move(tx, &r, slipway.Skipped, "a newer revision took its place"); err != nil {
			return err
		}
	}
	if p.Next != nil {
		if err := s.move(tx, p.Next, p.Next.Ready(), ""); err != nil {
			return err
		}
	}
	now := s.clock()
	return tx.PutDeployment(d.Settled(len(open) > 0, now).Touched(now))
}

func unfinished(tx slipway.Tx, deploymentID string) ([]slipway.Revision, error) {
	var statuses []slipway.RevisionStatus
	for _, status := range slipway.RevisionStatuses() {
		if !status.Terminal() {
			statuses = append(statuses, status)
		}
	}
	return tx.Revisions(slipway.RevisionQuery{DeploymentID: deploymentID, Statuses: statuses})
}

// newestRevision returns the revision that was made last; nil = there is none.
func newestRevision(tx slipway.Tx, deploymentID string) (*slipway.Revision, error) {
	newest, err := tx.Revisions(slipway.RevisionQuery{DeploymentID: deploymentID, Limit: 1})
	if err != nil || len(newest) == 0 {
		return nil, err
	}
	return &newest[0], nil
}

// latestNumber returns the number of the newest revision; 0 = there is none.
func latestNumber(tx slipway.Tx, deploymentID string) (int64, error) {
	newest, err := newestRevision(tx, deploymentID)
	return numberOf(newest), err
}

func numberOf(r *slipway.Revision) int64 {
	if r == nil {
		return 0
	}
	return r.Number
}
