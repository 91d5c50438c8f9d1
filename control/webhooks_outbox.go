package control

import (
	"encoding/json"
	"reflect"
	"time"

	"github.com/slipway-dev/slipway"
)

// webhookBody is what a webhook is sent.
type webhookBody struct {
	ID        string               `json:"id"` // of the event; the same in every delivery of it
	Type      slipway.WebhookEvent `json:"type"`
	CreatedAt time.Time            `json:"created_at"`
	Sequence  int64                `json:"sequence"` // rising by one within the webhook
	TenantID  string               `json:"tenant_id"`
	Data      webhookData          `json:"data"`
}

type webhookData struct {
	Deployment *webhookDeployment `json:"deployment,omitempty"`
	Revision   *webhookRevision   `json:"revision,omitempty"`
}

type webhookDeployment struct {
	ID               string `json:"id"`
	Name             string `json:"name"`
	Source           string `json:"source"`
	Status           string `json:"status"`
	LatestRevisionID string `json:"latest_revision_id,omitempty"`
	ActiveRevisionID string `json:"active_revision_id,omitempty"`
	PreviousRevision string `json:"previous_revision_id,omitempty"` // that served before a switch
}

type webhookRevision struct {
	ID     string `json:"id"`
	Number int64  `json:"number"`
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
}

// happening is one event of a transaction.
type happening struct {
	event slipway.WebhookEvent
	data  webhookData
}

// enqueue writes what a transaction's changes are to be told to webhooks, in the same transaction: neither is there without
// the other.
func (s *Service) enqueue(t *tracked) error {
	for _, c := range t.changes {
		happened := c.happened()
		if len(happened) == 0 {
			continue
		}
		tenant := c.after.TenantID
		if tenant == "" {
			tenant = c.before.TenantID
		}
		hooks, err := t.Webhooks(tenant, 0, 0)
		if err != nil {
			return err
		}
		if len(hooks) == 0 {
			continue
		}
		for _, h := range happened {
			if err := s.tell(t, hooks, h); err != nil {
				return err
			}
		}
	}
	return nil
}

// tell writes a delivery of the event for each webhook that wants it; hooks keep their new numbers.
func (s *Service) tell(t *tracked, hooks []slipway.Webhook, h happening) error {
	event := s.ids()
	for i, w := range hooks {
		if !w.Wants(h.event) {
			continue
		}
		updated, _, err := s.deliver(t, w, event, h)
		if err != nil {
			return err
		}
		hooks[i], t.queued = updated, true
	}
	return nil
}

// deliver writes one delivery, to be tried at once, and keeps the webhook's log bounded.
func (s *Service) deliver(tx slipway.Tx, w slipway.Webhook, event string, h happening) (slipway.Webhook, slipway.Delivery, error) {
	now := s.clock()
	w.Seq++
	body, err := json.Marshal(webhookBody{ID: event, Type: h.event, CreatedAt: now.UTC(), Sequence: w.Seq, TenantID: w.TenantID, Data: h.data})
	if err != nil {
		return w, slipway.Delivery{}, err
	}
	d := slipway.Delivery{
		ID: s.ids(), WebhookID: w.ID, TenantID: w.TenantID, Seq: w.Seq, EventID: event, Event: h.event, Sequence: w.Seq, Body: string(body),
		Status: slipway.DeliveryPending, NextAt: now, CreatedAt: now,
	}
	return w, d, s.putDelivery(tx, w, d)
}

func (s *Service) putDelivery(tx slipway.Tx, w slipway.Webhook, d slipway.Delivery) error {
	if err := tx.PutWebhook(w); err != nil {
		return err
	}
	if err := tx.PruneWebhookLog(w.ID, d.Seq-slipway.MaxWebhookLog, s.clock().Add(-s.cfg.Deliveries.Keep)); err != nil {
		return err
	}
	return tx.PutDelivery(d)
}

// happened lists what a transaction comes to, in the order in which it should be told.
func (c *deploymentChange) happened() []happening {
	var out []happening
	shown := &webhookDeployment{
		ID: c.after.ID, Name: c.after.Name, Source: string(c.after.Source), Status: string(c.after.Status),
		LatestRevisionID: c.after.LatestRevisionID, ActiveRevisionID: c.after.ActiveRevisionID,
	}
	if event := c.event(); event != "" {
		out = append(out, happening{event, webhookData{Deployment: shown}})
	}
	for _, r := range c.revisions {
		out = append(out, happening{slipway.EventRevisionStatus, webhookData{Deployment: shown, Revision: &webhookRevision{
			ID: r.ID, Number: r.Number, Status: string(r.Status), Reason: r.StatusReason,
		}}})
	}
	if c.before.ID != "" && c.after.ActiveRevisionID != c.before.ActiveRevisionID && c.after.ActiveRevisionID != "" {
		switched := *shown
		switched.PreviousRevision = c.before.ActiveRevisionID
		out = append(out, happening{slipway.EventRevisionSwitched, webhookData{Deployment: &switched}})
	}
	return out
}

// event is what became of the deployment itself; "" = nothing that its owner asked for.
func (c *deploymentChange) event() slipway.WebhookEvent {
	before, after := c.before, c.after
	deleted := slipway.DeploymentAwaitingDelete
	switch {
	case after.ID == "":
		return ""
	case before.ID == "":
		return slipway.EventDeploymentCreated
	case before.Status != deleted && after.Status == deleted:
		return slipway.EventDeploymentDeleted
	case before.Status == deleted && after.Status != deleted:
		return slipway.EventDeploymentRestored
	case before.LatestRevisionID != after.LatestRevisionID || before.SecretSetID != after.SecretSetID || !reflect.DeepEqual(before.SourceConfig, after.SourceConfig):
		return slipway.EventDeploymentUpdated
	}
	return ""
}
