package supervise

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/worker/wire"
)

// operate applies a storage operation. Writes are handed to the store here, in the order of arrival; what has to be
// waited for is waited for beside the reader.
func (l *link) operate(f wire.Frame) error {
	var op wire.Op
	if err := decode(f, &op); err != nil {
		return l.misread(f, err)
	}
	r := l.run(op.Run)
	if op.Run != 0 && r == nil {
		l.answerError(f, slipway.Errorf(slipway.CodeStale, "the run has ended"))
		return nil
	}
	var fence agent.Fence
	if r != nil {
		fence = r.fence
	}
	commit, isWrite, err := l.write1(op, fence, f.Payload)
	switch {
	case err != nil:
		return err
	case !isWrite:
		l.asks.Go(func() { l.read(f, op) })
	case f.Kind == wire.Tell:
		l.commits <- pending{commit: commit, run: r}
	default:
		l.asks.Go(func() {
			if err := commit.Wait(context.Background()); err != nil {
				l.answerError(f, err)
				return
			}
			l.answer(f, map[string]any{"ok": true}, nil)
		})
	}
	return nil
}

// misread refuses an operation whose members have wrong types: user code has put a value of its own where an id belongs.
// That is the trouble of one run and not of its worker, which may run others.
func (l *link) misread(f wire.Frame, err error) error {
	if f.Kind == wire.Ask {
		l.answerError(f, slipway.Errorf(slipway.CodeInvalid, "storage operation: %w", err))
		return nil
	}
	var of struct {
		Run uint32 `json:"run"`
	}
	if json.Unmarshal(f.Envelope, &of) != nil {
		return err
	}
	if r := l.run(of.Run); r != nil {
		r.sink.Failed(slipway.Errorf(slipway.CodeInvalid, "storage operation: %w", err))
	}
	return nil
}

// write1 starts a checkpoint write; isWrite is false for every other operation.
func (l *link) write1(op wire.Op, fence agent.Fence, payload []byte) (commit agent.Commit, isWrite bool, err error) {
	ctx := context.Background()
	switch op.Op {
	case "checkpoint.put":
		cp, blobs, err := l.checkpoint(op, payload)
		if err != nil {
			return nil, true, err
		}
		return l.pool.store.PutCheckpoint(ctx, fence, cp, blobs), true, nil
	case "checkpoint.put_writes":
		writes, err := cutWrites(op, payload)
		if err != nil {
			return nil, true, err
		}
		return l.pool.store.PutWrites(ctx, fence, key(op), writes), true, nil
	}
	return nil, false, nil
}

func (l *link) checkpoint(op wire.Op, payload []byte) (agent.Checkpoint, []agent.ChannelBlob, error) {
	blobs := make([]agent.ChannelBlob, 0, len(op.Blobs))
	for _, b := range op.Blobs {
		bytes, err := wire.Cut(&payload, b.Size)
		if err != nil {
			return agent.Checkpoint{}, nil, err
		}
		blobs = append(blobs, agent.ChannelBlob{Channel: b.Channel, Version: b.Version, Typed: agent.Typed{Type: b.Type, Bytes: bytes}})
	}
	return agent.Checkpoint{
		CheckpointKey: key(op), ParentID: text(op.ParentID), Header: op.Header, Metadata: op.Metadata, RunID: text(op.RunID),
		Language: l.info.Language,
	}, blobs, nil
}

func cutWrites(op wire.Op, payload []byte) ([]agent.Write, error) {
	writes := make([]agent.Write, 0, len(op.Writes))
	for _, w := range op.Writes {
		bytes, err := wire.Cut(&payload, w.Size)
		if err != nil {
			return nil, err
		}
		writes = append(writes, agent.Write{
			TaskID: op.TaskID, TaskPath: op.TaskPath, Index: w.Index, Channel: w.Channel, Typed: agent.Typed{Type: w.Type, Bytes: bytes},
		})
	}
	return writes, nil
}

