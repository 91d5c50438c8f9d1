package intake

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/slipway-dev/slipway/beacon"
)

const (
	forwardBatches = 256
	forwardBytes   = 4 << 20
	// forwardLease is how long a claimed batch is another collector's no more; longer than any attempt takes.
	forwardLease   = 2 * time.Minute
	forwardTimeout = time.Minute
	lookAgain      = 5 * time.Second // for batches that another collector took and did not deliver
	firstPause     = time.Second
	longestPause   = time.Minute
	longestAsked   = 10 * time.Minute // a backend that asks for more patience is asked earlier
)

// forward delivers the batches of a kind, oldest first, until ctx ends.
func (s *Service) forward(ctx context.Context, kind beacon.SignalKind, exporter beacon.Exporter) error {
	pause := firstPause
	for ctx.Err() == nil {
		list, err := s.claim(ctx, kind)
		if err == nil && len(list) > 0 {
			err = s.deliver(ctx, kind, list, exporter)
		}
		switch {
		case err != nil:
			s.retry(ctx, kind, err, pause)
			pause = min(2*pause, longestPause)
		case len(list) == 0:
			s.rest(ctx, lookAgain, s.arrived[kind])
		default:
			pause = firstPause
		}
	}
	return nil
}

func (s *Service) claim(ctx context.Context, kind beacon.SignalKind) (list []beacon.Signals, err error) {
	now := s.cfg.Now()
	err = s.store.Update(ctx, func(tx beacon.Tx) error {
		list, err = tx.ClaimSignals(kind, now, now.Add(forwardLease), forwardBatches, forwardBytes)
		return err
	})
	return list, err
}

// deliver sends claimed batches in one request. An error is one that may go away; the batches are free again then.
func (s *Service) deliver(ctx context.Context, kind beacon.SignalKind, list []beacon.Signals, exporter beacon.Exporter) error {
	var payload []byte
	var seqs []int64
	items := 0
	for _, b := range list {
		payload = append(payload, b.Payload...) // joined OTLP requests are one request
		seqs = append(seqs, b.Seq)
		items += b.Items
	}
	attempt, cancel := context.WithTimeout(ctx, forwardTimeout)
	defer cancel()
	err := exporter.Export(attempt, kind, payload)
	var later *beacon.Delay
	if errors.As(err, &later) || err != nil && attempt.Err() != nil {
		s.settle(ctx, func(tx beacon.Tx) error { return tx.ReleaseSignals(seqs) })
		return err
	}
	if err != nil {
		s.stats.undeliverable.add(kind, int64(items))
		s.cfg.Log.Error("the backend refused telemetry for good; it was dropped", "kind", kind, "items", items, "error", err)
	} else {
		s.stats.forwarded.add(kind, int64(items))
	}
	s.settle(ctx, func(tx beacon.Tx) error { return tx.DeleteSignals(seqs) })
	s.queued.Add(-int64(len(payload)))
	return nil
}

// settle records the outcome of an attempt, also when the collector is just stopping. If even that fails, the lease ends and
// the batches are sent again: a backend may get them twice, never not at all.
func (s *Service) settle(ctx context.Context, fn func(beacon.Tx) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := s.store.Update(ctx, fn); err != nil {
		s.cfg.Log.Error("the outcome of a delivery could not be recorded; it will be repeated", "error", err)
	}
}

// retry waits after a failure: as long as the backend asked for, or longer each time, never in step with others.
func (s *Service) retry(ctx context.Context, kind beacon.SignalKind, err error, pause time.Duration) {
	if ctx.Err() != nil {
		return
	}
	s.stats.retries.add(kind, 1)
	wait := pause/2 + rand.N(pause)
	var later *beacon.Delay
	if errors.As(err, &later) && later.After > 0 {
		wait = min(later.After, longestAsked)
	}
	s.cfg.Log.Warn("telemetry could not be forwarded; it stays queued", "kind", kind, "error", err, "retry_in", wait.String())
	s.rest(ctx, wait, nil)
}

func (s *Service) rest(ctx context.Context, d time.Duration, early <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-early:
	}
}
