package agent

import "encoding/json"

// Typed is a serialised value: a type word of the graph library's serialiser and opaque bytes (reference 14.3).
type Typed struct {
	Type  string
	Bytes []byte
}

// CheckpointKey addresses a checkpoint; an empty ID means the latest of the namespace.
type CheckpointKey struct {
	ThreadID  string `json:"thread_id"`
	Namespace string `json:"checkpoint_ns"`
	ID        string `json:"checkpoint_id"`
}

// Checkpoint is a stored checkpoint without its values (reference 14.4).
type Checkpoint struct {
	CheckpointKey
	ParentID string          // "" = none
	Header   json.RawMessage // the library's checkpoint without channel_values
	Metadata json.RawMessage
	RunID    string // the run that wrote it; "" = a state update
	Language string // "python" or "node"
}

// ChannelBlob is the value of one channel at one version; written once, never changed.
type ChannelBlob struct {
	Channel string
	Version string // compared for equality only; the version's JSON text
	Typed
}

// Write is a pending write of a task (reference 14.4).
type Write struct {
	TaskID   string
	TaskPath string
	Index    int // position in its call; -1 error, -2 scheduled, -3 interrupt, -4 resume
	Channel  string
	Typed
}

// CheckpointTuple is a checkpoint with the values its header names and its pending writes by (task path, task id, index).
type CheckpointTuple struct {
	Checkpoint
	Values []ChannelBlob
	Writes []Write
}

// CheckpointQuery lists checkpoints by descending id.
type CheckpointQuery struct {
	ThreadID  string          // "" = every thread
	Namespace *string         // nil = every namespace
	ID        string          // "" = any
	Before    string          // only ids below it; "" = no bound
	Filter    json.RawMessage // JSON containment on metadata; nil = any
	Limit     int             // 0 = no bound
}

// DeltaHistory is the past of one delta channel seen from a checkpoint (reference 14.5).
type DeltaHistory struct {
	Channel string
	Seed    *Typed // nil = start empty
	Writes  []Write
}
