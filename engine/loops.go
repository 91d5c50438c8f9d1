package engine

import (
	"context"
	"time"
)

// every calls fn at a slow pace until ctx ends; what fails is logged and tried again the next time.
func (e *Engine) every(ctx context.Context, pause time.Duration, failed string, fn func(context.Context) error) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := fn(ctx); err != nil && ctx.Err() == nil {
			e.log.Error(failed, "error", err)
		}
	}
}

// whenDue calls fn at once, whenever kick says so, and after each pause that fn returns, until ctx ends.
func (e *Engine) whenDue(ctx context.Context, kick <-chan struct{}, failed string, fn func(context.Context) (time.Duration, error)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-kick:
		}
		pause, err := fn(ctx)
		if err != nil && ctx.Err() == nil {
			e.log.Error(failed, "error", err)
			pause = time.Second
		}
		timer.Reset(pause)
	}
}

// afterLosses catches up whenever messages of other instances may have been lost.
func (e *Engine) afterLosses(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.missedKick:
		}
		if err := e.catchUp(ctx); err != nil && ctx.Err() == nil {
			e.log.Error("catching up with other servers failed", "error", err)
			time.AfterFunc(time.Second, func() { wakeLoop(e.missedKick) })
		}
	}
}

// wakeLoop makes the loop behind kick look once more.
func wakeLoop(kick chan<- struct{}) {
	select {
	case kick <- struct{}{}:
	default: // it will look anyway
	}
}
