package slipway

import (
	"net/url"
	"slices"
	"strings"
	"time"
)

// WebhookEvent names something that happens to a deployment and that a webhook can be told (control-plane reference 10).
type WebhookEvent string

// The events. A ping is sent on request only, whatever a webhook asks for.
const (
	EventDeploymentCreated  WebhookEvent = "deployment.created"
	EventDeploymentUpdated  WebhookEvent = "deployment.updated"
	EventDeploymentDeleted  WebhookEvent = "deployment.deleted"
	EventDeploymentRestored WebhookEvent = "deployment.restored"
	EventRevisionSwitched   WebhookEvent = "deployment.revision_switched" // another revision serves
	EventRevisionStatus     WebhookEvent = "revision.status_changed"
	EventPing               WebhookEvent = "ping"
)

// WebhookEvents lists what a webhook may ask for.
func WebhookEvents() []WebhookEvent {
	return []WebhookEvent{
		EventDeploymentCreated, EventDeploymentUpdated, EventDeploymentDeleted, EventDeploymentRestored, EventRevisionSwitched, EventRevisionStatus,
	}
}

// Bounds of webhooks.
const (
	MaxWebhooks        = 50    // of a tenant
	MaxWebhookLog      = 10000 // deliveries kept of one webhook
	MaxWebhookResponse = 1024  // bytes kept of an answer
)

// Webhook is an address that is told what happens to a tenant's deployments.
type Webhook struct {
	ID       string // uuid
	TenantID string
	URL      string
	Events   []WebhookEvent // empty = all
	Enabled  bool
	Note     string // why it was disabled by slipway; "" = it was not
	Sealed   []byte // the secret that signs deliveries
	Seq      int64  // of its newest delivery

	FailingSince         time.Time // of the first failure since the last success; zero = none
	CreatedAt, UpdatedAt time.Time
}

// Wants says whether the webhook is to be told the event.
func (w Webhook) Wants(e WebhookEvent) bool {
	return w.Enabled && (len(w.Events) == 0 || slices.Contains(w.Events, e))
}

// WebhookChange is the request to make or change a webhook. Nil means absent or null.
type WebhookChange struct {
	URL     *string
	Events  *[]WebhookEvent
	Enabled *bool
}

// Validate collects what is wrong with the request in one CodeInvalid.
func (in WebhookChange) Validate() error {
	var problems Problems
	if in.URL != nil && !webhookURL(*in.URL) {
		problems.Add(at("url"), "url %q is no address; use http:// or https:// with a host, without user and fragment, of at most %d characters", short(*in.URL), MaxFieldLength)
	}
	if in.Events != nil {
		for i, e := range *in.Events {
			if !slices.Contains(WebhookEvents(), e) {
				problems.Add(at("events", i), "%q is no event; use some of %s", short(string(e)), listedEvents())
			}
		}
	}
	return problems.Err()
}

func webhookURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && len(text) <= MaxFieldLength && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" &&
		u.User == nil && u.Fragment == "" && !strings.ContainsFunc(text, unprintable)
}

func listedEvents() string {
	var names []string
	for _, e := range WebhookEvents() {
		names = append(names, string(e))
	}
	return strings.Join(names, ", ")
}

// Apply lays the request over the webhook. Enabling one again forgets its failures.
func (w Webhook) Apply(in WebhookChange, now time.Time) Webhook {
	if in.URL != nil {
		w.URL = *in.URL
	}
	if in.Events != nil {
		w.Events = *in.Events
	}
	if in.Enabled != nil {
		if *in.Enabled && !w.Enabled {
			w.FailingSince, w.Note = time.Time{}, ""
		}
		w.Enabled = *in.Enabled
	}
	w.UpdatedAt = now
	return w
}
