package query

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/agent"
)

const (
	insertBlob    = `INSERT INTO blobs (thread_id, ns, channel, version, type, bytes) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`
	putCheckpoint = `
INSERT INTO checkpoints (thread_id, ns, id, parent_id, run_id, language, metadata, header) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (thread_id, ns, id) DO UPDATE SET header = excluded.header, metadata = excluded.metadata`
	markCheckpointed = `UPDATE runs SET checkpointed = 1 WHERE id = ?`
	bindLanguage     = `UPDATE threads SET language = ? WHERE id = ? AND language = ''`
)

// PutCheckpoint stores blobs and the checkpoint in one step.
func (a *Agent) PutCheckpoint(_ context.Context, f agent.Fence, cp agent.Checkpoint, blobs []agent.ChannelBlob) agent.Commit {
	return a.engine.Enqueue(func(c Conn) error {
		marked, err := check(c, f)
		if err != nil {
			return err
		}
		for _, b := range blobs {
			if err := c.Send(insertBlob, cp.ThreadID, cp.Namespace, b.Channel, b.Version, b.Type, hiddenBytes(b.Typed)); err != nil {
				return fmt.Errorf("put a blob: %w", err)
			}
		}
		err = c.Send(putCheckpoint, cp.ThreadID, cp.Namespace, cp.ID, cp.ParentID, cp.RunID, cp.Language, secretObject(object(cp.Metadata)), object(cp.Header))
		if err != nil {
			return fmt.Errorf("put a checkpoint: %w", err)
		}
		if !marked {
			if err := c.Send(markCheckpointed, f.RunID); err != nil {
				return err
			}
		}
		if !marked || cp.RunID == "" {
			err = c.Send(bindLanguage, cp.Language, cp.ThreadID)
		}
		return err
	})
}

