package slipway

import (
	"encoding/json"
	"time"
)

// Outcome says how an audited attempt ended.
type Outcome string

// The outcomes. A refused attempt changed nothing.
const (
	OutcomeSuccess Outcome = "success"
	OutcomeRefused Outcome = "refused"
)

// AuditRetention is how long audit entries are kept unless a setting says otherwise (control-plane reference 1).
const AuditRetention = 400 * 24 * time.Hour

// AuditEntry records who did what, to what, from where, and what changed. It never holds a secret's value.
type AuditEntry struct {
	ID        string
	TenantID  string // "" = about the organisation
	Principal string
	Operation string // e.g. "create_deployment"
	Subject   string // id of what was changed
	Outcome   Outcome
	Address   string // of the client; "" = not known, or the platform itself
	RequestID string
	Detail    string        // JSON object
	Changes   []AuditChange // in the order of their fields; empty = nothing comparable changed
	At        time.Time
}

// AuditChange is one field before and after. Nil means that it was not there; of a secret only the fact is told.
type AuditChange struct {
	Field  string          `json:"field"` // path, e.g. "source_config.repo_url"
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
}
