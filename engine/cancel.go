package engine

import (
	"context"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

// CancelSelection says which runs to cancel: those of a thread by id, or all in flight with a status ("pending", "running"
// or "all"), or all in flight of an assistant.
type CancelSelection struct {
	ThreadID    string
	RunIDs      []string
	Status      string
	AssistantID string
	Filter      *agent.Filter // on the metadata of the runs' threads
}

// Cancel records a cancel and carries it out; with wait it returns when the run has stopped, also if it finished by itself
// meanwhile. A run that is neither pending nor running is CodeNotFound "No runs found to cancel".
func (e *Engine) Cancel(ctx context.Context, threadID, runID string, action agent.CancelAction, reason string, wait bool) error {
	t := e.hold(runID, threadID)
	defer t.drop()
	if wait && !t.executedHere() {
		t.attach()
	}
	f, err := e.store.Cancel(ctx, threadID, runID, or(action, agent.CancelInterrupt), reason, e.clock())
	if err != nil {
		return err
	}
	if f.Outcome != "" {
		e.settleRemote(f, f.Run)
		e.wakeAll()
		return nil
	}
	e.pushCancel(f.Run)
	if !wait {
		return nil
	}
	_, err = t.wait(ctx)
	return err
}

// pushCancel tells whoever executes the run to stop it; what has to be done is recorded already.
func (e *Engine) pushCancel(r agent.Run) {
	if r.Instance != e.cfg.Instance {
		e.publishCancel(r)
		return
	}
	ask := cancelAsk{action: string(or(r.CancelAction, agent.CancelInterrupt)), reason: r.CancelReason}
	e.mu.Lock()
	var x *execution
	if t := e.tracks[r.ID]; t != nil && t.exec != nil {
		x = t.exec
	}
	e.mu.Unlock()
	if x == nil {
		x = e.rememberCancel(r, ask)
	}
	if x != nil {
		x.cancel(ask.action, ask.reason)
	}
}

// rememberCancel keeps a cancel for an execution that is just being launched, and returns it if it is there now.
func (e *Engine) rememberCancel(r agent.Run, ask cancelAsk) *execution {
	t := e.hold(r.ID, r.ThreadID)
	e.mu.Lock()
	x := t.exec
	if x == nil && !t.isSettled() {
		t.asked = &ask
	}
	e.mu.Unlock()
	t.dropLater()
	return x
}

// CancelMany cancels several runs (POST /runs/cancel) and does not wait. Nothing to cancel is CodeNotFound.
func (e *Engine) CancelMany(ctx context.Context, s CancelSelection, action agent.CancelAction, reason string) error {
	runs, err := e.selected(ctx, s)
	if err != nil {
		return err
	}
	cancelled := 0
	for i := len(runs) - 1; i >= 0; i-- {
		err := e.Cancel(ctx, runs[i].ThreadID, runs[i].ID, action, reason, false)
		if slipway.ErrorCode(err) == slipway.CodeNotFound {
			continue
		}
		if err != nil {
			return err
		}
		cancelled++
	}
	if cancelled == 0 {
		return slipway.Errorf(slipway.CodeNotFound, "No runs found to cancel")
	}
	return nil
}

func (e *Engine) selected(ctx context.Context, s CancelSelection) ([]agent.Run, error) {
	if len(s.RunIDs) > 0 {
		runs := make([]agent.Run, 0, len(s.RunIDs))
		for _, id := range s.RunIDs {
			runs = append(runs, agent.Run{ID: id, ThreadID: s.ThreadID})
		}
		return e.onAllowedThreads(ctx, runs, s.Filter)
	}
	all, err := e.store.InFlight(ctx, s.ThreadID)
	if err != nil {
		return nil, err
	}
	runs := all[:0]
	for _, r := range all {
		wrongStatus := s.Status != "" && s.Status != "all" && string(r.Status) != s.Status
		if !wrongStatus && (s.AssistantID == "" || r.AssistantID == s.AssistantID) {
			runs = append(runs, r)
		}
	}
	return e.onAllowedThreads(ctx, runs, s.Filter)
}
