package wire

import (
	"encoding/json"
	"fmt"

	"github.com/slipway-dev/slipway/agent"
)

// HelloMessage is the envelope of HELLO.
type HelloMessage struct {
	Protocol int                `json:"protocol"`
	Language string             `json:"language"`
	PID      int                `json:"pid"`
	Versions map[string]*string `json:"versions"`
}

// LoadMessage is the envelope of LOAD.
type LoadMessage struct {
	Graphs             map[string]string `json:"graphs"`
	Slots              int               `json:"slots"`
	DeltaMaxSupersteps int               `json:"delta_max_supersteps"`
	Parts              agent.Parts       `json:"parts"`
}

// Error is an error as workers and server tell it each other.
type Error struct {
	Error   string `json:"error"`
	Message Text   `json:"message"`
	Trace   string `json:"trace,omitempty"`
	Code    string `json:"code,omitempty"`
	// Status and Headers are what the client is to be answered, with the code "http".
	Status  int         `json:"status,omitempty"`
	Headers [][2]string `json:"headers,omitempty"`
}

// Text is a string for people. User code may have put another value in its place (the detail of an HTTP error): it is
// read as its JSON.
type Text string

// UnmarshalJSON takes any value.
func (t *Text) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) != nil {
		s = string(b)
	}
	*t = Text(s)
	return nil
}

// LoadedMessage is the envelope of LOADED.
type LoadedMessage struct {
	Graphs map[string]struct {
		OK      bool   `json:"ok"`
		Factory *bool  `json:"factory"`
		Error   *Error `json:"error"`
	} `json:"graphs"`
	Parts    map[agent.PartName]LoadedPart `json:"parts"`
	Warnings []string                      `json:"warnings"`
}

// LoadedPart is what LOADED says of a part.
type LoadedPart struct {
	OK    bool   `json:"ok"`
	Error *Error `json:"error"`
	agent.PartInfo
}

// RunMessage is the envelope of RUN.
type RunMessage struct {
	RunID           string          `json:"run_id"`
	ThreadID        string          `json:"thread_id"`
	AssistantID     string          `json:"assistant_id"`
	GraphID         string          `json:"graph_id"`
	Attempt         int             `json:"attempt"`
	Epoch           int64           `json:"epoch"`
	Temporary       bool            `json:"temporary"`
	Resume          bool            `json:"resume"`
	Fresh           bool            `json:"fresh,omitempty"`
	Input           json.RawMessage `json:"input"`
	Command         json.RawMessage `json:"command"`
	Config          json.RawMessage `json:"config"`
	Context         json.RawMessage `json:"context"`
	StreamMode      []string        `json:"stream_mode"`
	Subgraphs       bool            `json:"subgraphs"`
	InterruptBefore json.RawMessage `json:"interrupt_before"`
	InterruptAfter  json.RawMessage `json:"interrupt_after"`
	Durability      *string         `json:"durability"`
	StrictResume    bool            `json:"strict_resume"`
	Credit          int             `json:"credit"`

	EncryptionContext json.RawMessage `json:"encryption_context,omitempty"`
}

// RunOf makes the envelope of RUN from a job.
func RunOf(j agent.Job, credit int) RunMessage {
	k := j.Run.Kwargs
	m := RunMessage{
		RunID: j.Run.ID, ThreadID: j.Run.ThreadID, AssistantID: j.Run.AssistantID, GraphID: j.Run.GraphID,
		Attempt: j.Run.Attempt, Epoch: j.Run.Epoch, Temporary: j.Run.Temporary, Resume: j.Resume, Fresh: j.Fresh, Input: k.Input,
		Command: k.Command, Config: k.Config, Context: k.Context, StreamMode: k.StreamMode, Subgraphs: k.Subgraphs,
		InterruptBefore: k.InterruptBefore, InterruptAfter: k.InterruptAfter, StrictResume: k.StrictResume, Credit: credit, EncryptionContext: k.EncryptionContext,
	}
	if m.StreamMode == nil {
		m.StreamMode = []string{}
	}
	if k.Durability != "" {
		m.Durability = &k.Durability
	}
	return m
}

// CancelMessage is the envelope of CANCEL.
type CancelMessage struct {
	Action string `json:"action"`
	Reason string `json:"reason"`
}

// ChunkMessage is the envelope of CHUNK.
type ChunkMessage struct {
	Event string `json:"event"`
}

