package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

// workerPatience is how long a question waits for a worker that can answer it.
const workerPatience = 10 * time.Second

// livePatience is how long the state of a thread at work waits for a worker before that of its last run is told: a graph may
// block the only worker there is.
const livePatience = 2 * time.Second

// State returns a ThreadState (reference 3): the latest from the thread's row, or while a run goes on from a worker; older
// ones and subgraphs from a worker.
func (e *Engine) State(ctx context.Context, q StateRequest) (json.RawMessage, error) {
	t, err := e.Thread(ctx, q.ThreadID)
	if err != nil {
		return nil, err
	}
	latest := q.Checkpoint.ID == "" && q.Checkpoint.Namespace == "" && !q.Subgraphs
	atWork := t.Status == agent.ThreadBusy
	switch {
	case latest && atWork:
		return e.liveState(ctx, t)
	case absent(t.State) && !atWork && q.Checkpoint.ID == "":
		return emptyState(t.ID), nil
	case latest:
		return t.State, nil
	}
	if err := e.requireCheckpoint(ctx, t.ID, q.Checkpoint, e.threadSavesElsewhere(t)); err != nil {
		return nil, err
	}
	return e.askState(ctx, t, q)
}

func (e *Engine) askState(ctx context.Context, t agent.Thread, q StateRequest) (json.RawMessage, error) {
	graph := parse(t.Metadata).text("graph_id")
	return e.ask(ctx, graph, map[string]any{
		"verb": "state.get", "graph_id": graph, "config": checkpointConfig(ctx, t.ID, q.Checkpoint), "subgraphs": q.Subgraphs,
	})
}

// liveState returns the state that the run of a thread has reached, or that of the last run where no worker can tell.
func (e *Engine) liveState(ctx context.Context, t agent.Thread) (json.RawMessage, error) {
	soon, cancel := context.WithTimeout(ctx, livePatience)
	defer cancel()
	state, err := e.askState(soon, t, StateRequest{ThreadID: t.ID})
	switch {
	case err == nil:
		return state, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case absent(t.State):
		return emptyState(t.ID), nil
	}
	e.log.Warn("state of a thread at work is that of its last run", "thread_id", t.ID, "error", err)
	return t.State, nil
}

// requireCheckpoint refuses a checkpoint that the thread does not have; a graph would take it for an empty state.
func (e *Engine) requireCheckpoint(ctx context.Context, threadID string, k agent.CheckpointKey, elsewhere bool) error {
	if k.ID == "" || elsewhere {
		return nil
	}
	k.ThreadID = threadID
	found, err := e.store.Checkpoint(ctx, k)
	if err == nil && found == nil {
		err = slipway.Errorf(slipway.CodeNotFound, "Checkpoint %s not found on thread %s", k.ID, threadID)
	}
	return err
}

// History returns an array of ThreadState, newest first.
func (e *Engine) History(ctx context.Context, q HistoryRequest) (json.RawMessage, error) {
	t, err := e.Thread(ctx, q.ThreadID)
	if err != nil {
		return nil, err
	}
	graph := parse(t.Metadata).text("graph_id")
	if graph == "" || absent(t.State) && t.Status != agent.ThreadBusy {
		return json.RawMessage("[]"), nil
	}
	var before *string
	if q.Before != "" {
		before = &q.Before
	}
	return e.ask(ctx, graph, map[string]any{
		"verb": "state.history", "graph_id": graph, "limit": q.Limit, "before": before, "filter": present(q.Metadata),
		"config": checkpointConfig(ctx, t.ID, agent.CheckpointKey{Namespace: q.Namespace}),
	})
}

// UpdateState changes a thread's state through its graph; the result is {checkpoint, configurable, checkpoint_id}.
func (e *Engine) UpdateState(ctx context.Context, u StateUpdate) (json.RawMessage, error) {
	t, err := e.Thread(ctx, u.ThreadID)
	if err != nil {
		return nil, err
	}
	graph := parse(t.Metadata).text("graph_id")
	if graph == "" {
		return nil, slipway.Errorf(slipway.CodeBadRequest,
			"Thread '%s' has no assigned graph ID. Make a run first or set metadata.graph_id.", t.ID)
	}
	if err := e.requireCheckpoint(ctx, t.ID, u.Checkpoint, e.savesElsewhere(graph)); err != nil {
		return nil, err
	}
	if err := e.refuseInFlight(ctx, t.ID); err != nil {
		return nil, err
	}
	answer, err := e.ask(ctx, graph, updateCall(ctx, graph, t.ID, u))
	if err != nil {
		return nil, err
	}
	return e.keepUpdate(ctx, t.ID, graph, answer)
}

