package controlapi

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/api/authn"
)

// Webhook is an address that is told what happens to deployments. Deliveries are POSTs signed in the header
// Slipway-Signature: "t=<unix seconds>,v1=<hex HMAC-SHA256 of '<t>.<body>' keyed with the secret>".
type Webhook struct {
	ID           string     `json:"id" required:"true" format:"uuid" doc:"id of the webhook"`
	URL          string     `json:"url" required:"true" doc:"where deliveries are POSTed"`
	Events       []string   `json:"events" required:"true" nullable:"false" doc:"what it is told; empty = everything"`
	Enabled      bool       `json:"enabled" required:"true" doc:"whether it is told anything"`
	Note         *string    `json:"note" required:"true" doc:"why slipway disabled it; null = it did not"`
	FailingSince *time.Time `json:"failing_since" required:"true" doc:"first failure since the last success; null = none"`
	CreatedAt    time.Time  `json:"created_at" required:"true" doc:"when it was made"`
	UpdatedAt    time.Time  `json:"updated_at" required:"true" doc:"when it was last changed"`
}

// WebhookWithSecret is a Webhook with the secret that signs its deliveries, which is shown this one time only.
type WebhookWithSecret struct {
	Webhook
	Secret string `json:"secret" required:"true" doc:"signs deliveries; shown once"`
}

// WebhooksList is one page of webhooks; offset is that of the next page.
type WebhooksList struct {
	Resources []Webhook `json:"resources" required:"true" nullable:"false" doc:"the webhooks of this page, newest first"`
	Offset    int       `json:"offset" required:"true" doc:"the offset of the next page"`
}

// WebhookRequest is the body of POST and PATCH of webhooks; null leaves a field as it is.
type WebhookRequest struct {
	URL     *string   `json:"url" doc:"where deliveries are POSTed, http or https; required for a new webhook"`
	Events  *[]string `json:"events" maxItems:"20" doc:"what it is told: deployment.created, .updated, .deleted, .restored, .revision_switched, revision.status_changed; empty = everything"`
	Enabled *bool     `json:"enabled" doc:"whether it is told anything; true also forgets its failures"`
}

// WebhookDelivery is one entry of a webhook's log.
type WebhookDelivery struct {
	ID           string     `json:"id" required:"true" format:"uuid" doc:"id of the delivery; header Slipway-Delivery"`
	EventID      string     `json:"event_id" required:"true" format:"uuid" doc:"id of the event, the same in all its deliveries; header Slipway-Event-Id"`
	Event        string     `json:"event" required:"true" doc:"what happened; header Slipway-Event"`
	Sequence     int64      `json:"sequence" required:"true" doc:"of the event within the webhook; header Slipway-Sequence"`
	Status       string     `json:"status" required:"true" enum:"pending,delivered,failed" doc:"where it stands"`
	Attempts     int        `json:"attempts" required:"true" doc:"how often it was tried"`
	NextAt       *time.Time `json:"next_at" required:"true" doc:"when it is tried next; null = not any more"`
	AttemptedAt  *time.Time `json:"attempted_at" required:"true" doc:"when it was last tried; null = not yet"`
	ResponseCode *int       `json:"response_code" required:"true" doc:"HTTP status of the last answer; null = none"`
	ResponseBody *string    `json:"response_body" required:"true" doc:"first 1024 bytes of the last answer"`
	Error        *string    `json:"error" required:"true" doc:"why the last attempt failed"`
	RedeliveryOf *string    `json:"redelivery_of" required:"true" format:"uuid" doc:"the delivery that this one repeats"`
	Body         string     `json:"body" required:"true" doc:"what is sent"`
	CreatedAt    time.Time  `json:"created_at" required:"true" doc:"when it happened"`
}

// WebhookDeliveriesList is one page of a webhook's log; offset is that of the next page.
type WebhookDeliveriesList struct {
	Resources []WebhookDelivery `json:"resources" required:"true" nullable:"false" doc:"the deliveries of this page, newest first"`
	Offset    int               `json:"offset" required:"true" doc:"the offset of the next page"`
}

