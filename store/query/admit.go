package query

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

// Admit records a new run (reference 17.5, 4.2).
func (a *Agent) Admit(ctx context.Context, in agent.Admission) (agent.Admitted, error) {
	return write(ctx, a.engine, func(c Conn) (agent.Admitted, error) { return a.admit(c, in) })
}

// AdmitAll records several runs or none.
func (a *Agent) AdmitAll(ctx context.Context, list []agent.Admission) ([]agent.Admitted, error) {
	return write(ctx, a.engine, func(c Conn) ([]agent.Admitted, error) {
		out := make([]agent.Admitted, 0, len(list))
		for _, in := range list {
			one, err := a.admit(c, in)
			if err != nil {
				return nil, err
			}
			out = append(out, one)
		}
		return out, nil
	})
}

func (a *Agent) admit(c Conn, in agent.Admission) (agent.Admitted, error) {
	t, fresh, err := admissionThread(c, in)
	if err != nil {
		return agent.Admitted{}, err
	}
	var inFlight []agent.Run
	if !fresh {
		if inFlight, err = all(c, scanRun, selectInFlight, t.ID); err != nil {
			return agent.Admitted{}, err
		}
	}
	out, left, err := a.supersede(c, inFlight, in)
	if err != nil {
		return agent.Admitted{}, err
	}
	if err := occupy(&t, in); err != nil {
		return agent.Admitted{}, err
	}
	keep := saveThread
	if fresh {
		keep = addThread
	}
	if err := keep(c, t); err != nil {
		return agent.Admitted{}, err
	}
	out.Thread = t.Thread
	out.Run, err = enter(c, in, left)
	out.Run.Followed = t.Followed.After(in.Now)
	return out, err
}

// admissionThread finds the thread of a run, or makes one that is not stored yet.
func admissionThread(c Conn, in agent.Admission) (t thread, fresh bool, err error) {
	t, ok, err := standing(c, in.Run.ThreadID, in.Now)
	switch {
	case err != nil:
		return t, false, err
	case ok && !in.Filter.Allows(t.Metadata):
		return t, false, noThread(in.Run.ThreadID)
	case ok:
		return t, false, nil
	case !in.CreateThread:
		return t, false, noThread(in.Run.ThreadID)
	}
	return newThread(agent.Thread{ID: in.Run.ThreadID, Metadata: in.ThreadMetadata, CreatedAt: in.Now, UpdatedAt: in.Now, TTL: in.ThreadTTL}), true, nil
}

// supersede applies the multitask rule to the runs in flight and returns those that still are.
func (a *Agent) supersede(c Conn, inFlight []agent.Run, in agent.Admission) (out agent.Admitted, left []agent.Run, err error) {
	if len(inFlight) == 0 || in.Run.Multitask == agent.MultitaskEnqueue || in.Run.Multitask == "" {
		return out, inFlight, nil
	}
	if in.Run.Multitask == agent.MultitaskReject {
		return out, nil, slipway.Errorf(slipway.CodeConflict, "Thread is already running a task. Wait for it to finish or choose a different multitask strategy.")
	}
	action := agent.CancelInterrupt
	if in.Run.Multitask == agent.MultitaskRollback {
		action = agent.CancelRollback
	}
	for _, r := range inFlight {
		cancel(&r, action, fmt.Sprintf("superseded by run %s", in.Run.ID))
		r.UpdatedAt = in.Now
		if r.Status == agent.RunRunning {
			left, out.Cancels = append(left, r), append(out.Cancels, r)
			if err := saveRun(c, r); err != nil {
				return out, nil, err
			}
			continue
		}
		if err := a.endPending(c, &r); err != nil {
			return out, nil, err
		}
		out.Ended = append(out.Ended, r)
	}
	return out, left, nil
}

// cancel records a cancel; a rollback is never weakened to an interrupt.
func cancel(r *agent.Run, action agent.CancelAction, reason string) {
	if r.CancelAction == agent.CancelRollback {
		return
	}
	r.CancelAction, r.CancelReason = action, reason
}

// endPending ends a pending run as its cancel asks.
func (a *Agent) endPending(c Conn, r *agent.Run) error {
	r.EndedAt = r.UpdatedAt
	if err := a.count(c, *r, r.EndedAt); err != nil {
		return err
	}
	if r.CancelAction == agent.CancelRollback {
		r.Status = agent.RunRollback
		return removeRun(c, *r)
	}
	r.Status = agent.RunInterrupted
	if err := announce(c, *r, nil); err != nil {
		return err
	}
	return saveRun(c, *r)
}

// occupy makes the thread show that the run is on it (reference 4.2).
func occupy(t *thread, in agent.Admission) error {
	known := json.RawMessage(`{"graph_id":` + encode(in.Run.GraphID) + `,"assistant_id":` + encode(in.Run.AssistantID) + `}`)
	metadata, err := merge(t.Metadata, known)
	if err != nil {
		return err
	}
	config, err := mergeConfig(t.Config, in.ThreadConfig)
	if err != nil {
		return err
	}
	t.Metadata, t.Config, t.Status, t.UpdatedAt = metadata, config, agent.ThreadBusy, in.Now
	return nil
}

// mergeConfig lays a config over another; configurable is merged key by key.
func mergeConfig(base, over json.RawMessage) (json.RawMessage, error) {
	if object(over) == "{}" {
		return json.RawMessage(object(base)), nil
	}
	var b, o struct {
		Configurable json.RawMessage `json:"configurable"`
	}
	if err := json.Unmarshal([]byte(object(base)), &b); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(over, &o); err != nil {
		return nil, slipway.Errorf(slipway.CodeInvalid, "the config %q is no JSON object: %w", over, err)
	}
	merged, err := merge(base, over)
	if err != nil || b.Configurable == nil || o.Configurable == nil {
		return merged, err
	}
	both, err := merge(b.Configurable, o.Configurable)
	if err != nil {
		return nil, err
	}
	return merge(merged, json.RawMessage(`{"configurable":`+string(both)+`}`))
}

// enter inserts the run, running at once if it may.
func enter(c Conn, in agent.Admission, left []agent.Run) (agent.Run, error) {
	r := in.Run
	r.Status, r.UpdatedAt, r.Metadata = agent.RunPending, in.Now, json.RawMessage(object(r.Metadata))
	if r.Multitask == "" {
		r.Multitask = agent.MultitaskEnqueue
	}
	if r.CreatedAt.IsZero() {
		r.CreatedAt = in.Now
	}
	now := in.ClaimFor != "" && micros(r.CreatedAt) <= micros(in.Now) && free(r, left)
	if now {
		claim(c, &r, in.ClaimFor, in.Now)
	}
	if err := addRun(c, r); err != nil || !now {
		return r, err
	}
	return r, c.Send(saveBefore, r.ID, r.ThreadID)
}

// free says whether nothing on the thread goes before r; delayed runs do not.
func free(r agent.Run, left []agent.Run) bool {
	for _, o := range left {
		before := o.CreatedAt.Before(r.CreatedAt) || o.CreatedAt.Equal(r.CreatedAt) && o.ID < r.ID
		if o.Status == agent.RunRunning || before {
			return false
		}
	}
	return true
}
