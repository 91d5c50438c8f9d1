package slipway

import "time"

// WebhookRecords are the part of a Tx that keeps webhooks and their deliveries.
type WebhookRecords interface {
	Webhook(tenantID, id string) (Webhook, error)
	// Webhooks returns a tenant's webhooks, newest first; limit 0 = all.
	Webhooks(tenantID string, limit, offset int) ([]Webhook, error)
	PutWebhook(w Webhook) error // insert or replace by ID
	// DeleteWebhook removes a webhook with its deliveries.
	DeleteWebhook(id string) error

	PutDelivery(d Delivery) error // insert or replace by ID
	Delivery(webhookID, id string) (Delivery, error)
	Deliveries(q DeliveryQuery) ([]Delivery, error)
	// DueDeliveries returns pending deliveries with NextAt at or before now, the longest due first, but none of the busy
	// webhooks.
	DueDeliveries(now time.Time, busy []string, limit int) ([]Delivery, error)
	// DeliveriesBetween returns pending deliveries with NextAt after from, up to and including until.
	DeliveriesBetween(from, until time.Time) ([]Delivery, error)
	// NextDelivery is the earliest NextAt of a pending delivery; zero without any.
	NextDelivery() (time.Time, error)
	// PruneWebhookLog removes a webhook's deliveries up to and including seq, and the finished ones made before a time.
	PruneWebhookLog(webhookID string, seq int64, before time.Time) error
}

// DeliveryQuery selects deliveries of one webhook, newest first.
type DeliveryQuery struct {
	WebhookID string
	Status    DeliveryStatus // "" = any
	Limit     int            // 0 = no bound
	Offset    int
}
