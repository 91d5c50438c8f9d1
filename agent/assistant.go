package agent

import (
	"context"
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
	Filter        *Filter         // on the metadata
	GraphID, Name string          // Name: case-insensitive literal substring
	SortBy        string          // a column of the reference's list; "" = created_at
	Ascending     bool
	Limit, Offset int
}

// AssistantPatch changes an assistant; what is nil stays.
type AssistantPatch struct {
	GraphID     *string
	Config      json.RawMessage // replaces
	Context     json.RawMessage // replaces
	Metadata    json.RawMessage // merged shallowly
	Name        *string
	Description *string
}

// VersionQuery selects versions of an assistant, newest first.
type VersionQuery struct {
	AssistantID   string
	Metadata      json.RawMessage // JSON containment; nil = any
	Limit, Offset int
}

// AssistantStore keeps assistants with all their versions. A missing one is CodeNotFound "Assistant not found".
type AssistantStore interface {
	// SyncAssistants makes the system assistants exactly these: new ones appear and those of removed graphs go. One whose
	// definition changed since the last time gets it as a new version; else what clients made of it stays.
	SyncAssistants(ctx context.Context, system []Assistant, now time.Time) error
	// CreateAssistant inserts version 1. If the id exists: CodeConflict, or with reuse the stored one.
	CreateAssistant(ctx context.Context, a Assistant, reuse bool) (Assistant, error)
	Assistant(ctx context.Context, id string) (Assistant, error)
	Assistants(ctx context.Context, q AssistantQuery) ([]Assistant, error)
	CountAssistants(ctx context.Context, q AssistantQuery) (int, error)
	// PatchAssistant makes a new version, numbered one above the highest there is, and makes it the current one.
	PatchAssistant(ctx context.Context, id string, p AssistantPatch, now time.Time) (Assistant, error)
	// AssistantVersions lists versions as assistants: CreatedAt and UpdatedAt are when the version was made.
	AssistantVersions(ctx context.Context, q VersionQuery) ([]Assistant, error)
	// SetLatestVersion makes an earlier version the current one, with everything that is versioned. CodeNotFound
	// "Assistant not found" also for a version that does not exist.
	SetLatestVersion(ctx context.Context, id string, version int, now time.Time) (Assistant, error)
	// DeleteAssistant removes it with all its versions and crons.
	DeleteAssistant(ctx context.Context, id string) error
}
