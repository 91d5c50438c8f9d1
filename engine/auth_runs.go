package engine

import (
	"context"
	"encoding/json"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

func noRun() error { return slipway.Errorf(slipway.CodeNotFound, "Run not found") }

func noneToCancel() error { return slipway.Errorf(slipway.CodeNotFound, "No runs found to cancel") }

// allowRun asks whether a user may make a run: threads:create_run, which covers the thread that it uses or makes, and
// assistants:read but for the assistants of the graphs themselves (reference 12). The run acts as that user.
func (e *Engine) allowRun(ctx context.Context, u *agent.User, r RunRequest) (RunRequest, error) {
	r.User = u
	if !e.guarded() {
		return r, nil
	}
	if err := e.allowAssistant(ctx, u, r.AssistantID); err != nil {
		return r, err
	}
	r.ID = or(r.ID, e.ids())
	v, err := e.authorize(ctx, u, "threads", "create_run", runValue(r, e.assistantID(r.AssistantID)))
	if err != nil {
		return r, err
	}
	r.Filter, r.Metadata = v.filter, v.over("metadata", r.Metadata)
	kwargs := verdict{value: parse(v.value["kwargs"])}
	r.Input, r.Command = kwargs.over("input", r.Input), kwargs.over("command", r.Command)
	r.Config, r.Context = kwargs.over("config", r.Config), kwargs.over("context", r.Context)
	return r, nil
}

func (e *Engine) allowAssistant(ctx context.Context, u *agent.User, id string) error {
	a, err := e.namedAssistant(ctx, id)
	if err != nil || a.System {
		return err
	}
	v, err := e.authorize(ctx, u, "assistants", "read", map[string]any{"assistant_id": a.ID})
	if err == nil && !v.filter.Allows(object(a.Metadata)) {
		err = noNamedAssistant(id)
	}
	return err
}

func runValue(r RunRequest, assistantID string) map[string]any {
	strategy, ifMissing := or(r.Multitask, agent.MultitaskEnqueue), "reject"
	if r.CreateThread {
		ifMissing = "create"
	}
	k := kwargs(r, r.Stateless && !r.Keep)
	k.Config, k.Context = object(r.Config), present(r.Context)
	return map[string]any{
		"assistant_id": assistantID, "thread_id": text(r.ThreadID), "run_id": r.ID, "status": agent.RunPending, "metadata": object(r.Metadata),
		"prevent_insert_if_inflight": strategy == agent.MultitaskReject, "multitask_strategy": strategy, "if_not_exists": ifMissing,
		"after_seconds": r.After.Seconds(), "kwargs": k,
	}
}

func (g *Guard) allowRun(ctx context.Context, r RunRequest) (RunRequest, error) {
	return g.e.allowRun(ctx, agent.UserFrom(ctx), r)
}

// CreateRun is Engine.CreateRun for a user who may make the run.
func (g *Guard) CreateRun(ctx context.Context, r RunRequest) (agent.Run, error) {
	r, err := g.allowRun(ctx, r)
	if err != nil {
		return agent.Run{}, err
	}
	return g.e.CreateRun(ctx, r)
}

// CreateRuns is Engine.CreateRuns for a user who may make each of the runs.
func (g *Guard) CreateRuns(ctx context.Context, list []RunRequest) ([]agent.Run, error) {
	allowed := make([]RunRequest, 0, len(list))
	for _, r := range list {
		r, err := g.allowRun(ctx, r)
		if err != nil {
			return nil, err
		}
		allowed = append(allowed, r)
	}
	return g.e.CreateRuns(ctx, allowed)
}

// StreamRun is Engine.StreamRun for a user who may make the run.
func (g *Guard) StreamRun(ctx context.Context, r RunRequest) (agent.Run, *Subscription, error) {
	r, err := g.allowRun(ctx, r)
	if err != nil {
		return agent.Run{}, nil, err
	}
	return g.e.StreamRun(ctx, r)
}

// WaitRun is Engine.WaitRun for a user who may make the run.
func (g *Guard) WaitRun(ctx context.Context, r RunRequest) (agent.Run, *Waiter, error) {
	r, err := g.allowRun(ctx, r)
	if err != nil {
		return agent.Run{}, nil, err
	}
	return g.e.WaitRun(ctx, r)
}

// mayRun asks whether the user may do this to a run: the filter is held against the run's thread. hidden is the answer for
// a run that is not there, or must not seem to be.
func (g *Guard) mayRun(ctx context.Context, action, threadID, runID string, value map[string]any, hidden error) error {
	value["thread_id"], value["run_id"] = text(threadID), runID
	v, err := g.ask(ctx, "threads", action, value)
	if err != nil || v.filter == nil {
		return err
	}
	t, err := g.threadOf(ctx, threadID, runID)
	if slipway.ErrorCode(err) == slipway.CodeNotFound || err == nil && !v.filter.Allows(object(t.Metadata)) {
		return hidden
	}
	return err
}

// threadOf returns the thread that a run is or was on; with threadID it must be that one.
func (g *Guard) threadOf(ctx context.Context, threadID, runID string) (agent.Thread, error) {
	r, err := g.e.store.Run(ctx, threadID, runID)
	if err == nil {
		return g.e.Thread(ctx, r.ThreadID)
	}
	if slipway.ErrorCode(err) != slipway.CodeNotFound {
		return agent.Thread{}, err
	}
	t, err := g.e.store.GoneThread(ctx, runID)
	if err == nil && threadID != "" && t.ID != threadID {
		err = noRun()
	}
	return t, err
}

// JoinStream is Engine.JoinStream with threads:read.
func (g *Guard) JoinStream(ctx context.Context, threadID, runID string, from From) (*Subscription, error) {
	if err := g.mayRun(ctx, "read", threadID, runID, map[string]any{}, noRun()); err != nil {
		return nil, err
	}
	return g.e.JoinStream(ctx, threadID, runID, from)
}

// Wait is Engine.Wait with threads:read.
func (g *Guard) Wait(ctx context.Context, threadID, runID string) (Result, error) {
	if err := g.mayRun(ctx, "read", threadID, runID, map[string]any{}, noRun()); err != nil {
		return Result{}, err
	}
	return g.e.Wait(ctx, threadID, runID)
}

// Run is Engine.Run with threads:read.
func (g *Guard) Run(ctx context.Context, threadID, runID string) (agent.Run, error) {
	if err := g.mayRun(ctx, "read", threadID, runID, map[string]any{}, noRun()); err != nil {
		return agent.Run{}, err
	}
	return g.e.Run(ctx, threadID, runID)
}

// Runs is Engine.Runs with threads:search.
func (g *Guard) Runs(ctx context.Context, q agent.RunQuery) ([]agent.Run, error) {
	v, err := g.ask(ctx, "threads", "search", map[string]any{
		"thread_id": q.ThreadID, "metadata": object(nil), "values": object(nil), "status": text(string(q.Status)), "limit": q.Limit, "offset": q.Offset,
	})
	if err != nil {
		return nil, err
	}
	q.Filter = v.filter
	return g.e.Runs(ctx, q)
}

// DeleteRun is Engine.DeleteRun with threads:delete.
func (g *Guard) DeleteRun(ctx context.Context, threadID, runID string) error {
	if err := g.mayRun(ctx, "delete", threadID, runID, map[string]any{}, noRun()); err != nil {
		return err
	}
	return g.e.DeleteRun(ctx, threadID, runID)
}

// MayCancel says whether the user may cancel a run (threads:update): asked beforehand by whoever cancels it later, when
// nobody is there to ask.
func (g *Guard) MayCancel(ctx context.Context, threadID, runID string, action agent.CancelAction) error {
	return g.mayRun(ctx, "update", threadID, runID, map[string]any{"action": or(action, agent.CancelInterrupt)}, noneToCancel())
}

// Cancel is Engine.Cancel with threads:update.
func (g *Guard) Cancel(ctx context.Context, threadID, runID string, action agent.CancelAction, reason string, wait bool) error {
	if err := g.MayCancel(ctx, threadID, runID, action); err != nil {
		return err
	}
	return g.e.Cancel(ctx, threadID, runID, action, reason, wait)
}

// Disconnected cancels a run whose client has gone. The client has made the run, or MayCancel has said yes.
func (g *Guard) Disconnected(ctx context.Context, threadID, runID, reason string) error {
	return g.e.Cancel(ctx, threadID, runID, agent.CancelInterrupt, reason, false)
}

// CancelMany is Engine.CancelMany with threads:update, of the runs on threads that the filter allows.
func (g *Guard) CancelMany(ctx context.Context, s CancelSelection, action agent.CancelAction, reason string) error {
	v, err := g.ask(ctx, "threads", "update", map[string]any{"thread_id": text(s.ThreadID), "action": or(action, agent.CancelInterrupt)})
	if err != nil {
		return err
	}
	s.AssistantID = g.e.assistantID(s.AssistantID)
	s.Filter = v.filter
	return g.e.CancelMany(ctx, s, action, reason)
}

// onAllowedThreads keeps the runs on threads that a filter allows.
func (e *Engine) onAllowedThreads(ctx context.Context, runs []agent.Run, f *agent.Filter) ([]agent.Run, error) {
	if f == nil {
		return runs, nil
	}
	allowed := map[string]bool{}
	for from := 0; from < len(runs); from += threadsAtOnce {
		ids := make([]string, 0, threadsAtOnce)
		for _, r := range runs[from:min(from+threadsAtOnce, len(runs))] {
			ids = append(ids, r.ThreadID)
		}
		found, err := e.store.Threads(ctx, agent.ThreadQuery{IDs: ids, Filter: f})
		if err != nil {
			return nil, err
		}
		for _, t := range found {
			allowed[t.ID] = true
		}
	}
	kept := make([]agent.Run, 0, len(runs))
	for _, r := range runs {
		if allowed[r.ThreadID] {
			kept = append(kept, r)
		}
	}
	return kept, nil
}

// threadsAtOnce is how many threads a question about many names.
const threadsAtOnce = 500

// userOf returns whom a stored run request works for.
func userOf(request json.RawMessage) *agent.User {
	var r struct{ User *agent.User }
	if json.Unmarshal(request, &r) != nil {
		return nil
	}
	return r.User
}