// DoneMessage is the envelope of DONE.
type DoneMessage struct {
	Status    string `json:"status"`
	Error     *Error `json:"error"`
	Retriable bool   `json:"retriable"`
}

// ReturnMessage is the envelope of RETURN and ANSWER; an answer has further members beside.
type ReturnMessage struct {
	OK    bool   `json:"ok"`
	Error *Error `json:"error,omitempty"`
}

// LogMessage is the envelope of LOG.
type LogMessage struct {
	Level    string `json:"level"`
	Message  string `json:"message"`
	Logger   string `json:"logger"`
	RunID    string `json:"run_id"`
	ThreadID string `json:"thread_id"`
}

// Blob names one byte string of the payload.
type Blob struct {
	Channel string `json:"channel"`
	Version string `json:"version,omitempty"`
	Type    string `json:"type"`
	Size    int    `json:"size"`
}

// Write names one pending write of the payload.
type Write struct {
	TaskID   string `json:"task_id,omitempty"`
	TaskPath string `json:"task_path,omitempty"`
	Index    int    `json:"index"`
	Channel  string `json:"channel"`
	Type     string `json:"type"`
	Size     int    `json:"size"`
}

// Tuple is a checkpoint tuple; its bytes follow in the payload.
type Tuple struct {
	ThreadID  string          `json:"thread_id"`
	Namespace string          `json:"checkpoint_ns"`
	ID        string          `json:"checkpoint_id"`
	ParentID  *string         `json:"parent_id"`
	Header    json.RawMessage `json:"header"`
	Metadata  json.RawMessage `json:"metadata"`
	Values    []Blob          `json:"values"`
	Writes    []Write         `json:"writes"`
}

// Op is the envelope of ASK and TELL: the members of every operation.
type Op struct {
	Op           string          `json:"op"`
	Run          uint32          `json:"run"`
	ThreadID     *string         `json:"thread_id"`
	Namespace    *string         `json:"checkpoint_ns"`
	CheckpointID *string         `json:"checkpoint_id"`
	ParentID     *string         `json:"parent_id"`
	Header       json.RawMessage `json:"header"`
	Metadata     json.RawMessage `json:"metadata"`
	RunID        *string         `json:"run_id"`
	Blobs        []Blob          `json:"blobs"`
	TaskID       string          `json:"task_id"`
	TaskPath     string          `json:"task_path"`
	Writes       []Write         `json:"writes"`
	Before       *string         `json:"before"`
	Filter       json.RawMessage `json:"filter"`
	Limit        *int            `json:"limit"`
	RunIDs       []string        `json:"run_ids"`
	Source       string          `json:"source"`
	Target       string          `json:"target"`
	ThreadIDs    []string        `json:"thread_ids"`
	Strategy     string          `json:"strategy"`
	Channels     []string        `json:"channels"`
	Ops          []agent.StoreOp `json:"ops"`

	Keys       []CacheKey   `json:"keys"`
	Entries    []CacheEntry `json:"entries"`
	Namespaces [][]string   `json:"namespaces"`

	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"`
	TTL   *float64        `json:"ttl"` // seconds
}

// CacheKey is [[namespace path], key].
type CacheKey struct {
	Namespace []string
	Key       string
}

// UnmarshalJSON reads the pair.
func (k *CacheKey) UnmarshalJSON(b []byte) error {
	pair := []any{&k.Namespace, &k.Key}
	if err := json.Unmarshal(b, &pair); err != nil {
		return fmt.Errorf("cache key: %w", err)
	}
	if len(pair) != 2 {
		return fmt.Errorf("cache key has %d parts, want [namespace, key]", len(pair))
	}
	return nil
}

// CacheEntry is one entry of cache.set; its bytes are in the payload.
type CacheEntry struct {
	Namespace []string `json:"namespace"`
	Key       string   `json:"key"`
	TTL       *float64 `json:"ttl"` // seconds
	Type      string   `json:"type"`
	Size      int      `json:"size"`
}

// Cut takes the first size bytes off a payload.
func Cut(payload *[]byte, size int) ([]byte, error) {
	if size < 0 || size > len(*payload) {
		return nil, fmt.Errorf("payload has %d bytes left, its envelope names %d", len(*payload), size)
	}
	b := (*payload)[:size:size]
	*payload = (*payload)[size:]
	return b, nil
}