func key(op wire.Op) agent.CheckpointKey {
	return agent.CheckpointKey{ThreadID: text(op.ThreadID), Namespace: text(op.Namespace), ID: text(op.CheckpointID)}
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// read runs every operation but checkpoint writes and answers it.
func (l *link) read(f wire.Frame, op wire.Op) {
	envelope, payload, err := l.execute(context.Background(), op, f.Payload)
	if err != nil {
		l.answerError(f, err)
		return
	}
	if envelope == nil {
		envelope = map[string]any{}
	}
	envelope["ok"] = true
	l.answer(f, envelope, payload)
}

func (l *link) execute(ctx context.Context, op wire.Op, payload []byte) (map[string]any, []byte, error) {
	store := l.pool.store
	switch op.Op {
	case "checkpoint.get":
		return l.get(ctx, op)
	case "checkpoint.list":
		return l.list(ctx, op)
	case "checkpoint.delta_history":
		return l.delta(ctx, op)
	case "checkpoint.delete_thread":
		return nil, nil, store.DeleteCheckpoints(ctx, text(op.ThreadID))
	case "checkpoint.delete_for_runs":
		return nil, nil, store.DeleteCheckpointsOfRuns(ctx, op.RunIDs)
	case "checkpoint.copy_thread":
		return nil, nil, store.CopyCheckpoints(ctx, op.Source, op.Target)
	case "checkpoint.prune":
		return nil, nil, store.PruneCheckpoints(ctx, op.ThreadIDs, op.Strategy == "keep_latest")
	case "store.batch":
		return l.batch(ctx, op)
	case "cache.get", "cache.set", "cache.clear":
		return l.pool.caches[l.program.Language].apply(op, payload)
	case "value.get":
		return l.keptValue(ctx, op)
	case "value.set":
		return nil, nil, l.keepValue(ctx, op)
	}
	return nil, nil, slipway.Errorf(slipway.CodeInvalid, "unknown storage operation %q", op.Op)
}

func (l *link) get(ctx context.Context, op wire.Op) (map[string]any, []byte, error) {
	t, err := l.pool.store.Checkpoint(ctx, key(op))
	if err != nil || t == nil {
		return map[string]any{"tuple": nil}, nil, err
	}
	var payload []byte
	tuple := tupleOf(*t, &payload)
	return map[string]any{"tuple": tuple}, payload, nil
}

func (l *link) list(ctx context.Context, op wire.Op) (map[string]any, []byte, error) {
	q := agent.CheckpointQuery{
		ThreadID: text(op.ThreadID), Namespace: op.Namespace, ID: text(op.CheckpointID), Before: text(op.Before),
	}
	if len(op.Filter) > 0 && string(op.Filter) != "null" {
		q.Filter = op.Filter
	}
	if op.Limit != nil {
		if *op.Limit <= 0 {
			return map[string]any{"tuples": []wire.Tuple{}}, nil, nil
		}
		q.Limit = *op.Limit
	}
	found, err := l.pool.store.Checkpoints(ctx, q)
	if err != nil {
		return nil, nil, err
	}
	var payload []byte
	tuples := make([]wire.Tuple, 0, len(found))
	for _, t := range found {
		tuples = append(tuples, tupleOf(t, &payload))
	}
	return map[string]any{"tuples": tuples}, payload, nil
}

func tupleOf(t agent.CheckpointTuple, payload *[]byte) wire.Tuple {
	out := wire.Tuple{
		ThreadID: t.ThreadID, Namespace: t.Namespace, ID: t.ID, Header: t.Header, Metadata: t.Metadata,
		Values: make([]wire.Blob, 0, len(t.Values)),
	}
	if t.ParentID != "" {
		out.ParentID = &t.ParentID
	}
	for _, v := range t.Values {
		out.Values = append(out.Values, wire.Blob{Channel: v.Channel, Version: v.Version, Type: v.Type, Size: len(v.Bytes)})
		*payload = append(*payload, v.Bytes...)
	}
	out.Writes = writesOf(t.Writes, payload)
	return out
}

func writesOf(writes []agent.Write, payload *[]byte) []wire.Write {
	out := make([]wire.Write, 0, len(writes))
	for _, w := range writes {
		out = append(out, wire.Write{
			TaskID: w.TaskID, TaskPath: w.TaskPath, Index: w.Index, Channel: w.Channel, Type: w.Type, Size: len(w.Bytes),
		})
		*payload = append(*payload, w.Bytes...)
	}
	return out
}

func (l *link) delta(ctx context.Context, op wire.Op) (map[string]any, []byte, error) {
	found, err := l.pool.store.DeltaHistory(ctx, key(op), op.Channels)
	if err != nil {
		return nil, nil, err
	}
	var payload []byte
	channels := make([]map[string]any, 0, len(found))
	for _, d := range found {
		c := map[string]any{"channel": d.Channel, "seed": nil}
		if d.Seed != nil {
			c["seed"] = map[string]any{"type": d.Seed.Type, "size": len(d.Seed.Bytes)}
			payload = append(payload, d.Seed.Bytes...)
		}
		c["writes"] = writesOf(d.Writes, &payload)
		channels = append(channels, c)
	}
	return map[string]any{"channels": channels}, payload, nil
}

func (l *link) batch(ctx context.Context, op wire.Op) (map[string]any, []byte, error) {
	found, err := l.pool.handler.StoreBatch(ctx, op.Ops)
	if err != nil {
		return nil, nil, err
	}
	if len(found) != len(op.Ops) {
		return nil, nil, fmt.Errorf("store batch of %d operations has %d results", len(op.Ops), len(found))
	}
	results := make([]map[string]any, 0, len(found))
	for i, r := range found {
		results = append(results, resultOf(op.Ops[i], r))
	}
	return map[string]any{"results": results}, nil, nil
}

func resultOf(op agent.StoreOp, r agent.StoreResult) map[string]any {
	switch {
	case op.Get != nil:
		return map[string]any{"item": r.Item}
	case op.Search != nil:
		return map[string]any{"items": append([]agent.Item{}, r.Items...)}
	case op.Namespaces != nil:
		return map[string]any{"namespaces": append([][]string{}, r.Namespaces...)}
	}
	return map[string]any{}
}

func (l *link) answer(f wire.Frame, envelope map[string]any, payload []byte) {
	if f.Kind != wire.Ask {
		return
	}
	b, err := json.Marshal(envelope)
	if err == nil {
		err = l.send(wire.Frame{Kind: wire.Answer, Stream: f.Stream, Envelope: b, Payload: payload})
	}
	if err != nil {
		l.answerError(f, err)
	}
}

func (l *link) answerError(f wire.Frame, err error) {
	if f.Kind != wire.Ask {
		return
	}
	code := string(slipway.ErrorCode(err))
	if code != "stale" && code != "not_found" && code != "invalid" {
		code = "internal"
	}
	_ = l.sendJSON(wire.Answer, f.Stream, wire.ReturnMessage{Error: &wire.Error{Error: "StorageError", Message: wire.Text(err.Error()), Code: code}})
}
