package controltest

import (
	"cmp"
	"slices"
	"time"

	"github.com/slipway-dev/slipway"
)

func (t *tx) PutIntegration(i slipway.Integration) error {
	for _, other := range t.integrations {
		if other.TenantID == i.TenantID && other.Name == i.Name && other.ID != i.ID {
			return slipway.Errorf(slipway.CodeConflict, "an integration named %q exists already; choose another name", i.Name)
		}
	}
	t.integrations[i.ID] = i
	return nil
}

func (t *tx) Integration(tenantID, id string) (slipway.Integration, error) {
	i, err := find(t.integrations, "integration", id)
	if err == nil && tenantID != "" && i.TenantID != tenantID {
		return slipway.Integration{}, none("integration", id)
	}
	return i, err
}

func (t *tx) Integrations(q slipway.IntegrationQuery) ([]slipway.Integration, error) {
	var out []slipway.Integration
	for _, i := range t.integrations {
		if i.TenantID == q.TenantID && (q.Kind == "" || q.Kind == i.Kind) && (q.Before == "" || i.ID < q.Before) {
			out = append(out, i)
		}
	}
	slices.SortFunc(out, func(a, b slipway.Integration) int { return cmp.Compare(b.ID, a.ID) })
	return cut(out, q.Limit, q.Offset), nil
}

func (t *tx) DeleteIntegration(id string) error {
	delete(t.integrations, id)
	for key := range t.deliveries {
		if key[0] == id {
			delete(t.deliveries, key)
		}
	}
	for revision, n := range t.notes {
		if n.IntegrationID == id {
			delete(t.notes, revision)
		}
	}
	return nil
}

func (t *tx) AddDelivery(integrationID, key string, at time.Time) (bool, error) {
	if _, ok := t.deliveries[[2]string{integrationID, key}]; ok {
		return false, nil
	}
	t.deliveries[[2]string{integrationID, key}] = at
	return true, nil
}

func (t *tx) PruneDeliveries(integrationID string, before time.Time) error {
	for key, at := range t.deliveries {
		if key[0] == integrationID && at.Before(before) {
			delete(t.deliveries, key)
		}
	}
	return nil
}

func (t *tx) PutStatusNote(n slipway.StatusNote) error {
	t.notes[n.RevisionID] = n
	return nil
}

func (t *tx) StatusNotes(due time.Time, limit int) ([]slipway.StatusNote, error) {
	var out []slipway.StatusNote
	for _, n := range t.notes {
		if due.IsZero() || !n.NextAt.After(due) {
			out = append(out, n)
		}
	}
	slices.SortFunc(out, func(a, b slipway.StatusNote) int {
		return cmp.Or(a.NextAt.Compare(b.NextAt), cmp.Compare(a.RevisionID, b.RevisionID))
	})
	return cut(out, limit, 0), nil
}

func (t *tx) RescheduleStatusNote(n slipway.StatusNote) error {
	if t.notes[n.RevisionID].Version == n.Version {
		t.notes[n.RevisionID] = n
	}
	return nil
}

func (t *tx) DeleteStatusNote(n slipway.StatusNote) error {
	if t.notes[n.RevisionID].Version == n.Version {
		delete(t.notes, n.RevisionID)
	}
	return nil
}
