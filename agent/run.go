package agent

import (
	"encoding/json"
	"time"
)

// RunStatus is where a run stands (agent-server reference 17.1).
type RunStatus string

// The statuses of a run; the last four are final. A run that stops at interrupt() is a success.
const (
	RunPending     RunStatus = "pending"
	RunRunning     RunStatus = "running"
	RunSuccess     RunStatus = "success"
	RunError       RunStatus = "error"
	RunTimeout     RunStatus = "timeout"
	RunInterrupted RunStatus = "interrupted"
)

// RunRollback is not a stored status: the run's row is gone. Streams report it at their end.
const RunRollback RunStatus = "rollback"

// Multitask says what happens to a new run on a thread that has one in flight (reference 17.5).
type Multitask string

// The strategies; enqueue is the default.
const (
	MultitaskReject    Multitask = "reject"
	MultitaskRollback  Multitask = "rollback"
	MultitaskInterrupt Multitask = "interrupt"
	MultitaskEnqueue   Multitask = "enqueue"
)

// CancelAction says what is left of a cancelled run (reference 17.6).
type CancelAction string

// The actions: interrupt keeps completed steps, rollback leaves no trace.
const (
	CancelInterrupt CancelAction = "interrupt"
	CancelRollback  CancelAction = "rollback"
)

// Run is one execution of an assistant on a thread.
type Run struct {
	ID          string
	ThreadID    string
	AssistantID string
	GraphID     string
	Status      RunStatus
	Multitask   Multitask
	Metadata    json.RawMessage
	Kwargs      Kwargs
	Temporary   bool // a stateless run that goes with its thread when it has ended (reference 5)
	CreatedAt   time.Time
	UpdatedAt   time.Time
	StartedAt   time.Time // zero before the first claim
	EndedAt     time.Time
	Failure     *Failure

	// Fencing: Epoch rises with every claim; Instance is the server that holds it while running.
	Epoch    int64
	Attempt  int
	Instance string
	// Checkpointed says whether the run has written a checkpoint; a retry then continues instead of starting over.
	Checkpointed bool

	// Followed tells with a claim that somebody follows the thread's stream: all frames are kept (reference 10.4).
	Followed bool

	// A recorded cancel; "" = none.
	CancelAction CancelAction
	CancelReason string
}

// Kwargs is what the client asked for, with defaults filled in (reference 4, 4.1). It is shown in answers.
type Kwargs struct {
	Input           json.RawMessage `json:"input"`
	Command         json.RawMessage `json:"command,omitempty"`
	Config          json.RawMessage `json:"config"` // merged (reference 4.2)
	Context         json.RawMessage `json:"context,omitempty"`
	StreamMode      []string        `json:"stream_mode"`
	InterruptBefore json.RawMessage `json:"interrupt_before,omitempty"`
	InterruptAfter  json.RawMessage `json:"interrupt_after,omitempty"`
	Webhook         string          `json:"webhook,omitempty"`
	FeedbackKeys    []string        `json:"feedback_keys,omitempty"`
	Temporary       bool            `json:"temporary"`
	Subgraphs       bool            `json:"subgraphs"`
	Resumable       bool            `json:"resumable"`
	Durability      string          `json:"durability,omitempty"` // sync, async, exit
	StrictResume    bool            `json:"strict_resume,omitempty"`
	// EncryptionContext is what the client's X-Encryption-Context says, for the application's encryption handlers; nil = nothing.
	EncryptionContext json.RawMessage `json:"encryption_context,omitempty"`
}

// RunQuery selects the runs of a thread, newest first.
type RunQuery struct {
	ThreadID      string
	Filter        *Filter   // on the thread's metadata; one it hides is missing
	Status        RunStatus // "" = any
	Limit, Offset int
}
