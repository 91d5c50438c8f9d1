package engine

import (
	"context"
	"encoding/json"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

// NodeUpdate is one update of a super-step: what a node would have returned, or a command (reference 3).
type NodeUpdate struct {
	Values  json.RawMessage `json:"values"`
	Command json.RawMessage `json:"command,omitempty"`
	AsNode  string          `json:"as_node"`
}

// CreateThreadWith makes a thread and applies super-steps to it in order, as one bulk update of its state. Where that fails
// there is no thread. A thread that exists already and may be reused is left as it is.
func (e *Engine) CreateThreadWith(ctx context.Context, t agent.Thread, reuse bool, steps [][]NodeUpdate) (agent.Thread, error) {
	graph := parse(t.Metadata).text("graph_id")
	if graph == "" {
		return t, slipway.Errorf(slipway.CodeInvalid, "supersteps need metadata.graph_id: it names the graph that applies them")
	}
	t = e.newThread(t)
	made, err := e.store.CreateThread(ctx, t, reuse)
	if err != nil || !made.CreatedAt.Equal(t.CreatedAt) {
		return made, err
	}
	if err := e.applySteps(ctx, made.ID, graph, steps); err != nil {
		return made, e.undoThread(ctx, made.ID, err)
	}
	return e.Thread(ctx, made.ID)
}

func (e *Engine) applySteps(ctx context.Context, threadID, graph string, steps [][]NodeUpdate) error {
	for _, step := range steps {
		for i := range step {
			step[i].Values = null(step[i].Values)
		}
	}
	answer, err := e.ask(ctx, graph, map[string]any{
		"verb": "state.update", "graph_id": graph, "config": checkpointConfig(ctx, threadID, agent.CheckpointKey{}), "supersteps": steps,
	})
	if err != nil {
		return err
	}
	_, err = e.keepUpdate(ctx, threadID, graph, answer)
	return err
}

// undoThread removes a thread whose first state could not be made, also when the client has gone, and returns why.
func (e *Engine) undoThread(ctx context.Context, id string, why error) error {
	if err := e.store.DeleteThread(context.WithoutCancel(ctx), id); err != nil {
		e.log.Error("a thread that could not be given its state was not removed", "thread_id", id, "error", err)
	}
	return why
}
