package intake

import (
	"context"
	"sync/atomic"

	"github.com/slipway-dev/slipway/beacon"
)

// perKind is a counter for each kind of signals.
type perKind struct{ metrics, traces, logs atomic.Int64 }

func (p *perKind) of(kind beacon.SignalKind) *atomic.Int64 {
	switch kind {
	case beacon.Metrics:
		return &p.metrics
	case beacon.Traces:
		return &p.traces
	case beacon.Logs:
	}
	return &p.logs
}

func (p *perKind) add(kind beacon.SignalKind, n int64) { p.of(kind).Add(n) }

// counters is what a collector has done since it started.
type counters struct {
	transactions, duplicates, snapshots, limited, dropped, swept atomic.Int64
	items, refused, forwarded, undeliverable, retries            perKind
}

// KindStats is what a collector did with one kind of signals since it started.
type KindStats struct {
	Items         int64 // accepted
	Refused       int64 // refused by validation
	Forwarded     int64 // delivered to the backend
	Undeliverable int64 // refused by the backend for good
	Retries       int64 // attempts that failed and were repeated
}

// Stats is what a collector did since it started, and how it stands.
type Stats struct {
	Transactions, Duplicates, Snapshots int64
	Limited                             int64 // requests refused because an address made too many
	Dropped                             int64 // batches dropped for want of room or out of age
	Kinds                               map[beacon.SignalKind]KindStats
	Queue                               beacon.Queued
	Licences                            map[string]int // by status
}

// Stats tells what the collector did since it started, and how it stands.
func (s *Service) Stats(ctx context.Context) (Stats, error) {
	out := Stats{
		Transactions: s.stats.transactions.Load(), Duplicates: s.stats.duplicates.Load(), Snapshots: s.stats.snapshots.Load(),
		Limited: s.stats.limited.Load(), Dropped: s.stats.dropped.Load() + s.stats.swept.Load(),
		Kinds: map[beacon.SignalKind]KindStats{}, Licences: map[string]int{"active": 0, "expired": 0, "revoked": 0},
	}
	for _, kind := range beacon.SignalKinds() {
		out.Kinds[kind] = KindStats{
			Items: s.stats.items.of(kind).Load(), Refused: s.stats.refused.of(kind).Load(), Forwarded: s.stats.forwarded.of(kind).Load(),
			Undeliverable: s.stats.undeliverable.of(kind).Load(), Retries: s.stats.retries.of(kind).Load(),
		}
	}
	return out, s.store.View(ctx, func(tx beacon.Tx) (err error) {
		if out.Queue, err = tx.QueuedSignals(); err != nil {
			return err
		}
		licences, err := tx.Licences()
		for _, l := range licences {
			out.Licences[l.Status(s.cfg.Now())]++
		}
		return err
	})
}
