package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Webhook is the answer of the webhook calls: an address that is told what happens to deployments.
type Webhook struct {
	ID           string     `json:"id"`
	URL          string     `json:"url"`
	Events       []string   `json:"events"` // empty = everything
	Enabled      bool       `json:"enabled"`
	Note         *string    `json:"note"` // why slipway disabled it; nil = it did not
	FailingSince *time.Time `json:"failing_since"`
	CreatedAt    time.Time  `json:"created_at"`
	UpdatedAt    time.Time  `json:"updated_at"`
	Secret       string     `json:"secret,omitempty"` // signs deliveries; only in the answers to creation and rotation
}

// WebhookChange is the body of POST and PATCH of webhooks; nil fields stay as they are.
type WebhookChange struct {
	URL     *string   `json:"url,omitempty"`
	Events  *[]string `json:"events,omitempty"`
	Enabled *bool     `json:"enabled,omitempty"`
}

// Delivery is one entry of a webhook's log.
type Delivery struct {
	ID           string     `json:"id"`
	EventID      string     `json:"event_id"`
	Event        string     `json:"event"`
	Sequence     int64      `json:"sequence"`
	Status       string     `json:"status"` // pending, delivered or failed
	Attempts     int        `json:"attempts"`
	NextAt       *time.Time `json:"next_at"`
	AttemptedAt  *time.Time `json:"attempted_at"`
	ResponseCode *int       `json:"response_code"`
	ResponseBody *string    `json:"response_body"` // its first bytes
	Error        *string    `json:"error"`
	RedeliveryOf *string    `json:"redelivery_of"`
	Body         string     `json:"body"`
	CreatedAt    time.Time  `json:"created_at"`
}

func webhookPath(id string) string { return "/v2/webhooks/" + url.PathEscape(id) }

func (c *Client) webhook(ctx context.Context, method, path string, in any) (Webhook, error) {
	var out Webhook
	err := c.do(ctx, method, path, nil, in, &out)
	return out, err
}

// Webhooks lists one page, newest first; next is the offset of the following page.
func (c *Client) Webhooks(ctx context.Context, limit, offset int) (list []Webhook, next int, err error) {
	var out page[Webhook]
	err = c.do(ctx, http.MethodGet, "/v2/webhooks", pageOf(limit, offset), nil, &out)
	return out.Resources, out.Offset, err
}

// CreateWebhook makes a webhook; the answer holds its secret, this one time.
func (c *Client) CreateWebhook(ctx context.Context, in WebhookChange) (Webhook, error) {
	return c.webhook(ctx, http.MethodPost, "/v2/webhooks", in)
}

// Webhook reads one webhook by id.
func (c *Client) Webhook(ctx context.Context, id string) (Webhook, error) {
	return c.webhook(ctx, http.MethodGet, webhookPath(id), nil)
}

// PatchWebhook changes a webhook.
func (c *Client) PatchWebhook(ctx context.Context, id string, in WebhookChange) (Webhook, error) {
	return c.webhook(ctx, http.MethodPatch, webhookPath(id), in)
}

// DeleteWebhook deletes a webhook with its log.
func (c *Client) DeleteWebhook(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, webhookPath(id), nil, nil, nil)
}

// RotateWebhook gives a webhook a new secret, which the answer holds, this one time.
func (c *Client) RotateWebhook(ctx context.Context, id string) (Webhook, error) {
	return c.webhook(ctx, http.MethodPost, webhookPath(id)+"/rotate", nil)
}

// PingWebhook sends a test delivery.
func (c *Client) PingWebhook(ctx context.Context, id string) (Delivery, error) {
	var out Delivery
	err := c.do(ctx, http.MethodPost, webhookPath(id)+"/ping", nil, nil, &out)
	return out, err
}

// Deliveries lists one page of a webhook's log, newest first; status "" = any.
func (c *Client) Deliveries(ctx context.Context, webhookID, status string, limit, offset int) (list []Delivery, next int, err error) {
	query := pageOf(limit, offset)
	if status != "" {
		query.Set("status", status)
	}
	var out page[Delivery]
	err = c.do(ctx, http.MethodGet, webhookPath(webhookID)+"/deliveries", query, nil, &out)
	return out.Resources, out.Offset, err
}

// Redeliver sends a delivery again, as a new one.
func (c *Client) Redeliver(ctx context.Context, webhookID, id string) (Delivery, error) {
	var out Delivery
	err := c.do(ctx, http.MethodPost, webhookPath(webhookID)+"/deliveries/"+url.PathEscape(id)+"/redeliver", nil, nil, &out)
	return out, err
}
