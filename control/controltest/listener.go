package controltest

import (
	"maps"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway"
)

func (t *tx) Listener(tenantID, id string) (slipway.Listener, error) {
	l, err := find(t.listeners, "listener", id)
	if err == nil && tenantID != "" && l.TenantID != tenantID {
		return slipway.Listener{}, none("listener", id)
	}
	return l, err
}

func (t *tx) Listeners(q slipway.ListenerQuery) ([]slipway.Listener, error) {
	var out []slipway.Listener
	for _, l := range t.listeners {
		if (q.TenantID == "" || q.TenantID == l.TenantID) && (q.ComputeID == "" || q.ComputeID == l.ComputeID) {
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b slipway.Listener) int { return strings.Compare(b.ID, a.ID) })
	return cut(out, q.Limit, q.Offset), nil
}

func (t *tx) PutListener(l slipway.Listener) error {
	for other := range maps.Values(t.listeners) {
		if other.ID != l.ID && other.TenantID == l.TenantID && other.ComputeID == l.ComputeID {
			return slipway.Errorf(slipway.CodeConflict, "a listener of compute_id %q exists already", l.ComputeID)
		}
	}
	t.listeners[l.ID] = l
	return nil
}

func (t *tx) DeleteListener(id string) error {
	delete(t.listeners, id)
	return nil
}

func (t *tx) PutMetrics(m slipway.Metrics) error {
	t.metrics[m.DeploymentID] = m
	return nil
}

func (t *tx) Metrics(tenantID, deploymentID string) (slipway.Metrics, error) {
	m, err := find(t.metrics, "metrics", deploymentID)
	if err == nil && tenantID != "" && m.TenantID != tenantID {
		return slipway.Metrics{}, none("metrics", deploymentID)
	}
	return m, err
}
