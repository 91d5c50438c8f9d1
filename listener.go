package slipway

import (
	"slices"
	"time"
)

// ComputeCluster is the only compute type there is (control-plane reference 3).
const ComputeCluster = "cluster"

// Listener is the record of a data plane elsewhere, run by one tenant: it pulls what should run there and reports what
// does (spec 2.2, 2.6; control-plane reference 3, 8). It sees only the deployments that name it.
type Listener struct {
	ID          string // uuid
	TenantID    string
	Version     string // of the program that listens; "" = not told
	ComputeType string // ComputeCluster; immutable
	ComputeID   string // e.g. the cluster's name; unique in the tenant, immutable
	// Namespaces of the cluster it looks after; nil = every one.
	Namespaces []string

	LastSeenAt time.Time // of its last protocol call, kept to a fraction of the patience; zero = never
	// Lost says that it was not seen for the patience and its deployments were made UNKNOWN.
	Lost bool

	CreatedAt, UpdatedAt time.Time
}

// Watches says whether deployments may be placed in the namespace.
func (l Listener) Watches(namespace string) bool {
	return l.Namespaces == nil || slices.Contains(l.Namespaces, namespace)
}

// Overlap returns a namespace that both listeners would look after; ok is false if there is none. Listeners of different
// compute never overlap; one without namespaces overlaps with every other of its compute.
func (l Listener) Overlap(other Listener) (namespace string, ok bool) {
	if l.ID == other.ID || l.ComputeType != other.ComputeType || l.ComputeID != other.ComputeID {
		return "", false
	}
	if l.Namespaces == nil && other.Namespaces == nil {
		return "*", true
	}
	if l.Namespaces == nil {
		l, other = other, l
	}
	for _, namespace := range l.Namespaces {
		if other.Watches(namespace) {
			return namespace, true
		}
	}
	return "", false
}

// Heard is the moment from which its silence counts: it was seen, or made, or this control service began to listen (since).
func (l Listener) Heard(since time.Time) time.Time {
	heard := since
	for _, at := range []time.Time{l.LastSeenAt, l.CreatedAt} {
		if at.After(heard) {
			heard = at
		}
	}
	return heard
}

// Offline is the reason that everything on a lost listener bears.
func (l Listener) Offline() string {
	since := l.LastSeenAt
	if since.IsZero() {
		since = l.CreatedAt
	}
	return "listener " + l.ComputeID + " offline since " + since.UTC().Format(time.RFC3339)
}

// ListenerID returns the listener that looks after the deployment, "" for the one that is part of the control service.
func (d Deployment) ListenerID() string {
	if d.SourceConfig.ListenerID == nil {
		return ""
	}
	return *d.SourceConfig.ListenerID
}
