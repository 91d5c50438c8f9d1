package agent

import (
	"encoding/json"
	"time"
)

// ThreadStatus says what a thread is doing (agent-server reference 3, 17.2).
type ThreadStatus string

// The statuses of a thread.
const (
	ThreadIdle        ThreadStatus = "idle"
	ThreadBusy        ThreadStatus = "busy"
	ThreadInterrupted ThreadStatus = "interrupted"
	ThreadError       ThreadStatus = "error"
)

// Thread is a conversation: the place where checkpoints accumulate.
type Thread struct {
	ID             string
	Metadata       json.RawMessage // object
	Config         json.RawMessage // object
	Status         ThreadStatus
	Values         json.RawMessage // nil before the first checkpoint
	Interrupts     json.RawMessage // object: task id -> [Interrupt]
	Error          *Failure
	State          json.RawMessage // the latest root ThreadState as JSON (reference 14.6); nil before the first checkpoint
	Language       string          // of its first checkpoint; "" before
	CreatedAt      time.Time
	UpdatedAt      time.Time
	StateUpdatedAt time.Time // zero = never
	TTL            *TTL      // nil = lives until it is deleted
}

// Expired says whether the thread is gone for its clients at now, also where nothing has removed it yet (reference 3).
func (t Thread) Expired(now time.Time) bool {
	return t.TTL != nil && t.TTL.Strategy == TTLDelete && !t.TTL.ExpiresAt.After(now)
}

// TTLStrategy says what becomes of a thread when its time is over.
type TTLStrategy string

// The strategies of a thread's TTL.
const (
	TTLDelete     TTLStrategy = "delete"      // it is deleted; counted from when the TTL was set
	TTLKeepLatest TTLStrategy = "keep_latest" // all but its latest checkpoint go; counted from its last change of state
)

// MaxMinutes, a hundred years, keeps a TTL within what a time.Duration can say; a longer one counts as this.
const MaxMinutes = 100 * 366 * 24 * 60

// TTL bounds the life of a thread or of its history.
type TTL struct {
	Strategy  TTLStrategy
	Minutes   float64
	ExpiresAt time.Time // zero with keep_latest: it has been carried out and nothing has changed since
}

// From returns the TTL counted from now.
func (t TTL) From(now time.Time) *TTL {
	t.Minutes = min(t.Minutes, MaxMinutes)
	t.ExpiresAt = now.Add(time.Duration(t.Minutes * float64(time.Minute)))
	return &t
}

// Failure is an error as clients see it.
type Failure struct {
	Error   string `json:"error"` // the exception's type
	Message string `json:"message"`
}

// ThreadQuery selects threads.
type ThreadQuery struct {
	IDs           []string
	Metadata      json.RawMessage // JSON containment
	Filter        *Filter         // on the metadata
	Values        json.RawMessage // JSON containment on the snapshot's values
	Status        ThreadStatus    // "" = any
	Now           time.Time       // threads expired by then are left out; zero = none are
	SortBy        string          // "" = updated_at
	Ascending     bool
	Limit, Offset int
}

// Snapshot is the state of a thread after a run or a state update, as the worker computed it with the graph
// (reference 14.6). Fields are raw JSON.
type Snapshot struct {
	Values           json.RawMessage `json:"values"`
	Next             json.RawMessage `json:"next"`
	Tasks            json.RawMessage `json:"tasks"`
	Interrupts       json.RawMessage `json:"interrupts"` // [Interrupt]
	Metadata         json.RawMessage `json:"metadata"`
	Checkpoint       json.RawMessage `json:"checkpoint"`
	ParentCheckpoint json.RawMessage `json:"parent_checkpoint"`
	CreatedAt        json.RawMessage `json:"created_at"`
}

// Storage is what a thread takes up (reference 3).
type Storage struct {
	Checkpoints, Writes Volume
	Channels            map[string]Volume // per channel: versions of its value
}

// Volume is a number of stored things and their size in bytes.
type Volume struct{ Count, Bytes int64 }
