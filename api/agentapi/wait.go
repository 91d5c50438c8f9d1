package agentapi

import (
	"context"
	"net/http"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/engine"
)

// waitRun answers POST …/runs/wait (reference 4.3).
func (a *API) waitRun(w http.ResponseWriter, r *http.Request) error {
	call, err := a.runCall(w, r)
	if err != nil {
		return err
	}
	run, waiter, err := a.engine.WaitRun(r.Context(), call.request)
	if err != nil {
		return err
	}
	defer waiter.Close()
	w.Header().Set("Content-Location", runURL(run, call.request.Stateless))
	a.answerResult(w, r, run, waiter.Result, call.cancelOnDisconnect)
	return nil
}

// joinRun answers GET …/join.
func (a *API) joinRun(w http.ResponseWriter, r *http.Request) error {
	threadID, runID, err := runPath(r)
	if err != nil {
		return err
	}
	cancel, err := queryBool(r, "cancel_on_disconnect")
	if err != nil {
		return err
	}
	run, err := a.engine.Run(r.Context(), threadID, runID)
	if err == nil && cancel {
		err = a.engine.MayCancel(r.Context(), threadID, runID, agent.CancelInterrupt)
	}
	if err != nil {
		return err
	}
	a.answerResult(w, r, run, func(ctx context.Context) (engine.Result, error) {
		result, err := a.engine.Wait(ctx, threadID, runID)
		if slipway.ErrorCode(err) == slipway.CodeNotFound {
			return a.removed(ctx, run)
		}
		return result, err
	}, cancel)
	return nil
}

// removed is the result of a run that went while somebody began to wait for it: the thread's values, as after a rollback.
func (a *API) removed(ctx context.Context, run agent.Run) (engine.Result, error) {
	t, err := a.engine.Thread(ctx, run.ThreadID)
	if err != nil && slipway.ErrorCode(err) != slipway.CodeNotFound {
		return engine.Result{}, err
	}
	return engine.Result{Run: run, Outcome: agent.RunRollback, Body: t.Values}, nil
}

type ended struct {
	result engine.Result
	err    error
}

// answerResult sends the headers at once, newlines while the run goes on, and its result. When the wait cannot be ended
// honestly (the server is shutting down) the connection is cut: the client asks again.
func (a *API) answerResult(w http.ResponseWriter, r *http.Request, run agent.Run, wait func(context.Context) (engine.Result, error), cancel bool) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Location", runURL(run, false)+"/join")
	h.Set("X-Accel-Buffering", "no")
	control := http.NewResponseController(w)
	_ = control.Flush()
	done := make(chan ended, 1)
	go func() {
		result, err := wait(r.Context())
		done <- ended{result, err}
	}()
	tick := time.NewTicker(a.cfg.Heartbeat)
	defer tick.Stop()
	for {
		select {
		case end := <-done:
			a.writeResult(w, r, run, end, cancel)
			return
		case <-tick.C:
			_, _ = w.Write([]byte("\n"))
			_ = control.Flush()
		}
	}
}

func (a *API) writeResult(w http.ResponseWriter, r *http.Request, run agent.Run, end ended, cancel bool) {
	switch {
	case end.err == nil:
		_, _ = w.Write(orNull(end.result.Body))
	case r.Context().Err() != nil:
		a.disconnected(r, run, cancel)
	default:
		a.cfg.Log.Warn("wait ended early", "run_id", run.ID, "error", end.err)
		panic(http.ErrAbortHandler)
	}
}

// disconnected cancels the run of a client that went, if it asked for that.
func (a *API) disconnected(r *http.Request, run agent.Run, cancel bool) {
	if !cancel {
		return
	}
	ctx := context.WithoutCancel(r.Context())
	if err := a.engine.Disconnected(ctx, run.ThreadID, run.ID, reasonDisconnected); err != nil {
		a.cfg.Log.Debug("nothing to cancel after a disconnect", "run_id", run.ID, "error", err)
	}
}