const webhooksPath = "/v2/webhooks"

// WebhookPath is the path parameter of calls about one webhook.
type WebhookPath struct {
	WebhookID string `path:"webhook_id" format:"uuid" doc:"id of the webhook"`
}

type createWebhookInput struct{ Body WebhookRequest }

type patchWebhookInput struct {
	WebhookPath
	Body WebhookRequest
}

type deliveriesInput struct {
	WebhookPath
	Page
	Status string `query:"status" enum:"pending,delivered,failed" doc:"only those that stand there"`
}

type redeliverInput struct {
	WebhookPath
	DeliveryID string `path:"delivery_id" format:"uuid" doc:"id of the delivery"`
}

func (a *api) eventWebhooks() {
	one := webhooksPath + "/{webhook_id}"
	huma.Register(a.huma, operation("list_webhooks", http.MethodGet, webhooksPath, "List webhooks"), a.listWebhooks)
	huma.Register(a.huma, created(operation("create_webhook", http.MethodPost, webhooksPath, "Create a webhook; its secret is shown once", 400)), a.createWebhook)
	huma.Register(a.huma, operation("get_webhook", http.MethodGet, one, "Read a webhook", 404), a.getWebhook)
	huma.Register(a.huma, operation("patch_webhook", http.MethodPatch, one, "Change a webhook", 404), a.patchWebhook)
	huma.Register(a.huma, operation("delete_webhook", http.MethodDelete, one, "Delete a webhook with its log", 404), a.deleteWebhook)
	huma.Register(a.huma, operation("rotate_webhook_secret", http.MethodPost, one+"/rotate", "Give a webhook a new secret, shown once", 404), a.rotateWebhook)
	huma.Register(a.huma, created(operation("ping_webhook", http.MethodPost, one+"/ping", "Send a test delivery", 404)), a.pingWebhook)
	huma.Register(a.huma, operation("list_webhook_deliveries", http.MethodGet, one+"/deliveries", "List what was sent to a webhook", 404), a.listDeliveries)
	huma.Register(a.huma, created(operation("redeliver_webhook", http.MethodPost, one+"/deliveries/{delivery_id}/redeliver", "Send a delivery again", 404)), a.redeliver)
}

func shownWebhook(w slipway.Webhook) Webhook {
	out := Webhook{
		ID: w.ID, URL: w.URL, Events: []string{}, Enabled: w.Enabled, Note: orNull(w.Note), FailingSince: orNever(w.FailingSince),
		CreatedAt: w.CreatedAt.UTC(), UpdatedAt: w.UpdatedAt.UTC(),
	}
	for _, e := range w.Events {
		out.Events = append(out.Events, string(e))
	}
	return out
}

