package slipway

import (
	"context"
	"fmt"
	"time"
)

// DeliveryStatus is where a delivery stands.
type DeliveryStatus string

// The statuses of a delivery.
const (
	DeliveryPending   DeliveryStatus = "pending" // to be tried, perhaps again
	DeliveryDelivered DeliveryStatus = "delivered"
	DeliveryFailed    DeliveryStatus = "failed" // given up
)

// Delivery is one event on its way to one webhook. It is written in the transaction of the event, so that nothing is lost
// between the two, and delivered at least once.
type Delivery struct {
	ID        string // uuid
	WebhookID string
	TenantID  string
	Seq       int64 // rising within the webhook's log
	EventID   string
	Event     WebhookEvent
	Sequence  int64  // of the event within the webhook: the Seq of its first delivery
	Body      string // JSON

	Status       DeliveryStatus
	Attempts     int
	NextAt       time.Time // with DeliveryPending: when it is tried, or the lease of who tries it ends
	Leased       bool      // somebody tries it now
	CreatedAt    time.Time
	AttemptedAt  time.Time // zero = never
	ResponseCode int       // of the last attempt; 0 = none
	ResponseBody string    // its first bytes
	Error        string    // why the last attempt failed
	RedeliveryOf string    // id of the delivery that this one repeats; "" = none
}

// WebhookRequest is a signed delivery as it is sent.
type WebhookRequest struct {
	URL    string
	Header map[string]string
	Body   []byte
}

// WebhookAnswer is what a webhook answered.
type WebhookAnswer struct {
	Status     int
	Body       string        // at most MaxWebhookResponse bytes, valid UTF-8
	RetryAfter time.Duration // what the answer asks for; 0 = nothing
}

// WebhookSender sends deliveries. It follows no redirects, bounds time and size, and is safe for concurrent use.
type WebhookSender interface {
	// Send posts the request. An error means that there was no answer; its text may be shown to the webhook's owner.
	Send(ctx context.Context, r WebhookRequest) (WebhookAnswer, error)
}

// DeliveryPolicy says how often and how long deliveries are tried.
type DeliveryPolicy struct {
	First, Most  time.Duration // the pause after the first failure, which then doubles, and its bound
	GiveUp       time.Duration // since the event
	DisableAfter time.Duration // of nothing but failures
	Keep         time.Duration // how long the log is kept
}

// DefaultDeliveryPolicy tries for a day, disables after five, keeps the log for 30.
func DefaultDeliveryPolicy() DeliveryPolicy {
	return DeliveryPolicy{First: 5 * time.Second, Most: time.Hour, GiveUp: 24 * time.Hour, DisableAfter: 5 * 24 * time.Hour, Keep: 30 * 24 * time.Hour}
}

// Attempted returns the delivery and its webhook after an attempt. jitter is in [0, 1): it spreads the next attempts of
// deliveries that failed together.
func (d Delivery) Attempted(w Webhook, a WebhookAnswer, failure error, p DeliveryPolicy, jitter float64, now time.Time) (Delivery, Webhook) {
	d.AttemptedAt, d.ResponseCode, d.ResponseBody, d.Error = now, a.Status, a.Body, ""
	if failure == nil && a.Status >= 200 && a.Status < 300 {
		d.Status, w.FailingSince = DeliveryDelivered, time.Time{}
		return d, w
	}
	switch {
	case failure != nil:
		d.Error = failure.Error()
	case a.Status >= 300 && a.Status < 400:
		d.Error = fmt.Sprintf("answered %d: redirects are not followed; give the final address", a.Status)
	default:
		d.Error = fmt.Sprintf("answered %d", a.Status)
	}
	d.NextAt = now.Add(max(p.pause(d.Attempts, jitter), a.RetryAfter))
	if !d.NextAt.Before(d.CreatedAt.Add(p.GiveUp)) {
		d.Status = DeliveryFailed
	}
	return d, w.failed(d.Error, p, now)
}

// pause is how long to wait after the n-th attempt: it doubles, and jitter takes up to half of it away.
func (p DeliveryPolicy) pause(n int, jitter float64) time.Duration {
	wait := p.First
	for ; n > 1 && wait < p.Most; n-- {
		wait *= 2
	}
	wait = min(wait, p.Most)
	return wait - time.Duration(jitter*float64(wait)/2)
}

// failed returns the webhook after a failure: disabled once there was nothing else for too long.
func (w Webhook) failed(why string, p DeliveryPolicy, now time.Time) Webhook {
	if w.FailingSince.IsZero() {
		w.FailingSince = now
	}
	if since := now.Sub(w.FailingSince); w.Enabled && since >= p.DisableAfter {
		w.Enabled, w.UpdatedAt = false, now
		w.Note = fmt.Sprintf("disabled on %s: every delivery since %s failed, at last because: %s; mend the address and set enabled to true",
			now.UTC().Format(time.RFC3339), w.FailingSince.UTC().Format(time.RFC3339), why)
	}
	return w
}
