package controltest

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/slipway-dev/slipway"
)

func (t *tx) Webhook(tenantID, id string) (slipway.Webhook, error) {
	w, err := find(t.webhooks, "webhook", id)
	if err == nil && tenantID != "" && w.TenantID != tenantID {
		return slipway.Webhook{}, none("webhook", id)
	}
	return w, err
}

func (t *tx) Webhooks(tenantID string, limit, offset int) ([]slipway.Webhook, error) {
	var out []slipway.Webhook
	for _, w := range t.webhooks {
		if w.TenantID == tenantID {
			out = append(out, w)
		}
	}
	slices.SortFunc(out, func(a, b slipway.Webhook) int { return strings.Compare(b.ID, a.ID) })
	return cut(out, limit, offset), nil
}

func (t *tx) PutWebhook(w slipway.Webhook) error {
	t.webhooks[w.ID] = w
	return nil
}

func (t *tx) DeleteWebhook(id string) error {
	delete(t.webhooks, id)
	maps.DeleteFunc(t.sent, func(_ string, d slipway.Delivery) bool { return d.WebhookID == id })
	return nil
}

func (t *tx) PutDelivery(d slipway.Delivery) error {
	if _, ok := t.webhooks[d.WebhookID]; !ok {
		return none("webhook", d.WebhookID)
	}
	t.sent[d.ID] = d
	return nil
}

func (t *tx) Delivery(webhookID, id string) (slipway.Delivery, error) {
	d, err := find(t.sent, "delivery", id)
	if err == nil && d.WebhookID != webhookID {
		return slipway.Delivery{}, none("delivery", id)
	}
	return d, err
}

func (t *tx) Deliveries(q slipway.DeliveryQuery) ([]slipway.Delivery, error) {
	var out []slipway.Delivery
	for _, d := range t.sent {
		if d.WebhookID == q.WebhookID && (q.Status == "" || q.Status == d.Status) {
			out = append(out, d)
		}
	}
	slices.SortFunc(out, func(a, b slipway.Delivery) int { return cmp.Compare(b.Seq, a.Seq) })
	return cut(out, q.Limit, q.Offset), nil
}

func (t *tx) DeliveriesBetween(from, until time.Time) ([]slipway.Delivery, error) {
	all, err := t.DueDeliveries(until, nil, 0)
	return slices.DeleteFunc(all, func(d slipway.Delivery) bool { return !d.NextAt.After(from) }), err
}

func (t *tx) DueDeliveries(now time.Time, busy []string, limit int) ([]slipway.Delivery, error) {
	var out []slipway.Delivery
	for _, d := range t.sent {
		if d.Status == slipway.DeliveryPending && !d.NextAt.After(now) && !slices.Contains(busy, d.WebhookID) {
			out = append(out, d)
		}
	}
	slices.SortFunc(out, func(a, b slipway.Delivery) int {
		return cmp.Or(a.NextAt.Compare(b.NextAt), strings.Compare(a.ID, b.ID))
	})
	return cut(out, limit, 0), nil
}

func (t *tx) NextDelivery() (next time.Time, err error) {
	for _, d := range t.sent {
		if d.Status == slipway.DeliveryPending && (next.IsZero() || d.NextAt.Before(next)) {
			next = d.NextAt
		}
	}
	return next, nil
}

func (t *tx) PruneWebhookLog(webhookID string, seq int64, before time.Time) error {
	maps.DeleteFunc(t.sent, func(_ string, d slipway.Delivery) bool {
		return d.WebhookID == webhookID && (d.Seq <= seq || d.Status != slipway.DeliveryPending && d.CreatedAt.Before(before))
	})
	return nil
}
