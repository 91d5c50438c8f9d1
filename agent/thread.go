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
	Values        json.RawMessage // JSON containment on the snapshot's values
	Status        ThreadStatus    // "" = any
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