// PatchState merges metadata into that of the thread's latest checkpoint; reserved keys are dropped. The result is
// {checkpoint}.
func (e *Engine) PatchState(ctx context.Context, threadID string, metadata json.RawMessage) (json.RawMessage, error) {
	key, err := e.store.PatchState(ctx, threadID, withoutReserved(object(metadata)), e.clock())
	if err != nil {
		return nil, err
	}
	checkpoint := fields{"checkpoint_map": json.RawMessage("null")}
	checkpoint.set("thread_id", key.ThreadID)
	checkpoint.set("checkpoint_ns", key.Namespace)
	checkpoint.set("checkpoint_id", key.ID)
	return fields{"checkpoint": checkpoint.json()}.json(), nil
}

func (e *Engine) refuseInFlight(ctx context.Context, threadID string) error {
	runs, err := e.store.InFlight(ctx, threadID)
	if err == nil && len(runs) > 0 {
		err = slipway.Errorf(slipway.CodeConflict, "Thread %s has in-flight runs", threadID)
	}
	return err
}

func updateCall(ctx context.Context, graph, threadID string, u StateUpdate) map[string]any {
	update := map[string]any{"values": null(u.Values), "as_node": nil}
	if u.AsNode != "" {
		update["as_node"] = u.AsNode
	}
	return map[string]any{
		"verb": "state.update", "graph_id": graph, "config": checkpointConfig(ctx, threadID, u.Checkpoint),
		"supersteps": [][]map[string]any{{update}},
	}
}

func (e *Engine) keepUpdate(ctx context.Context, threadID, graph string, answer json.RawMessage) (json.RawMessage, error) {
	var a struct {
		Config   json.RawMessage `json:"config"`
		Snapshot *agent.Snapshot `json:"snapshot"`
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		return nil, fmt.Errorf("read the worker's answer to a state update: %w", err)
	}
	if a.Snapshot != nil {
		t, err := e.store.PutState(ctx, threadID, graph, *a.Snapshot, e.clock())
		if err != nil {
			return nil, err
		}
		e.tellState(t)
	}
	configurable := identified(parse(parse(a.Config)["configurable"]), nil)
	checkpoint := fields{}
	for _, k := range []string{"thread_id", "checkpoint_ns", "checkpoint_id", "checkpoint_map"} {
		checkpoint[k] = null(configurable[k])
	}
	return fields{
		"checkpoint": checkpoint.json(), "configurable": configurable.json(), "checkpoint_id": null(configurable["checkpoint_id"]),
	}.json(), nil
}

func checkpointConfig(ctx context.Context, threadID string, k agent.CheckpointKey) json.RawMessage {
	c := fields{}
	c.set("thread_id", threadID)
	c.set("checkpoint_ns", k.Namespace)
	if k.ID != "" {
		c.set("checkpoint_id", k.ID)
	}
	identified(c, agent.UserFrom(ctx))
	return fields{"configurable": c.json(), "metadata": json.RawMessage("{}")}.json()
}

func emptyState(threadID string) json.RawMessage {
	return json.RawMessage(`{"values":{},"next":[],"tasks":[],"metadata":{},"created_at":null,"checkpoint":{"thread_id":` +
		string(quote(threadID)) + `,"checkpoint_ns":"","checkpoint_id":null,"checkpoint_map":null},"parent_checkpoint":null,"interrupts":[]}`)
}

// ask puts a question about a graph to a worker that has it.
func (e *Engine) ask(ctx context.Context, graph string, call map[string]any) (json.RawMessage, error) {
	w, err := e.workerFor(ctx, graph)
	if err != nil {
		return nil, err
	}
	if said := agent.EncryptionContextFrom(ctx); said != nil {
		call["encryption_context"] = said
	}
	envelope, err := json.Marshal(call)
	if err != nil {
		return nil, fmt.Errorf("encode a question to a worker: %w", err)
	}
	return w.Call(ctx, envelope, nil)
}

func (e *Engine) workerFor(ctx context.Context, graph string) (agent.Worker, error) {
	if _, known := e.cfg.Graphs[graph]; !known {
		return nil, slipway.Errorf(slipway.CodeNotFound, "Graph %q not found", graph)
	}
	return e.awaitWorker(ctx, fmt.Sprintf("graph %q", graph), func() (*seat, string) { return e.pick(graph), e.unable(graph) })
}
