package intake

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/slipway-dev/slipway/beacon"
)

const (
	sweepBatch    = 500 // rows removed in one transaction, so that a sweep never holds up ingest
	queueInterval = 10 * time.Second
	billingSweeps = time.Hour
)

// Run sweeps and, with an exporter, forwards until ctx ends. It returns nil then.
func (s *Service) Run(ctx context.Context, exporter beacon.Exporter) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.every(ctx, queueInterval, s.sweep, s.SweepQueue) })
	g.Go(func() error { return s.every(ctx, billingSweeps, nil, s.SweepBilling) })
	if exporter != nil {
		for _, kind := range beacon.SignalKinds() {
			g.Go(func() error { return s.forward(ctx, kind, exporter) })
		}
	}
	return g.Wait()
}

// every does something now, after each interval and when it is asked for.
func (s *Service) every(ctx context.Context, interval time.Duration, asked <-chan struct{}, do func(context.Context) error) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		if err := do(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Log.Error("a sweep failed", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		case <-asked:
		}
	}
}

// SweepBilling removes transactions and snapshots that are older than they are kept; what they counted stays counted.
func (s *Service) SweepBilling(ctx context.Context) error {
	before := s.cfg.Now().Add(-s.cfg.KeepBilling)
	// A transaction is refused as late from the moment at which a sweep may remove it, and not before it is in the past for
	// every clock involved.
	before = before.Add(-beacon.Skew)
	if _, err := s.repeat(ctx, func(tx beacon.Tx) (int, error) { return tx.SweepTransactions(before, sweepBatch) }); err != nil {
		return err
	}
	_, err := s.repeat(ctx, func(tx beacon.Tx) (int, error) { return tx.SweepSnapshots(before, sweepBatch) })
	return err
}

// SweepQueue removes operational telemetry that is too old or for which there is no room, the oldest first, and counts it.
func (s *Service) SweepQueue(ctx context.Context) error {
	before := s.cfg.Now().Add(-s.cfg.KeepSignals)
	swept, err := s.repeat(ctx, func(tx beacon.Tx) (int, error) { return tx.SweepSignals(before, s.cfg.QueueBytes, sweepBatch) })
	s.stats.swept.Add(int64(swept))
	if err != nil {
		return err
	}
	return s.store.View(ctx, func(tx beacon.Tx) error {
		q, err := tx.QueuedSignals()
		s.queued.Store(q.Bytes)
		return err
	})
}

// repeat removes batch after batch until one is not full, and returns how many rows that were.
func (s *Service) repeat(ctx context.Context, remove func(beacon.Tx) (int, error)) (sum int, err error) {
	for {
		var n int
		if err := s.store.Update(ctx, func(tx beacon.Tx) (err error) {
			n, err = remove(tx)
			return err
		}); err != nil {
			return sum, err
		}
		sum += n
		if n < sweepBatch {
			return sum, nil
		}
	}
}
