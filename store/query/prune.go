package query

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/slipway-dev/slipway/agent"
)

// DeleteCheckpoints removes everything of a thread's savers.
func (a *Agent) DeleteCheckpoints(ctx context.Context, threadID string) error {
	return a.engine.Write(ctx, func(c Conn) error { return dropCheckpoints(c, threadID) })
}

func dropCheckpoints(c Conn, threadID string) error {
	for _, statement := range []string{
		`DELETE FROM checkpoints WHERE thread_id = ?`, `DELETE FROM blobs WHERE thread_id = ?`, `DELETE FROM writes WHERE thread_id = ?`,
	} {
		if _, err := c.Exec(statement, threadID); err != nil {
			return err
		}
	}
	return nil
}

// DeleteCheckpointsOfRuns removes the checkpoints of runs with their writes and the blobs nothing names any more.
func (a *Agent) DeleteCheckpointsOfRuns(ctx context.Context, runIDs []string) error {
	return a.engine.Write(ctx, func(c Conn) error { return dropRunCheckpoints(c, "", runIDs) })
}

func scanKey(s scanner) (k agent.CheckpointKey, err error) {
	return k, s.Scan(&k.ThreadID, &k.Namespace, &k.ID)
}

// dropRunCheckpoints removes checkpoints by run, of one thread or with "" of all: a copied thread bears the run ids of
// its source.
func dropRunCheckpoints(c Conn, threadID string, runIDs []string) error {
	const selectKeys = `SELECT thread_id, ns, id FROM checkpoints WHERE run_id <> '' AND run_id = ?1 AND (?2 = '' OR thread_id = ?2)`
	var keys []agent.CheckpointKey
	for _, id := range runIDs {
		more, err := all(c, scanKey, selectKeys, id, threadID)
		if err != nil {
			return err
		}
		keys = append(keys, more...)
	}
	return dropKeys(c, keys)
}

func dropKeys(c Conn, keys []agent.CheckpointKey) error {
	threads := []string{}
	for _, k := range keys {
		if _, err := c.Exec(`DELETE FROM writes WHERE thread_id = ? AND ns = ? AND checkpoint_id = ?`, k.ThreadID, k.Namespace, k.ID); err != nil {
			return err
		}
		if _, err := c.Exec(`DELETE FROM checkpoints WHERE thread_id = ? AND ns = ? AND id = ?`, k.ThreadID, k.Namespace, k.ID); err != nil {
			return err
		}
		if !slices.Contains(threads, k.ThreadID) {
			threads = append(threads, k.ThreadID)
		}
	}
	for _, t := range threads {
		if err := dropOrphans(c, t); err != nil {
			return err
		}
	}
	return nil
}

// dropOrphans removes the blobs of a thread that no header names.
func dropOrphans(c Conn, threadID string) error {
	list, err := all(c, scanCheckpoint, `SELECT `+checkpointColumns+` FROM checkpoints WHERE thread_id = ?`, threadID)
	if err != nil {
		return err
	}
	named := map[blobKey]bool{}
	for _, t := range list {
		vs, err := versions(t.Header)
		if err != nil {
			return err
		}
		for channel, version := range vs {
			named[blobKey{threadID, t.Namespace, channel, version}] = true
		}
	}
	scan := func(s scanner) (k blobKey, err error) {
		k.thread = threadID
		return k, s.Scan(&k.ns, &k.channel, &k.version)
	}
	stored, err := all(c, scan, `SELECT ns, channel, version FROM blobs WHERE thread_id = ?`, threadID)
	for _, k := range stored {
		if err == nil && !named[k] {
			_, err = c.Exec(`DELETE FROM blobs WHERE thread_id = ? AND ns = ? AND channel = ? AND version = ?`, k.thread, k.ns, k.channel, k.version)
		}
	}
	return err
}

// hasDeltas says whether a thread uses delta channels (reference 14.5).
func (a *Agent) hasDeltas(c Conn, threadID string) (bool, error) {
	query := `SELECT 1 FROM checkpoints WHERE thread_id = ? AND ` + a.dialect.Contains("metadata") + ` LIMIT 1`
	_, ok, err := one(c, scalar[int], query, threadID, `{"counters_since_delta_snapshot":{}}`)
	return ok, err
}

