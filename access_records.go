package slipway

import "time"

// TenantRecords keeps tenants; it is part of Tx.
type TenantRecords interface {
	// PutTenant inserts or replaces a tenant by ID; CodeConflict if another has its name.
	PutTenant(t Tenant) error
	Tenant(id string) (Tenant, error)
	Tenants(q TenantQuery) ([]Tenant, error)
	// DeleteTenant removes a tenant with its keys; deployments must be gone.
	DeleteTenant(id string) error
}

// TenantQuery selects tenants, oldest first.
type TenantQuery struct {
	ID     string // "" = any
	Name   string // exact; "" = any
	Limit  int    // 0 = no bound
	Offset int
}

// APIKeyRecords keeps API keys; it is part of Tx.
type APIKeyRecords interface {
	// PutAPIKey inserts or replaces a key by ID; LastUsedAt is TouchAPIKeys' alone.
	PutAPIKey(k APIKey) error
	APIKeyByHash(hash string) (APIKey, error)
	// APIKey returns a key that the tenant owns, the organisation's for "".
	APIKey(tenantID, id string) (APIKey, error)
	APIKeys(q APIKeyQuery) ([]APIKey, error)
	// TouchAPIKeys records when keys, by ID, were last used; an earlier time than the recorded one changes nothing.
	TouchAPIKeys(used map[string]time.Time) error
}

// APIKeyQuery selects keys, newest first.
type APIKeyQuery struct {
	TenantID     string // the owner; "" = the organisation
	DeploymentID string // of its deploy keys; "" = any
	Limit        int    // 0 = no bound
	Offset       int
}

// AuditRecords keeps the audit log; it is part of Tx.
type AuditRecords interface {
	AppendAudit(e AuditEntry) error
	AuditEntries(q AuditQuery) ([]AuditEntry, error)
	// DeleteAudit removes up to limit entries older than before and says how many.
	DeleteAudit(before time.Time, limit int) (int, error)
}

// AuditQuery selects audit entries, newest first.
type AuditQuery struct {
	TenantID  string // "" = of every tenant and of the organisation
	Operation string // exact; "" = any
	Principal string // exact; "" = any
	Subject   string // exact; "" = any
	Outcome   Outcome
	RequestID string
	From, To  time.Time // From <= At < To; zero = open
	After     AuditCursor
	Limit     int // 0 = no bound
}

// AuditCursor is a place in the audit log: entries behind it are older. The zero cursor is before the newest.
type AuditCursor struct {
	At time.Time
	ID string
}
