package slipway

import "time"

// ListenerRecords are the part of a Tx that keeps listeners and what they last measured.
type ListenerRecords interface {
	// Listener returns one listener.
	Listener(tenantID, id string) (Listener, error)
	// Listeners returns listeners, newest first.
	Listeners(q ListenerQuery) ([]Listener, error)
	// PutListener inserts or replaces by id; CodeConflict if the tenant has another of the compute id.
	PutListener(l Listener) error
	// DeleteListener removes a listener; an unknown id is no error.
	DeleteListener(id string) error

	// PutMetrics replaces what is known of a deployment's workloads.
	PutMetrics(m Metrics) error
	// Metrics returns what was last measured of a deployment; CodeNotFound if nothing was.
	Metrics(tenantID, deploymentID string) (Metrics, error)
}

// ListenerQuery selects listeners.
type ListenerQuery struct {
	TenantID  string // "" = of every tenant, for executors
	ComputeID string // exact; "" = any
	Limit     int    // 0 = no bound, for executors
	Offset    int
}

// Metrics is what a listener last measured of one deployment.
type Metrics struct {
	DeploymentID  string
	TenantID      string
	RevisionID    string // "" = of all that runs
	At            time.Time
	Replicas      int     // wanted to run
	ReadyReplicas int     // answer
	Restarts      int     // since the revision was started
	CPUCores      float64 // in use, all replicas together
	MemoryMB      float64 // in use, all replicas together
	ReceivedAt    time.Time
}
