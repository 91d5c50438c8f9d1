package engine

import (
	"encoding/json"
	"time"

	"github.com/slipway-dev/slipway/agent"
)

// RunRequest is a run as a client asks for it (agent-server reference 4.1), decoded but not yet resolved.
type RunRequest struct {
	ID          string        `json:"-"` // "" = a new one
	AssistantID string        // uuid or graph id
	User        *agent.User   `json:",omitempty"` // whom it works for; nil = nobody is known
	Filter      *agent.Filter `json:"-"`          // must allow the thread if it exists already
	// Stateless runs have no ThreadID; the engine makes a thread for them (reference 5).
	Stateless       bool
	ThreadID        string
	Input           json.RawMessage
	Command         json.RawMessage
	Checkpoint      json.RawMessage // CheckpointConfig; merged into configurable
	CheckpointID    string
	Metadata        json.RawMessage
	Config          json.RawMessage
	Context         json.RawMessage
	Webhook         string
	InterruptBefore json.RawMessage
	InterruptAfter  json.RawMessage
	StreamMode      []string // empty = values
	StreamSubgraphs bool
	StreamResumable bool
	FeedbackKeys    []string
	Multitask       agent.Multitask // "" = enqueue
	CreateThread    bool            // if_not_exists = create
	After           time.Duration
	Durability      string // "" = the library's default, async
	StrictResume    bool
	Keep            bool // on_completion = keep, for stateless runs
}

// From says where a joined stream begins (reference 10.2, 10.3).
type From struct {
	// LastEventID: "" = frames from now on; "-1" or "-" = from the start; else frames with greater ids (an integer is
	// taken as a position).
	LastEventID string
	// CheckpointID: from the start means from this checkpoint of the run on; one that is not of this run is ignored.
	CheckpointID string
}

// StateRequest addresses a state of a thread. The zero Checkpoint means the latest.
type StateRequest struct {
	ThreadID   string
	Checkpoint agent.CheckpointKey // ThreadID inside is ignored
	Subgraphs  bool
}

// HistoryRequest asks for states newest first (reference 3).
type HistoryRequest struct {
	ThreadID  string
	Limit     int
	Before    string // checkpoint id; "" = from the newest
	Metadata  json.RawMessage
	Namespace string // checkpoint_ns
}

// StateUpdate is a change of state from outside (reference 3).
type StateUpdate struct {
	ThreadID   string
	Values     json.RawMessage // object, array or null
	AsNode     string          // "" = the library decides
	Checkpoint agent.CheckpointKey
}

// Result is how a run ended, as /wait and /join answer it (reference 4.3).
type Result struct {
	Run     agent.Run
	Outcome agent.RunStatus // final status or rollback
	// Body is the JSON to answer with: final values, with __interrupt__ or as __error__ where the reference says so.
	Body json.RawMessage
}

// Info is what GET /info tells (reference 9).
type Info struct {
	Version          string
	LanggraphPython  *string
	LanggraphNode    *string
	Context          string // "py", "js" or "both"
	RevisionID       string
	GraphIDs         []string
	WorkersAvailable int
}

// Health is the deep health answer (reference 9).
type Health struct {
	Database string // "ok" or what is wrong
	Workers  string // "ok", "starting" or what is wrong
	// Failures lists graphs that cannot be loaded, by graph id; a listener fails the revision for them at once.
	Failures map[string]string
	// Parts lists the other code that cannot be loaded, by its key of the configuration ("auth.path"), to the same effect.
	Parts map[string]string
}
