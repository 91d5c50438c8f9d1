package control

import (
	"context"
	"time"

	"github.com/slipway-dev/slipway"
)

// restTime is how long the timers rest after an error of the store.
const restTime = time.Second

// Run does what waits for time, until ctx ends: the steps of deletions, the end of retentions. The times are stored, so it
// does not matter when it starts, and several may run at once. It sleeps until the next time, or until something changes.
func (s *Service) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		_, changed := s.changed.state()
		next, err := s.Sweep(ctx)
		if err != nil && ctx.Err() == nil {
			s.log.Warn("timers not run", "error", err.Error(), "retry_in", restTime.String())
			next = s.clock().Add(restTime)
		}
		if !next.IsZero() {
			_ = wait(ctx, changed, max(next.Sub(s.clock()), time.Millisecond))
			continue
		}
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
	return nil
}

// Sweep does everything whose time has come and returns when there is more to do; zero = nothing waits for time.
func (s *Service) Sweep(ctx context.Context) (next time.Time, err error) {
	for _, sweep := range []func(context.Context) (time.Time, error){s.sweepDeletions, s.sweepClaims, s.sweepLogs} {
		at, err := sweep(ctx)
		if err != nil {
			return next, wrap("run timers", err)
		}
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next, nil
}

// sweepDeletions takes the due steps of deletions, one deployment a transaction.
func (s *Service) sweepDeletions(ctx context.Context) (time.Time, error) {
	for {
		at, err := s.dueDeletion(ctx)
		if err != nil || at.IsZero() || at.After(s.clock()) {
			return at, err
		}
		err = s.update(ctx, func(tx slipway.Tx) error {
			d, err := tx.DueDeployment()
			if slipway.ErrorCode(err) == slipway.CodeNotFound {
				return nil
			}
			if err != nil {
				return err
			}
			if d, due := d.Advanced(s.clock()); due {
				return tx.PutDeployment(d)
			}
			return nil
		})
		if err != nil {
			return time.Time{}, err
		}
	}
}

func (s *Service) dueDeletion(ctx context.Context) (at time.Time, err error) {
	err = s.store.View(ctx, func(tx slipway.Tx) error {
		d, err := tx.DueDeployment()
		if slipway.ErrorCode(err) == slipway.CodeNotFound {
			return nil
		}
		at = d.Due()
		return err
	})
	return at, err
}
