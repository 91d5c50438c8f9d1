package intake

import (
	"context"

	"github.com/slipway-dev/slipway/beacon"
)

// AddSignals queues a batch of operational telemetry whose payload has been checked, and counts its items and how many of
// the request's were refused. Licence and time are filled in. Ingest never waits for a backend: with no room in the queue
// the batch is counted as dropped instead of stored.
func (s *Service) AddSignals(ctx context.Context, c Caller, batch beacon.Signals, refused int) error {
	batch.LicenceID, batch.ReceivedAt = c.licence.ID, s.cfg.Now()
	size := int64(len(batch.Payload))
	dropped := s.queued.Add(size) > s.cfg.QueueBytes+s.cfg.QueueBytes/4
	if dropped {
		batch.Payload = nil
		s.queued.Add(-size)
	}
	err := s.store.Update(ctx, func(tx beacon.Tx) error {
		l, err := s.admit(tx, c)
		if err != nil {
			return err
		}
		batch.LicenceID = l.ID
		return tx.AddSignals(batch, refused)
	})
	if err != nil {
		return err
	}
	if dropped {
		s.stats.dropped.Add(1)
	}
	if s.queued.Load() > s.cfg.QueueBytes {
		wake(s.sweep)
	}
	s.stats.items.add(batch.Kind, int64(batch.Items))
	s.stats.refused.add(batch.Kind, int64(refused))
	wake(s.arrived[batch.Kind])
	return nil
}
