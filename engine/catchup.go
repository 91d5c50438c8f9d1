package engine

import (
	"context"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

// catchUp does what messages would have done that were lost: the store says what has become of the runs that readers here
// follow, which of the runs here are to stop, and what waits.
func (e *Engine) catchUp(ctx context.Context) error {
	e.system.clear()
	e.introduce(topicHello)
	e.repeatJoins()
	e.readHubsAgain()
	e.wake()
	e.wakeCrons()
	wakeLoop(e.noticeKick)
	return e.compare(ctx)
}

// compareFollowed is catchUp for the one loss that nobody notices: that of a publisher's last words before it died.
func (e *Engine) compareFollowed(ctx context.Context) error {
	if len(e.followed()) == 0 {
		return nil
	}
	return e.compare(ctx)
}

// compare settles what has ended elsewhere and stops what is cancelled.
func (e *Engine) compare(ctx context.Context) error {
	followed, executions := e.followed(), e.executions()
	if len(followed)+len(executions) == 0 {
		return nil
	}
	runs, err := e.store.InFlight(ctx, "")
	if err != nil {
		return err
	}
	open := make(map[string]agent.Run, len(runs))
	for _, r := range runs {
		open[r.ID] = r
	}
	for _, x := range executions {
		if r := open[x.run.ID]; r.CancelAction != "" && r.Epoch == x.run.Epoch {
			x.cancelUnlessTold(string(r.CancelAction), r.CancelReason)
		}
	}
	for _, t := range followed {
		if _, ok := open[t.runID]; ok {
			continue
		}
		if err := e.settleMissed(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// followed returns the runs that others execute and somebody here waits for.
func (e *Engine) followed() []*track {
	e.mu.Lock()
	var all []*track
	for _, t := range e.tracks {
		if t.exec == nil && t.holds > 0 {
			all = append(all, t)
		}
	}
	e.mu.Unlock()
	attached := all[:0]
	for _, t := range all {
		t.mu.Lock()
		if t.unremote != nil && !t.settled && t.err == nil {
			attached = append(attached, t)
		}
		t.mu.Unlock()
	}
	return attached
}

// settleMissed tells the end of a run that is no longer in flight. One whose row is gone may be about to be admitted, so it
// is looked for twice.
func (e *Engine) settleMissed(ctx context.Context, t *track) error {
	r, err := e.store.Run(ctx, "", t.runID)
	if slipway.ErrorCode(err) == slipway.CodeNotFound {
		if t.missedTwice() {
			t.abandon(slipway.Errorf(slipway.CodeUnavailable, "run %s has ended and what it said last was lost on the way to this server", t.runID))
		}
		return nil
	}
	if err != nil || inFlight(r) {
		return err
	}
	t.mu.Lock()
	t.breakOff() // frames before the end may be lost with it
	t.mu.Unlock()
	e.settleWatched(ctx, t, agent.Finished{Run: r, Outcome: r.Status})
	return nil
}

func (t *track) missedTwice() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.missed++
	return t.missed > 1
}

// cancelUnlessTold is cancel for a run that may have been told so before.
func (x *execution) cancelUnlessTold(action, reason string) {
	x.mu.Lock()
	told := x.grace != nil
	x.mu.Unlock()
	if !told {
		x.cancel(action, reason)
	}
}

// gap notes the number of a frame that came over the bus and says whether frames before it are missing; called with mu
// held. A smaller number is that of a later attempt.
func (t *track) gap(seq int64) bool {
	missing := t.heardSeq > 0 && seq > t.heardSeq+1
	t.heardSeq = seq
	return missing
}

// breakOff ends the streams here, whose clients connect again for what is missing; called with mu held.
func (t *track) breakOff() {
	for s := range t.subs {
		s.fail(errLost())
	}
	clear(t.subs)
}
