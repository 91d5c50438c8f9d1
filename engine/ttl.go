package engine

import (
	"context"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

// sweepBatch is how many expired threads are looked up at once.
const sweepBatch = 100

// sweepThreads carries out TTLs that are over, at most Config.SweepLimit of them (reference 17.7). Other instances may be
// at it too: each step is idempotent.
func (e *Engine) sweepThreads(ctx context.Context) error {
	for left := e.cfg.SweepLimit; left > 0; left -= sweepBatch {
		due, err := e.store.DueThreads(ctx, e.clock(), min(left, sweepBatch))
		if err != nil {
			return err
		}
		for _, t := range due {
			if err := e.expire(ctx, t); err != nil {
				return err
			}
		}
		if len(due) < sweepBatch {
			return nil
		}
	}
	return nil
}

func (e *Engine) expire(ctx context.Context, t agent.Thread) error {
	if t.TTL.Strategy == agent.TTLKeepLatest {
		if err := e.saverDo(ctx, t, func(w agent.Worker) error { return agent.SaverPrune(ctx, w, []string{t.ID}, true) }); err != nil &&
			slipway.ErrorCode(err) != slipway.CodeInvalid { // a checkpointer that cannot prune keeps everything
			return err
		}
		return e.store.KeepLatest(ctx, t.ID, e.clock())
	}
	err := e.dropThread(ctx, t.ID, "thread expired")
	if slipway.ErrorCode(err) == slipway.CodeNotFound {
		return nil
	}
	return err
}