const (
	writeColumns = `thread_id, ns, checkpoint_id, task_id, idx, task_path, channel, type, bytes`
	insertWrite  = `INSERT INTO writes (` + writeColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`
	replaceWrite = `INSERT INTO writes (` + writeColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (thread_id, ns, checkpoint_id, task_id, idx) DO UPDATE SET task_path = excluded.task_path, channel = excluded.channel, type = excluded.type, bytes = excluded.bytes`
)

// PutWrites stores pending writes.
func (a *Agent) PutWrites(_ context.Context, f agent.Fence, key agent.CheckpointKey, writes []agent.Write) agent.Commit {
	statement := replaceWrite
	for _, w := range writes {
		if w.Index >= 0 {
			statement = insertWrite
		}
	}
	return a.engine.Enqueue(func(c Conn) error {
		if _, err := check(c, f); err != nil {
			return err
		}
		for _, w := range writes {
			if err := c.Send(statement, key.ThreadID, key.Namespace, key.ID, w.TaskID, w.Index, w.TaskPath, w.Channel, w.Type, hiddenBytes(w.Typed)); err != nil {
				return fmt.Errorf("put a pending write: %w", err)
			}
		}
		return nil
	})
}

const checkpointColumns = `thread_id, ns, id, parent_id, run_id, language, metadata, header`

func scanCheckpoint(s scanner) (t agent.CheckpointTuple, err error) {
	var metadata secretObject
	var header string
	err = s.Scan(&t.ThreadID, &t.Namespace, &t.ID, &t.ParentID, &t.RunID, &t.Language, &metadata, &header)
	t.Metadata, t.Header = json.RawMessage(metadata), json.RawMessage(header)
	return t, err
}

// Checkpoint returns one checkpoint, nil if there is none.
func (a *Agent) Checkpoint(ctx context.Context, key agent.CheckpointKey) (*agent.CheckpointTuple, error) {
	return read(ctx, a.engine, func(c Conn) (*agent.CheckpointTuple, error) {
		list, err := a.checkpoints(c, agent.CheckpointQuery{ThreadID: key.ThreadID, Namespace: &key.Namespace, ID: key.ID, Limit: 1})
		if err != nil || len(list) == 0 {
			return nil, err
		}
		return &list[0], nil
	})
}

// Checkpoints lists checkpoints by descending id.
func (a *Agent) Checkpoints(ctx context.Context, q agent.CheckpointQuery) ([]agent.CheckpointTuple, error) {
	return read(ctx, a.engine, func(c Conn) ([]agent.CheckpointTuple, error) { return a.checkpoints(c, q) })
}

func (a *Agent) checkpoints(c Conn, q agent.CheckpointQuery) ([]agent.CheckpointTuple, error) {
	w := &where{}
	if q.ThreadID != "" {
		w.and("thread_id = ?", q.ThreadID)
	}
	if q.Namespace != nil {
		w.and("ns = ?", *q.Namespace)
	}
	if q.ID != "" {
		w.and("id = ?", q.ID)
	}
	if q.Before != "" {
		w.and("id < ?", q.Before)
	}
	inSQL, limit := !a.sealed(), q.Limit // what is sealed is looked into when it has been opened
	if q.Filter != nil && inSQL {
		w.and(a.dialect.Contains("metadata"), string(q.Filter))
	} else if q.Filter != nil {
		limit = 0
	}
	tail, args := w.page(" ORDER BY id DESC", limit, 0)
	list, err := all(c, scanCheckpoint, `SELECT `+checkpointColumns+` FROM checkpoints`+tail, args...)
	if err != nil {
		return nil, err
	}
	if q.Filter != nil && !inSQL {
		list = slices.DeleteFunc(list, func(t agent.CheckpointTuple) bool { return !Contains(string(t.Metadata), string(q.Filter)) })
		list = window(list, q.Limit, 0)
	}
	if err := fillValues(c, list); err != nil {
		return nil, err
	}
	return list, fillWrites(c, list)
}

// versions returns the channel versions a header names, as JSON text.
func versions(header json.RawMessage) (map[string]string, error) {
	var h struct {
		Versions map[string]json.RawMessage `json:"channel_versions"`
	}
	if err := json.Unmarshal(header, &h); err != nil {
		return nil, fmt.Errorf("read a checkpoint header: %w", err)
	}
	out := make(map[string]string, len(h.Versions))
	for k, v := range h.Versions {
		out[k] = strings.TrimSpace(string(v))
	}
	return out, nil
}

// blobKey addresses a blob.
type blobKey struct{ thread, ns, channel, version string }

const selectBlobs = `
SELECT b.thread_id, b.ns, b.channel, b.version, b.type, b.bytes FROM json_each(?) AS w CROSS JOIN blobs AS b
  WHERE b.thread_id = w.value ->> 0 AND b.ns = w.value ->> 1 AND b.channel = w.value ->> 2 AND b.version = w.value ->> 3`

// fillValues reads the values of all tuples at once.
func fillValues(c Conn, list []agent.CheckpointTuple) error {
	wanted := make([][]blobKey, len(list))
	seen, keys := map[blobKey]bool{}, [][4]string{}
	for i, t := range list {
		vs, err := versions(t.Header)
		if err != nil {
			return err
		}
		for channel, version := range vs {
			k := blobKey{t.ThreadID, t.Namespace, channel, version}
			wanted[i] = append(wanted[i], k)
			if !seen[k] {
				seen[k] = true
				keys = append(keys, [4]string{k.thread, k.ns, k.channel, k.version})
			}
		}
	}
	if len(keys) == 0 {
		return nil
	}
	found := map[blobKey]agent.ChannelBlob{}
	_, err := all(c, func(s scanner) (struct{}, error) {
		var k blobKey
		var b agent.ChannelBlob
		err := s.Scan(&k.thread, &k.ns, &k.channel, &k.version, &b.Type, (*secretBytes)(&b.Bytes))
		b.Channel, b.Version = k.channel, k.version
		found[k] = b
		return struct{}{}, err
	}, selectBlobs, encode(keys))
	for i := range list {
		for _, k := range wanted[i] {
			if b, ok := found[k]; ok {
				list[i].Values = append(list[i].Values, b)
			}
		}
	}
	return err
}

const selectWrites = `
SELECT w.key, p.task_id, p.idx, p.task_path, p.channel, p.type, p.bytes FROM json_each(?) AS w CROSS JOIN writes AS p
  WHERE p.thread_id = w.value ->> 0 AND p.ns = w.value ->> 1 AND p.checkpoint_id = w.value ->> 2
ORDER BY w.key, p.task_path, p.task_id, p.idx`

// fillWrites reads the pending writes of all tuples at once.
func fillWrites(c Conn, list []agent.CheckpointTuple) error {
	if len(list) == 0 {
		return nil
	}
	keys := make([][3]string, len(list))
	for i, t := range list {
		keys[i] = [3]string{t.ThreadID, t.Namespace, t.ID}
	}
	_, err := all(c, func(s scanner) (struct{}, error) {
		var i int
		var w agent.Write
		err := s.Scan(&i, &w.TaskID, &w.Index, &w.TaskPath, &w.Channel, &w.Type, (*secretBytes)(&w.Bytes))
		if err == nil {
			list[i].Writes = append(list[i].Writes, w)
		}
		return struct{}{}, err
	}, selectWrites, encode(keys))
	return err
}

const copyWrites = `INSERT INTO writes (` + writeColumns + `) SELECT ?, ns, checkpoint_id, task_id, idx, task_path, channel, type, bytes FROM writes WHERE thread_id = ?`
const copyBlobs = `INSERT INTO blobs (thread_id, ns, channel, version, type, bytes) SELECT ?, ns, channel, version, type, bytes FROM blobs WHERE thread_id = ? ON CONFLICT DO NOTHING`
const copyHeaders = `INSERT INTO checkpoints (` + checkpointColumns + `) SELECT ?, ns, id, parent_id, run_id, language, metadata, header FROM checkpoints WHERE thread_id = ?`

// copyLanguage makes the target a thread with checkpoints: one without a language is taken to have none.
const copyLanguage = `UPDATE threads SET language = COALESCE((SELECT language FROM checkpoints WHERE thread_id = ? LIMIT 1), '') WHERE id = ? AND language = ''`

// CopyCheckpoints copies everything of a thread's savers to another, same ids.
func (a *Agent) CopyCheckpoints(ctx context.Context, source, target string) error {
	return a.engine.Write(ctx, func(c Conn) error { return copyCheckpoints(c, source, target) })
}

func copyCheckpoints(c Conn, source, target string) error {
	for _, statement := range []string{copyHeaders, copyBlobs, copyWrites} {
		if _, err := c.Exec(statement+" ", target, source); err != nil {
			return fmt.Errorf("copy checkpoints: %w", err)
		}
	}
	_, err := c.Exec(copyLanguage, source, target)
	return err
}
