package control

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/slipway-dev/slipway"
)

// beats remembers when listeners were last seen by this process; the store learns it at a fraction of the patience only, so
// that a heartbeat is no write.
type beats struct {
	since time.Time // nobody could be seen before
	kick  chan struct{}
	mu    sync.Mutex
	last  map[string]time.Time
}

func newBeats(since time.Time) *beats {
	return &beats{since: since, kick: make(chan struct{}, 1), last: map[string]time.Time{}}
}

// seen returns when the listener was last seen, by this process or another.
func (b *beats) seen(l slipway.Listener) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if at := b.last[l.ID]; at.After(l.LastSeenAt) {
		return at
	}
	return l.LastSeenAt
}

func (b *beats) beat(id string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last[id] = now
}

func (b *beats) forget(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.last, id)
}

// wake makes RunListeners look again: there is one more to expect.
func (b *beats) wake() {
	select {
	case b.kick <- struct{}{}:
	default:
	}
}

// RunListeners notices listeners that fall silent, until ctx ends; then it returns nil.
func (s *Service) RunListeners(ctx context.Context) error {
	for ctx.Err() == nil {
		next, err := s.SweepListeners(ctx)
		if err != nil && ctx.Err() == nil {
			s.log.Error("listeners not looked after", "error", err)
			next = s.clock().Add(s.cfg.ListenerPatience / 4)
		}
		s.awaitListeners(ctx, next)
	}
	return nil
}

// awaitListeners waits until next, zero = forever, or until there is one more listener to expect.
func (s *Service) awaitListeners(ctx context.Context, next time.Time) {
	var due <-chan time.Time
	if !next.IsZero() {
		timer := time.NewTimer(max(next.Sub(s.clock()), time.Millisecond))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
	case <-s.beats.kick:
	case <-due:
	}
}

// SweepListeners makes those that were silent for the patience count as lost: their deployments become UNKNOWN, and so do
// the revisions that were about to be deployed there (control-plane reference 4, 8). It returns when the next may be due,
// zero without any.
func (s *Service) SweepListeners(ctx context.Context) (next time.Time, err error) {
	var all []slipway.Listener
	err = s.store.View(ctx, func(tx slipway.Tx) (err error) {
		all, err = tx.Listeners(slipway.ListenerQuery{})
		return err
	})
	if err != nil {
		return next, fmt.Errorf("sweep listeners: %w", err)
	}
	now := s.clock()
	for _, l := range all {
		due := s.dueAt(l)
		switch {
		case l.Lost:
			continue
		case !due.After(now):
			if err := s.loseListener(ctx, l.ID, now); err != nil {
				return next, fmt.Errorf("sweep listeners: %w", err)
			}
			continue
		}
		if next.IsZero() || due.Before(next) {
			next = due
		}
	}
	return next, nil
}

// dueAt is when the listener counts as lost unless it is seen before.
func (s *Service) dueAt(l slipway.Listener) time.Time {
	l.LastSeenAt = s.beats.seen(l)
	return l.Heard(s.beats.since).Add(s.cfg.ListenerPatience)
}

func (s *Service) loseListener(ctx context.Context, id string, now time.Time) error {
	return s.commit(ctx, func(tx slipway.Tx) (bool, error) {
		l, err := tx.Listener("", id)
		if slipway.ErrorCode(err) == slipway.CodeNotFound {
			return false, nil
		}
		if err != nil || l.Lost || s.dueAt(l).After(now) {
			return false, err
		}
		l.LastSeenAt = s.beats.seen(l)
		l.Lost = true
		if err := tx.PutListener(l); err != nil {
			return false, err
		}
		s.log.Warn("listener lost", "listener_id", l.ID, "compute_id", l.ComputeID, "last_seen_at", l.LastSeenAt)
		return true, s.eachPlaced(tx, l, func(d slipway.Deployment, open []slipway.Revision) error {
			return s.loseDeployment(tx, d, open, l.Offline())
		})
	})
}

func (s *Service) loseDeployment(tx slipway.Tx, d slipway.Deployment, open []slipway.Revision, reason string) error {
	for _, r := range open {
		if r.Status != slipway.AwaitingDeploy && r.Status != slipway.Deploying {
			continue
		}
		if err := s.move(tx, &r, slipway.StatusUnknown, reason); err != nil {
			return err
		}
	}
	return tx.PutDeployment(d.Unreached(s.clock()))
}

// heard notes a protocol call of the listener: with the first one after a loss everything on it is what it was before.
func (s *Service) heard(ctx context.Context, l slipway.Listener, version string) error {
	now := s.clock()
	s.beats.beat(l.ID, now)
	fresh := now.Sub(l.LastSeenAt) < s.cfg.ListenerPatience/4
	if fresh && !l.Lost && (version == "" || version == l.Version) {
		return nil
	}
	found := false
	err := s.commit(ctx, func(tx slipway.Tx) (bool, error) {
		l, err := tx.Listener("", l.ID)
		if err != nil {
			return false, err
		}
		found, l.LastSeenAt, l.Lost = l.Lost, now, false
		if version != "" {
			l.Version = version
		}
		if err := tx.PutListener(l); err != nil || !found {
			return false, err
		}
		s.log.Info("listener found", "listener_id", l.ID, "compute_id", l.ComputeID)
		return true, s.eachPlaced(tx, l, func(d slipway.Deployment, open []slipway.Revision) error {
			return s.findDeployment(tx, d, open)
		})
	})
	if found {
		s.beats.wake() // it can be lost again
	}
	return err
}

func (s *Service) findDeployment(tx slipway.Tx, d slipway.Deployment, open []slipway.Revision) error {
	for _, r := range open {
		if r.Status != slipway.StatusUnknown {
			continue
		}
		before, err := knownStatus(tx, r)
		if err != nil {
			return err
		}
		if err := s.move(tx, &r, before, ""); err != nil {
			return err
		}
	}
	return tx.PutDeployment(d.Reached(len(open) > 0, s.clock()))
}

// knownStatus is the last status of an unknown revision that was known.
func knownStatus(tx slipway.Tx, r slipway.Revision) (slipway.RevisionStatus, error) {
	events, err := tx.RevisionEvents(r.ID)
	if err != nil {
		return "", err
	}
	for i := len(events) - 1; i >= 0; i-- {
		if events[i].Status != slipway.StatusUnknown {
			return events[i].Status, nil
		}
	}
	return slipway.AwaitingDeploy, nil
}

// eachPlaced calls fn for the listener's deployments that are not deleted, with their unfinished revisions.
func (s *Service) eachPlaced(tx slipway.Tx, l slipway.Listener, fn func(d slipway.Deployment, open []slipway.Revision) error) error {
	placed, err := tx.Deployments(slipway.DeploymentQuery{Listener: &l.ID})
	if err != nil {
		return err
	}
	for _, d := range placed {
		open, err := unfinished(tx, d.ID)
		if err != nil {
			return err
		}
		if err := fn(d, open); err != nil {
			return err
		}
	}
	return nil
}
