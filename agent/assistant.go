package agent

import (
	"encoding/json"
	"time"
)

// Assistant is a graph id with configuration, versioned (agent-server reference 2).
type Assistant struct {
	ID          string          `json:"assistant_id"`
	GraphID     string          `json:"graph_id"`
	Config      json.RawMessage `json:"config"`
	Context     json.RawMessage `json:"context"`
	Metadata    json.RawMessage `json:"metadata"`
	Version     int             `json:"version"`
	Name        string          `json:"name"`
	Description *string         `json:"description"`
	CreatedAt   time.Time       `json:"created_at"`
	UpdatedAt   time.Time       `json:"updated_at"`
	System      bool            `json:"-"` // made by the server for a graph; no client can set it
}

// AssistantQuery selects assistants.
type AssistantQuery struct {
	Metadata      json.RawMessage // JSON containment; nil = any
	GraphID, Name string          // Name: case-insensitive literal substring
	SortBy        string          // a column of the reference's list; "" = created_at
	Ascending     bool
	Limit, Offset int
}
