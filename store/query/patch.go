package query

import (
	"context"
	"encoding/json"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

const (
	latestRoot    = `SELECT ` + checkpointColumns + ` FROM checkpoints WHERE thread_id = ? AND ns = '' ORDER BY id DESC LIMIT 1`
	patchMetadata = `UPDATE checkpoints SET metadata = ? WHERE thread_id = ? AND ns = '' AND id = ?`
)

// PatchState merges metadata into that of the latest root checkpoint (reference 3).
func (a *Agent) PatchState(ctx context.Context, threadID string, metadata json.RawMessage, now time.Time) (agent.CheckpointKey, error) {
	return write(ctx, a.engine, func(c Conn) (agent.CheckpointKey, error) {
		t, err := getLive(c, threadID, now)
		if err != nil {
			return agent.CheckpointKey{}, err
		}
		latest, ok, err := one(c, scanCheckpoint, latestRoot, threadID)
		if err == nil && !ok {
			err = slipway.Errorf(slipway.CodeNotFound, "Thread with ID %s has no checkpoint", threadID)
		}
		if err != nil {
			return agent.CheckpointKey{}, err
		}
		merged, err := merge(latest.Metadata, metadata)
		if err != nil {
			return agent.CheckpointKey{}, err
		}
		if _, err := c.Exec(patchMetadata, secretObject(merged), threadID, latest.ID); err != nil {
			return agent.CheckpointKey{}, err
		}
		return latest.CheckpointKey, patchShown(c, t, metadata, now)
	})
}

// patchShown makes the state the thread shows bear the metadata too.
func patchShown(c Conn, t thread, metadata json.RawMessage, now time.Time) error {
	if t.State == nil {
		return nil
	}
	var state map[string]json.RawMessage
	if err := json.Unmarshal(t.State, &state); err != nil {
		return err
	}
	merged, err := merge(state["metadata"], metadata)
	if err != nil {
		return err
	}
	state["metadata"] = merged
	if t.State, err = json.Marshal(state); err != nil {
		return err
	}
	t.UpdatedAt = now
	return saveThread(c, t)
}
