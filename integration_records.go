package slipway

import "time"

// IntegrationRecords keeps integrations, the deliveries they received and the commit statuses they owe; it is part of Tx.
type IntegrationRecords interface {
	// PutIntegration inserts or replaces an integration by ID; CodeConflict if the tenant has another of the name.
	PutIntegration(i Integration) error
	Integration(tenantID, id string) (Integration, error)
	// Integrations lists the integrations of one tenant, newest first.
	Integrations(q IntegrationQuery) ([]Integration, error)
	// DeleteIntegration removes an integration with its deliveries and statuses.
	DeleteIntegration(id string) error

	// AddDelivery records a delivery under a key and says whether it is the first under it.
	AddDelivery(integrationID, key string, at time.Time) (first bool, err error)
	// PruneDeliveries forgets the integration's deliveries before a time.
	PruneDeliveries(integrationID string, before time.Time) error

	// PutStatusNote inserts a status or replaces the revision's.
	PutStatusNote(n StatusNote) error
	// StatusNotes lists what is due at a time, the oldest first; zero time = all.
	StatusNotes(due time.Time, limit int) ([]StatusNote, error)
	// RescheduleStatusNote stores Attempts and NextAt unless there is a newer version.
	RescheduleStatusNote(n StatusNote) error
	// DeleteStatusNote removes a status unless there is a newer version.
	DeleteStatusNote(n StatusNote) error
}

// IntegrationQuery selects integrations of one tenant, newest first.
type IntegrationQuery struct {
	TenantID string
	Kind     HostKind // "" = any
	Before   string   // only ids below it; "" = all
	Limit    int      // 0 = no bound
	Offset   int
}