func orNever(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func (r WebhookRequest) domain() slipway.WebhookChange {
	out := slipway.WebhookChange{URL: r.URL, Enabled: r.Enabled}
	if r.Events != nil {
		events := make([]slipway.WebhookEvent, len(*r.Events))
		for i, e := range *r.Events {
			events[i] = slipway.WebhookEvent(e)
		}
		out.Events = &events
	}
	return out
}

func delivery(d slipway.Delivery) WebhookDelivery {
	out := WebhookDelivery{
		ID: d.ID, EventID: d.EventID, Event: string(d.Event), Sequence: d.Sequence, Status: string(d.Status), Attempts: d.Attempts,
		AttemptedAt: orNever(d.AttemptedAt), ResponseBody: orNull(d.ResponseBody), Error: orNull(d.Error), RedeliveryOf: orNull(d.RedeliveryOf),
		Body: d.Body, CreatedAt: d.CreatedAt.UTC(),
	}
	if d.Status == slipway.DeliveryPending {
		out.NextAt = orNever(d.NextAt)
	}
	if d.ResponseCode != 0 {
		out.ResponseCode = &d.ResponseCode
	}
	return out
}

func (a *api) listWebhooks(ctx context.Context, in *Page) (*struct{ Body WebhooksList }, error) {
	found, err := a.svc.Webhooks(ctx, authn.Principal(ctx), in.Limit, in.Offset)
	if err != nil {
		return nil, a.problem(err)
	}
	list := WebhooksList{Resources: []Webhook{}, Offset: in.Offset + len(found)}
	for _, w := range found {
		list.Resources = append(list.Resources, shownWebhook(w))
	}
	return &struct{ Body WebhooksList }{list}, nil
}

func (a *api) withSecret(w slipway.Webhook, secret string, err error) (*struct{ Body WebhookWithSecret }, error) {
	if err != nil {
		return nil, a.problem(err)
	}
	return &struct{ Body WebhookWithSecret }{WebhookWithSecret{shownWebhook(w), secret}}, nil
}

func (a *api) createWebhook(ctx context.Context, in *createWebhookInput) (*struct{ Body WebhookWithSecret }, error) {
	return a.withSecret(a.svc.CreateWebhook(ctx, authn.Principal(ctx), in.Body.domain()))
}

func (a *api) rotateWebhook(ctx context.Context, in *WebhookPath) (*struct{ Body WebhookWithSecret }, error) {
	return a.withSecret(a.svc.RotateWebhook(ctx, authn.Principal(ctx), in.WebhookID))
}

func (a *api) webhookAnswer(w slipway.Webhook, err error) (*struct{ Body Webhook }, error) {
	if err != nil {
		return nil, a.problem(err)
	}
	return &struct{ Body Webhook }{shownWebhook(w)}, nil
}

func (a *api) getWebhook(ctx context.Context, in *WebhookPath) (*struct{ Body Webhook }, error) {
	return a.webhookAnswer(a.svc.Webhook(ctx, authn.Principal(ctx), in.WebhookID))
}

func (a *api) patchWebhook(ctx context.Context, in *patchWebhookInput) (*struct{ Body Webhook }, error) {
	return a.webhookAnswer(a.svc.PatchWebhook(ctx, authn.Principal(ctx), in.WebhookID, in.Body.domain()))
}

func (a *api) deleteWebhook(ctx context.Context, in *WebhookPath) (*struct{}, error) {
	if err := a.svc.DeleteWebhook(ctx, authn.Principal(ctx), in.WebhookID); err != nil {
		return nil, a.problem(err)
	}
	return nil, nil
}

func (a *api) answerDelivery(d slipway.Delivery, err error) (*struct{ Body WebhookDelivery }, error) {
	if err != nil {
		return nil, a.problem(err)
	}
	return &struct{ Body WebhookDelivery }{delivery(d)}, nil
}

func (a *api) pingWebhook(ctx context.Context, in *WebhookPath) (*struct{ Body WebhookDelivery }, error) {
	return a.answerDelivery(a.svc.PingWebhook(ctx, authn.Principal(ctx), in.WebhookID))
}

func (a *api) redeliver(ctx context.Context, in *redeliverInput) (*struct{ Body WebhookDelivery }, error) {
	return a.answerDelivery(a.svc.Redeliver(ctx, authn.Principal(ctx), in.WebhookID, in.DeliveryID))
}

func (a *api) listDeliveries(ctx context.Context, in *deliveriesInput) (*struct{ Body WebhookDeliveriesList }, error) {
	found, err := a.svc.Deliveries(ctx, authn.Principal(ctx), slipway.DeliveryQuery{
		WebhookID: in.WebhookID, Status: slipway.DeliveryStatus(in.Status), Limit: in.Limit, Offset: in.Offset,
	})
	if err != nil {
		return nil, a.problem(err)
	}
	list := WebhookDeliveriesList{Resources: []WebhookDelivery{}, Offset: in.Offset + len(found)}
	for _, d := range found {
		list.Resources = append(list.Resources, delivery(d))
	}
	return &struct{ Body WebhookDeliveriesList }{list}, nil
}
