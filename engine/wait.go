package engine

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/slipway-dev/slipway/agent"
)

// Wait blocks until the run has ended and tells how (reference 4.3); a finished run answers at once.
func (e *Engine) Wait(ctx context.Context, threadID, runID string) (Result, error) {
	t := e.hold(runID, threadID)
	defer t.drop()
	if !t.executedHere() {
		t.attach() // before the store is read, so that no end is missed in between
	}
	r, err := e.store.Run(ctx, threadID, runID)
	if err != nil {
		return Result{}, err
	}
	if !inFlight(r) {
		return e.stored(ctx, r)
	}
	return t.wait(ctx)
}

// stored is the result of a run that ended before anybody here watched it.
func (e *Engine) stored(ctx context.Context, r agent.Run) (Result, error) {
	f := agent.Finished{Run: r, Outcome: r.Status}
	if !failed(r.Status) {
		t, err := e.store.Thread(ctx, r.ThreadID)
		if err != nil {
			return Result{}, err
		}
		f.Thread = &t
	}
	return Result{Run: r, Outcome: r.Status, Body: body(f, nil)}, nil
}

func failed(s agent.RunStatus) bool { return s == agent.RunError || s == agent.RunTimeout }

// body is what /wait answers (reference 4.3): from the worker's snapshot if there is one, else from the thread.
func body(f agent.Finished, s *agent.Snapshot) json.RawMessage {
	if failed(f.Outcome) {
		failure := f.Run.Failure
		if failure == nil {
			failure = &agent.Failure{Error: "Error", Message: "the run failed"}
		}
		return marshal(map[string]*agent.Failure{"__error__": failure})
	}
	var values, interrupts json.RawMessage
	switch {
	case f.Outcome == agent.RunSuccess && s != nil:
		values, interrupts = s.Values, s.Interrupts
	case f.Thread != nil:
		values = f.Thread.Values
		if f.Outcome == agent.RunSuccess {
			interrupts = parse(f.Thread.State)["interrupts"]
		}
	}
	return withInterrupts(null(values), interrupts)
}

// withInterrupts adds "__interrupt__" to an object without decoding it.
func withInterrupts(values, interrupts json.RawMessage) json.RawMessage {
	interrupts = bytes.TrimSpace(interrupts)
	if absent(interrupts) || string(interrupts) == "[]" {
		return values
	}
	v := bytes.TrimSpace(values)
	if len(v) < 2 || v[0] != '{' {
		return values
	}
	inner := bytes.TrimSpace(v[1 : len(v)-1])
	out := make([]byte, 0, len(v)+len(interrupts)+20)
	out = append(append(out, '{'), inner...)
	if len(inner) > 0 {
		out = append(out, ',')
	}
	out = append(append(out, `"__interrupt__":`...), interrupts...)
	return append(out, '}')
}
