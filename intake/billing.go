package intake

import (
	"context"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/beacon"
)

// AddTransactions counts trace transactions, each id of a customer once (spec 4.5), and returns how many were new. Either all
// of the new ones are durable, or the error says why none is. Those whose interval ended longer ago than records are kept
// could not be recognised if they came twice: they are not counted.
func (s *Service) AddTransactions(ctx context.Context, c Caller, list []beacon.TraceTransaction) (inserted int, err error) {
	now := s.cfg.Now()
	if err := validate(list, now); err != nil {
		return 0, err
	}
	horizon := now.Add(-s.cfg.KeepBilling)
	fresh := make([]beacon.TraceTransaction, 0, len(list))
	for _, t := range list {
		if !t.EndIntervalTime.Before(horizon) {
			fresh = append(fresh, t.Normal())
		}
	}
	late := len(list) - len(fresh)
	err = s.store.Update(ctx, func(tx beacon.Tx) error {
		l, err := s.admit(tx, c)
		if err != nil {
			return err
		}
		if late > 0 {
			if err := tx.AddLate(l, late, now); err != nil {
				return err
			}
		}
		inserted, err = tx.AddTransactions(l, fresh, now)
		return err
	})
	if err != nil {
		return 0, err
	}
	if late > 0 {
		s.cfg.Log.Warn("transactions older than the retention were not counted", "license_id", c.licence.ID, "count", late)
	}
	s.stats.transactions.Add(int64(inserted))
	s.stats.duplicates.Add(int64(len(fresh) - inserted))
	return inserted, nil
}

func validate(list []beacon.TraceTransaction, now time.Time) error {
	var problems slipway.Problems
	if len(list) > beacon.MaxTransactions {
		problems.Add([]any{"body", "trace_transactions"}, "there are %d transactions; send at most %d at once", len(list), beacon.MaxTransactions)
		return problems.Err()
	}
	for i, t := range list {
		t.Validate(&problems, []any{"body", "trace_transactions", i}, now)
		if len(problems) >= maxProblems {
			break
		}
	}
	return problems.Err()
}

// maxProblems bounds an answer; who sends more wrong fields than that learns nothing from more lines.
const maxProblems = 100

// PutUsage stores a usage snapshot. Snapshots may come late, twice and in any order; of two about the same interval the later
// sent one counts.
func (s *Service) PutUsage(ctx context.Context, c Caller, u beacon.UsageSnapshot) error {
	now := s.cfg.Now()
	var problems slipway.Problems
	u.Validate(&problems, now)
	if err := problems.Err(); err != nil {
		return err
	}
	err := s.store.Update(ctx, func(tx beacon.Tx) error {
		l, err := s.admit(tx, c)
		if err != nil {
			return err
		}
		return tx.PutSnapshot(l, u, now)
	})
	if err == nil {
		s.stats.snapshots.Add(1)
	}
	return err
}