// PruneCheckpoints keeps the latest checkpoint per namespace or none, with what delta channels need.
func (a *Agent) PruneCheckpoints(ctx context.Context, threadIDs []string, keepLatest bool) error {
	return a.engine.Write(ctx, func(c Conn) error {
		for _, id := range threadIDs {
			err := error(nil)
			if keepLatest {
				err = prune(c, id)
			} else {
				err = dropCheckpoints(c, id)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func prune(c Conn, threadID string) error {
	list, err := all(c, scanCheckpoint, `SELECT `+checkpointColumns+` FROM checkpoints WHERE thread_id = ? ORDER BY id DESC`, threadID)
	if err != nil {
		return err
	}
	keep := map[agent.CheckpointKey]bool{}
	latest := map[string]bool{}
	for _, t := range list {
		if latest[t.Namespace] {
			continue
		}
		latest[t.Namespace], keep[t.CheckpointKey] = true, true
		path, err := deltaPath(c, t)
		if err != nil {
			return err
		}
		for _, k := range path {
			keep[k] = true
		}
	}
	var drop []agent.CheckpointKey
	for _, t := range list {
		if !keep[t.CheckpointKey] {
			drop = append(drop, t.CheckpointKey)
		}
	}
	return dropKeys(c, drop)
}

// deltaPath returns the ancestors a checkpoint's delta channels need: up to the nearest seed of each.
func deltaPath(c Conn, t agent.CheckpointTuple) ([]agent.CheckpointKey, error) {
	var m struct {
		Counters map[string]json.RawMessage `json:"counters_since_delta_snapshot"`
	}
	if err := json.Unmarshal(t.Metadata, &m); err != nil || len(m.Counters) == 0 {
		return nil, err
	}
	var channels []string
	for channel := range m.Counters {
		channels = append(channels, channel)
	}
	var path []agent.CheckpointKey
	_, err := history(c, t, channels, func(k agent.CheckpointKey) { path = append(path, k) })
	return path, err
}

// DeltaHistory returns the past of delta channels seen from a checkpoint (reference 14.5).
func (a *Agent) DeltaHistory(ctx context.Context, key agent.CheckpointKey, channels []string) ([]agent.DeltaHistory, error) {
	return read(ctx, a.engine, func(c Conn) ([]agent.DeltaHistory, error) {
		w, args := ` WHERE thread_id = ? AND ns = ? AND id = ?`, []any{key.ThreadID, key.Namespace, key.ID}
		if key.ID == "" {
			w, args = ` WHERE thread_id = ? AND ns = ? ORDER BY id DESC LIMIT 1`, args[:2]
		}
		t, ok, err := one(c, scanCheckpoint, `SELECT `+checkpointColumns+` FROM checkpoints`+w, args...)
		if err != nil || !ok || len(channels) == 0 {
			return []agent.DeltaHistory{}, err
		}
		return history(c, t, channels, func(agent.CheckpointKey) {})
	})
}

// history walks the ancestors of a checkpoint until every channel has its seed; visit hears of each of them.
func history(c Conn, t agent.CheckpointTuple, channels []string, visit func(agent.CheckpointKey)) ([]agent.DeltaHistory, error) {
	out := make([]agent.DeltaHistory, len(channels))
	open := map[string]*agent.DeltaHistory{}
	for i, channel := range channels {
		out[i].Channel = channel
		open[channel] = &out[i]
	}
	const ancestor = `SELECT ` + checkpointColumns + ` FROM checkpoints WHERE thread_id = ? AND ns = ? AND id = ?`
	for len(open) > 0 && t.ParentID != "" {
		parent, ok, err := one(c, scanCheckpoint, ancestor, t.ThreadID, t.Namespace, t.ParentID)
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		visit(parent.CheckpointKey)
		list := []agent.CheckpointTuple{parent}
		if err := fillWrites(c, list); err != nil {
			return nil, err
		}
		if err := fillValues(c, list); err != nil {
			return nil, err
		}
		collect(open, list[0])
		t = parent
	}
	for i := range out {
		slices.Reverse(out[i].Writes)
	}
	return out, nil
}

// collect takes an ancestor's writes, newest first, and closes the channels it has a blob for.
func collect(open map[string]*agent.DeltaHistory, t agent.CheckpointTuple) {
	for _, w := range slices.Backward(t.Writes) {
		if h := open[w.Channel]; h != nil {
			h.Writes = append(h.Writes, w)
		}
	}
	for _, b := range t.Values {
		if h := open[b.Channel]; h != nil {
			seed := b.Typed
			h.Seed = &seed
			delete(open, b.Channel)
		}
	}
}
