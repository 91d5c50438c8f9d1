package query

import (
	"time"

	"github.com/slipway-dev/slipway"
)

// Webhook returns one webhook.
func (t *tx) Webhook(tenantID, id string) (slipway.Webhook, error) {
	return find[slipway.Webhook](t.c, "Webhook "+id+" does not exist",
		`SELECT doc FROM webhooks WHERE id = ?1 AND (?2 = '' OR tenant_id = ?2)`, id, tenantID)
}

// Webhooks lists a tenant's webhooks, newest first.
func (t *tx) Webhooks(tenantID string, limit, offset int) ([]slipway.Webhook, error) {
	w := &where{}
	w.and("tenant_id = ?", tenantID)
	tail, args := w.page(" ORDER BY id DESC", limit, offset)
	return all(t.c, doc[slipway.Webhook], `SELECT doc FROM webhooks`+tail, args...)
}

// PutWebhook stores a webhook.
func (t *tx) PutWebhook(w slipway.Webhook) error {
	_, err := t.c.Exec(`INSERT INTO webhooks (id, tenant_id, doc) VALUES (?, ?, ?)
ON CONFLICT (id) DO UPDATE SET doc = excluded.doc`, w.ID, w.TenantID, encode(w))
	return err
}

// DeleteWebhook removes a webhook with its deliveries.
func (t *tx) DeleteWebhook(id string) error {
	_, err := t.c.Exec(`DELETE FROM webhooks WHERE id = ?`, id)
	return err
}

const putDelivery = `
INSERT INTO webhook_deliveries (id, webhook_id, tenant_id, seq, status, next_at, created_at, doc) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET status = excluded.status, next_at = excluded.next_at, doc = excluded.doc`

// PutDelivery stores a delivery.
func (t *tx) PutDelivery(d slipway.Delivery) error {
	_, err := t.c.Exec(putDelivery, d.ID, d.WebhookID, d.TenantID, d.Seq, string(d.Status), micros(d.NextAt), micros(d.CreatedAt), encode(d))
	return err
}

// Delivery returns one delivery.
func (t *tx) Delivery(webhookID, id string) (slipway.Delivery, error) {
	return find[slipway.Delivery](t.c, "Delivery "+id+" does not exist",
		`SELECT doc FROM webhook_deliveries WHERE id = ? AND webhook_id = ?`, id, webhookID)
}

// Deliveries lists deliveries of one webhook.
func (t *tx) Deliveries(q slipway.DeliveryQuery) ([]slipway.Delivery, error) {
	w := &where{}
	w.and("webhook_id = ?", q.WebhookID)
	if q.Status != "" {
		w.and("status = ?", string(q.Status))
	}
	tail, args := w.page(" ORDER BY seq DESC", q.Limit, q.Offset)
	return all(t.c, doc[slipway.Delivery], `SELECT doc FROM webhook_deliveries`+tail, args...)
}

// DueDeliveries returns what is to be tried now.
func (t *tx) DueDeliveries(now time.Time, busy []string, limit int) ([]slipway.Delivery, error) {
	w := &where{}
	w.and("status = 'pending' AND next_at <= ?", micros(now))
	for _, id := range busy {
		w.and("webhook_id <> ?", id)
	}
	tail, args := w.page(" ORDER BY next_at, id", limit, 0)
	return all(t.c, doc[slipway.Delivery], `SELECT doc FROM webhook_deliveries`+tail, args...)
}

// DeliveriesBetween returns what is to be tried within a time.
func (t *tx) DeliveriesBetween(from, until time.Time) ([]slipway.Delivery, error) {
	return all(t.c, doc[slipway.Delivery], `SELECT doc FROM webhook_deliveries
WHERE status = 'pending' AND next_at > ? AND next_at <= ? ORDER BY next_at, id`, micros(from), micros(until))
}

// NextDelivery is when the next delivery is due.
func (t *tx) NextDelivery() (time.Time, error) {
	at, _, err := one(t.c, scalar[int64], `SELECT coalesce(min(next_at), 0) FROM webhook_deliveries WHERE status = 'pending'`)
	return fromMicros(at), err
}

// PruneWebhookLog removes old deliveries.
func (t *tx) PruneWebhookLog(webhookID string, seq int64, before time.Time) error {
	_, err := t.c.Exec(`DELETE FROM webhook_deliveries WHERE webhook_id = ? AND (seq <= ? OR status <> 'pending' AND created_at < ?)`,
		webhookID, seq, micros(before))
	return err
}
