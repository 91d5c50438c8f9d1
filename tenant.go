package slipway

import "time"

// Tenant owns deployments, keys and everything else; no tenant sees another's things.
type Tenant struct {
	ID        string // uuid
	Name      string
	CreatedAt time.Time
}

// Role says what a principal may do (control-plane reference 1).
type Role string

// The roles, from most to least.
const (
	RoleAdmin  Role = "admin"
	RoleEditor Role = "editor"
	RoleViewer Role = "viewer"
)

// Principal is whoever makes a request, as authentication found out.
type Principal struct {
	ID       string // e.g. "key:<prefix>"; goes into audit entries
	TenantID string
	Role     Role
}

// APIKey is the record of a key; the key itself is shown once and only its SHA-256 is kept (architecture 6).
type APIKey struct {
	ID        string
	TenantID  string
	Hash      string // hex SHA-256 of the key
	Prefix    string // the visible beginning
	Role      Role
	CreatedAt time.Time
	RevokedAt time.Time // zero = valid
}

// TracingProject is the record under which a deployment's traces are counted; it bears the deployment's name (spec 2.1).
type TracingProject struct {
	ID           string
	TenantID     string
	Name         string
	DeploymentID string
	CreatedAt    time.Time
}

// AuditEntry records who changed what. It never holds a secret's value.
type AuditEntry struct {
	ID        string
	TenantID  string
	Principal string
	Operation string // e.g. "create_deployment"
	Subject   string // id of what was changed
	Detail    string // JSON
	At        time.Time
}
