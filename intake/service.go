// Package intake holds the collector's use cases (spec 4.5; control-plane reference 9): it issues and verifies licences,
// counts billing telemetry once, queues operational telemetry and forwards it, keeps records as long as it should, and
// reports.
package intake

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/beacon"
)

// Config holds the settings of a collector. Zero fields take the defaults.
type Config struct {
	Now slipway.Clock
	IDs slipway.IDs
	Log *slog.Logger

	Rate        int           // requests that one address, and one licence, may make within Window; default 2 000
	Window      time.Duration // default 10 s
	KeepBilling time.Duration // transactions and snapshots, after their interval's end; default 761 days (25 months)
	KeepSignals time.Duration // operational telemetry that could not be forwarded; default 72 h
	QueueBytes  int64         // bound of the queue of operational telemetry; default 1 GiB
}

// The defaults of Config.
const (
	DefaultRate        = 2000
	DefaultWindow      = 10 * time.Second
	DefaultKeepBilling = 761 * 24 * time.Hour
	DefaultKeepSignals = 72 * time.Hour
	DefaultQueueBytes  = 1 << 30
)

func (c Config) withDefaults() Config {
	if c.Rate == 0 {
		c.Rate = DefaultRate
	}
	if c.Window == 0 {
		c.Window = DefaultWindow
	}
	if c.KeepBilling == 0 {
		c.KeepBilling = DefaultKeepBilling
	}
	if c.KeepSignals == 0 {
		c.KeepSignals = DefaultKeepSignals
	}
	if c.QueueBytes == 0 {
		c.QueueBytes = DefaultQueueBytes
	}
	return c
}

// Service is a collector. It is safe for concurrent use; Run does what is not done on a request.
type Service struct {
	store     beacon.Store
	keys      beacon.Keys
	cfg       Config
	addresses *limiter
	licences  *limiter
	arrived   map[beacon.SignalKind]chan struct{} // wakes the forwarder of a kind
	sweep     chan struct{}                       // asks for a sweep of the queue now
	queued    atomic.Int64                        // bytes in the queue: exact after a sweep, then what came in is added
	stats     counters
}

// New makes a collector.
func New(store beacon.Store, keys beacon.Keys, cfg Config) *Service {
	cfg = cfg.withDefaults()
	s := &Service{
		store: store, keys: keys, cfg: cfg, sweep: make(chan struct{}, 1), arrived: map[beacon.SignalKind]chan struct{}{},
		addresses: newLimiter(cfg.Rate, cfg.Window), licences: newLimiter(cfg.Rate, cfg.Window),
	}
	for _, kind := range beacon.SignalKinds() {
		s.arrived[kind] = make(chan struct{}, 1)
	}
	return s
}

// Ready says whether the store answers.
func (s *Service) Ready(ctx context.Context) error {
	return s.store.View(ctx, func(tx beacon.Tx) error {
		_, err := tx.QueuedSignals()
		return err
	})
}

// JWKS is the key set that licences and tokens verify with.
func (s *Service) JWKS() ([]byte, error) {
	ring, err := s.keys.Ring()
	if err != nil {
		return nil, err
	}
	return ring.Public().JWKS(), nil
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it is awake
	}
}
