package control

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	useFlushEvery   = time.Minute
	auditSweepEvery = 6 * time.Hour
)

// Upkeep runs what no request should wait for, until ctx ends: it records when keys were last used, at most once a minute,
// and sweeps the audit log.
func (s *Service) Upkeep(ctx context.Context) error {
	flush, sweep := time.NewTicker(useFlushEvery), time.NewTicker(auditSweepEvery)
	defer flush.Stop()
	defer sweep.Stop()
	s.attempt(ctx, "audit log not swept", s.SweepAudit)
	for {
		select {
		case <-ctx.Done():
			ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			s.attempt(ending, "last use of keys not recorded", s.FlushKeyUse)
			return ctx.Err()
		case <-flush.C:
			s.attempt(ctx, "last use of keys not recorded", s.FlushKeyUse)
		case <-sweep.C:
			s.attempt(ctx, "audit log not swept", s.SweepAudit)
		}
	}
}

// attempt logs what goes wrong; the next round tries again.
func (s *Service) attempt(ctx context.Context, message string, fn func(context.Context) error) {
	if err := fn(ctx); err != nil && !errors.Is(err, context.Canceled) {
		s.log.Error(message, "error", err)
	}
}

// FlushKeyUse records when keys were last used, in one transaction.
func (s *Service) FlushKeyUse(ctx context.Context) error {
	if err := s.access.flush(ctx); err != nil {
		return fmt.Errorf("record the use of keys: %w", err)
	}
	return nil
}
