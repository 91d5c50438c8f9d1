package control

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/slipway-dev/slipway"
)

// Bounds on the delivery of commit statuses.
const (
	statusBatch   = 32
	statusLimit   = 15 * time.Second // of one call of a host
	statusRetry   = time.Minute      // after which a status that a dead process took is delivered by another
	statusIdle    = time.Hour        // between looks when nothing is due and nothing changes
	statusAtOnce  = 4
	dashboardPath = "/o/%s/host/deployments/%s?revision=%s"
)

// note leaves word of a revision's move for its git host, in the move's own transaction.
func (s *Service) note(tx slipway.Tx, r slipway.Revision) error {
	if r.SourceConfig.IntegrationID == nil || r.SourceRevisionConfig.RepoCommitSHA == nil {
		return nil
	}
	d, err := tx.Deployment("", r.DeploymentID)
	if err != nil {
		return err
	}
	n, ok := slipway.NoteOf(d, r, s.RevisionPage(r), s.clock())
	if !ok {
		return nil
	}
	return tx.PutStatusNote(n)
}

// RevisionPage is where a person reads about a revision.
func (s *Service) RevisionPage(r slipway.Revision) string {
	return fmt.Sprintf(s.cfg.BaseURL+dashboardPath, r.TenantID, r.DeploymentID, r.ID)
}

// PostStatuses tells git hosts how the commits do until ctx ends, which it then returns. Changes wake it; the timer is for
// what has to be tried again. Several may run: each takes what it delivers.
func (s *Service) PostStatuses(ctx context.Context) error {
	for {
		_, changed := s.changed.state()
		busy, next, err := s.postDue(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			s.log.Warn("commit statuses cannot be delivered", "error", err)
			next = statusRetry
		}
		if busy && err == nil {
			continue
		}
		if err := wait(ctx, changed, next); err != nil {
			return err
		}
	}
}

// postDue delivers one batch of what is due. busy says that there may be more; next is when to look again.
func (s *Service) postDue(ctx context.Context) (busy bool, next time.Duration, err error) {
	first, err := s.nextNote(ctx)
	if err != nil || first.RevisionID == "" {
		return false, statusIdle, err
	}
	if early := first.NextAt.Sub(s.clock()); early > 0 {
		return false, early, nil
	}
	taken, err := s.takeNotes(ctx)
	if err != nil {
		return false, statusRetry, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(statusAtOnce)
	for _, n := range taken {
		group.Go(func() error { return s.postNote(ctx, n) })
	}
	return true, 0, group.Wait()
}

// nextNote looks without writing: most changes leave nothing to deliver.
func (s *Service) nextNote(ctx context.Context) (slipway.StatusNote, error) {
	var first slipway.StatusNote
	err := s.store.View(ctx, func(tx slipway.Tx) error {
		list, err := tx.StatusNotes(time.Time{}, 1)
		if err == nil && len(list) > 0 {
			first = list[0]
		}
		return err
	})
	return first, err
}

// takeNotes reserves what is due for this process for a while.
func (s *Service) takeNotes(ctx context.Context) ([]slipway.StatusNote, error) {
	var taken []slipway.StatusNote
	err := s.store.Update(ctx, func(tx slipway.Tx) error {
		now := s.clock()
		var err error
		if taken, err = tx.StatusNotes(now, statusBatch); err != nil {
			return err
		}
		for k := range taken {
			taken[k].Attempts++
			taken[k].NextAt = now.Add(statusRetry)
			if err := tx.RescheduleStatusNote(taken[k]); err != nil {
				return err
			}
		}
		return nil
	})
	return taken, err
}

// postNote delivers one status and forgets it, or puts it off. What the host will never take is given up with a word in the
// log: it is no reason to stop a build.
func (s *Service) postNote(ctx context.Context, n slipway.StatusNote) error {
	err := s.setStatus(ctx, n)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	now := s.clock()
	code := slipway.ErrorCode(err)
	hopeless := code == slipway.CodeNotFound || code == slipway.CodeBadRequest || code == slipway.CodeInvalid || code == slipway.CodeConflict
	if err != nil && (hopeless || n.Expired(now)) {
		s.log.Warn("commit status given up", "revision_id", n.RevisionID, "integration_id", n.IntegrationID, "attempts", n.Attempts, "error", err)
		err = nil
	}
	return s.store.Update(ctx, func(tx slipway.Tx) error {
		if err == nil {
			return tx.DeleteStatusNote(n)
		}
		n.NextAt = now.Add(n.RetryAfter())
		return tx.RescheduleStatusNote(n)
	})
}

func (s *Service) setStatus(ctx context.Context, n slipway.StatusNote) error {
	ctx, cancel := context.WithTimeout(ctx, statusLimit)
	defer cancel()
	_, host, err := s.host(ctx, n.TenantID, n.IntegrationID)
	if err != nil {
		return err
	}
	return host.SetStatus(ctx, n.Status)
}
