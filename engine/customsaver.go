package engine

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

// Some graphs keep their checkpoints in a checkpointer of the application (reference 13, custom parts). The store then has
// their threads and runs, and a worker is asked for everything that concerns checkpoints.

// savesElsewhere says whether a graph keeps its checkpoints in the application's checkpointer.
func (e *Engine) savesElsewhere(graphID string) bool {
	g, known := e.cfg.Graphs[graphID]
	return known && slices.Contains(e.cfg.Savers, g.Language)
}

// threadSavesElsewhere says it of a thread, by its last graph.
func (e *Engine) threadSavesElsewhere(t agent.Thread) bool {
	return e.savesElsewhere(parse(t.Metadata).text("graph_id"))
}

// saverDo asks the application's checkpointer, if the thread has one.
func (e *Engine) saverDo(ctx context.Context, t agent.Thread, do func(w agent.Worker) error) error {
	if !e.threadSavesElsewhere(t) {
		return nil
	}
	w, err := e.partWorker(ctx, agent.PartCheckpointer)
	if err != nil {
		return err
	}
	return do(w)
}

// checkRollback refuses a rollback that the application's checkpointer cannot carry out (reference 17.5).
func (e *Engine) checkRollback(ctx context.Context, graphID string) error {
	if !e.savesElsewhere(graphID) {
		return nil
	}
	w, err := e.partWorker(ctx, agent.PartCheckpointer)
	if err != nil {
		return err
	}
	if p := w.Info().Loaded(agent.PartCheckpointer); p == nil || !slices.Contains(p.Methods, "adelete_for_runs") {
		return slipway.Errorf(slipway.CodeInvalid,
			"multitask_strategy \"rollback\" needs a checkpointer with adelete_for_runs, and that of the application has none; use interrupt, or add the method")
	}
	return nil
}

// saverForgetRun removes what an ended run wrote from the application's checkpointer, if that can.
func (e *Engine) saverForgetRun(ctx context.Context, r agent.Run) error {
	if !e.savesElsewhere(r.GraphID) {
		return nil
	}
	w, err := e.partWorker(ctx, agent.PartCheckpointer)
	if err != nil {
		return err
	}
	if err = agent.SaverDeleteRuns(ctx, w, []string{r.ID}); slipway.ErrorCode(err) == slipway.CodeInvalid {
		return nil
	}
	return err
}

// saverPatience bounds what is asked of the application's checkpointer at the begin and the end of a run.
const saverPatience = 30 * time.Second

// undo removes what a rolled-back run wrote from the application's checkpointer, before its end is recorded.
func (x *execution) undo() {
	x.mu.Lock()
	rollback := x.action == string(agent.CancelRollback)
	x.mu.Unlock()
	if !rollback || x.run.Temporary || !x.e.savesElsewhere(x.run.GraphID) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), saverPatience)
	defer cancel()
	w, err := x.e.partWorker(ctx, agent.PartCheckpointer)
	if err == nil {
		err = agent.SaverDeleteRuns(ctx, w, []string{x.run.ID})
	}
	if err != nil {
		x.e.log.Error("removing the checkpoints of a rolled-back run failed", "run_id", x.run.ID, "thread_id", x.run.ThreadID, "error", err)
	}
}

// wrote says whether a run has written a checkpoint: the store knows, or the application's checkpointer does, whose latest
// checkpoint is then asked for the run it is of.
func (x *execution) wrote() bool {
	r := x.run
	if r.Epoch <= 1 || r.Temporary || !x.e.savesElsewhere(r.GraphID) {
		return r.Epoch > 1 && r.Checkpointed && !r.Temporary
	}
	ctx, cancel := context.WithTimeout(context.Background(), saverPatience)
	defer cancel()
	call, err := json.Marshal(map[string]any{
		"verb": "state.get", "graph_id": r.GraphID, "config": checkpointConfig(ctx, r.ThreadID, agent.CheckpointKey{}), "subgraphs": false,
	})
	if err != nil {
		return false
	}
	raw, err := x.seat.w.Call(ctx, call, nil)
	if err != nil {
		x.e.log.Warn("the checkpointer of the application does not tell the state of a run's thread; the run starts over", "run_id", r.ID, "error", err)
		return false
	}
	var state struct {
		Metadata struct {
			RunID string `json:"run_id"`
		} `json:"metadata"`
	}
	return json.Unmarshal(raw, &state) == nil && state.Metadata.RunID == r.ID
}
