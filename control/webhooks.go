package control

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"

	"github.com/slipway-dev/slipway"
)

// webhookSecret is the name under which a webhook's secret is sealed; webhookMark begins it, so that scanners find leaked ones.
const (
	webhookSecret = "webhook secret"
	webhookMark   = "whsec_"
)

// CreateWebhook makes a webhook and returns its secret, once. CodeBadRequest: the tenant has as many as it may.
func (s *Service) CreateWebhook(ctx context.Context, who slipway.Principal, in slipway.WebhookChange) (w slipway.Webhook, secret string, err error) {
	if err := authorize(who, mayDelete); err != nil {
		return w, "", err
	}
	if in.URL == nil {
		var problems slipway.Problems
		problems.Missing([]any{"body", "url"})
		return w, "", problems.Err()
	}
	if err := in.Validate(); err != nil {
		return w, "", err
	}
	now := s.clock()
	w = slipway.Webhook{ID: s.ids(), TenantID: who.TenantID, Enabled: true, CreatedAt: now}.Apply(in, now)
	if w.Sealed, secret, err = s.newWebhookSecret(w); err != nil {
		return w, "", err
	}
	err = s.update(ctx, func(tx slipway.Tx) error {
		all, err := tx.Webhooks(who.TenantID, 0, 0)
		if err != nil {
			return err
		}
		if len(all) >= slipway.MaxWebhooks {
			return slipway.Errorf(slipway.CodeBadRequest, "there are %d webhooks already, which is the most a tenant may have; delete one first", len(all))
		}
		if err := tx.PutWebhook(w); err != nil {
			return err
		}
		return s.auditDiff(tx, who, "create_webhook", w.ID, map[string]any{"url": w.URL}, nil, webhookView(w))
	})
	return w, secret, wrap("create webhook", err)
}

func (s *Service) newWebhookSecret(w slipway.Webhook) (sealed []byte, secret string, err error) {
	raw := make([]byte, 32)
	if _, err := io.ReadFull(s.random, raw); err != nil {
		return nil, "", fmt.Errorf("draw a webhook secret: %w", err)
	}
	secret = webhookMark + base64.RawURLEncoding.EncodeToString(raw)
	if sealed, err = s.sealer.Seal(w.TenantID, w.ID, webhookSecret, secret); err != nil {
		return nil, "", fmt.Errorf("seal a webhook secret: %w", err)
	}
	return sealed, secret, nil
}

// webhookView is what the audit log compares of a webhook; nil for none.
func webhookView(w slipway.Webhook) map[string]any {
	if w.ID == "" {
		return nil
	}
	return map[string]any{"url": w.URL, "events": w.Events, "enabled": w.Enabled}
}

// Webhook returns one webhook of the caller's tenant.
func (s *Service) Webhook(ctx context.Context, who slipway.Principal, id string) (w slipway.Webhook, err error) {
	if err := authorize(who, mayRead); err != nil {
		return w, err
	}
	err = s.store.View(ctx, func(tx slipway.Tx) (err error) {
		w, err = visibleWebhook(tx, who.TenantID, id)
		return err
	})
	return w, wrap("get webhook", err)
}

// Webhooks returns one page of the caller's tenant, newest first.
func (s *Service) Webhooks(ctx context.Context, who slipway.Principal, limit, offset int) (out []slipway.Webhook, err error) {
	if err := authorize(who, mayRead); err != nil {
		return nil, err
	}
	err = s.store.View(ctx, func(tx slipway.Tx) (err error) {
		out, err = tx.Webhooks(who.TenantID, limit, offset)
		return err
	})
	return out, wrap("list webhooks", err)
}

// changeWebhook runs one audited change of a webhook.
func (s *Service) changeWebhook(ctx context.Context, who slipway.Principal, id, operation string, fn func(tx slipway.Tx, w *slipway.Webhook) error) (w slipway.Webhook, err error) {
	if err := authorize(who, mayDelete); err != nil {
		return w, err
	}
	err = s.update(ctx, func(tx slipway.Tx) (err error) {
		if w, err = visibleWebhook(tx, who.TenantID, id); err != nil {
			return err
		}
		before, beforeSecret := webhookView(w), w.Sealed
		if err := fn(tx, &w); err != nil {
			return err
		}
		changes, err := slipway.AuditDiff(before, webhookView(w))
		if err != nil {
			return err
		}
		if w.ID != "" && !bytes.Equal(beforeSecret, w.Sealed) {
			changes = append(changes, slipway.AuditSecrets([]string{"signing"}, []string{"signing"}, []string{"signing"})...)
		}
		return s.audit(tx, who, operation, id, map[string]any{"url": before["url"]}, changes...)
	})
	return w, wrap(operation, err)
}

// PatchWebhook changes url, events or enabled.
func (s *Service) PatchWebhook(ctx context.Context, who slipway.Principal, id string, in slipway.WebhookChange) (slipway.Webhook, error) {
	return s.changeWebhook(ctx, who, id, "update_webhook", func(tx slipway.Tx, w *slipway.Webhook) error {
		if err := in.Validate(); err != nil {
			return err
		}
		*w = w.Apply(in, s.clock())
		return tx.PutWebhook(*w)
	})
}

// RotateWebhook gives the webhook a new secret and returns it, once; deliveries are signed with it from now on.
func (s *Service) RotateWebhook(ctx context.Context, who slipway.Principal, id string) (w slipway.Webhook, secret string, err error) {
	w, err = s.changeWebhook(ctx, who, id, "rotate_webhook_secret", func(tx slipway.Tx, w *slipway.Webhook) (err error) {
		if w.Sealed, secret, err = s.newWebhookSecret(*w); err != nil {
			return err
		}
		w.UpdatedAt = s.clock()
		return tx.PutWebhook(*w)
	})
	return w, secret, err
}

// DeleteWebhook removes a webhook with its log.
func (s *Service) DeleteWebhook(ctx context.Context, who slipway.Principal, id string) error {
	_, err := s.changeWebhook(ctx, who, id, "delete_webhook", func(tx slipway.Tx, w *slipway.Webhook) error {
		err := tx.DeleteWebhook(w.ID)
		*w = slipway.Webhook{} // nothing is left to compare
		return err
	})
	return err
}

// PingWebhook sends a test delivery, also to a disabled webhook.
func (s *Service) PingWebhook(ctx context.Context, who slipway.Principal, id string) (d slipway.Delivery, err error) {
	_, err = s.changeWebhook(ctx, who, id, "ping_webhook", func(tx slipway.Tx, w *slipway.Webhook) (err error) {
		*w, d, err = s.deliver(tx, *w, s.ids(), happening{event: slipway.EventPing})
		return err
	})
	if err == nil {
		s.outbox.wake()
	}
	return d, err
}

// Redeliver sends a delivery again, as a new one with the same event id, sequence and body.
func (s *Service) Redeliver(ctx context.Context, who slipway.Principal, id, deliveryID string) (d slipway.Delivery, err error) {
	_, err = s.changeWebhook(ctx, who, id, "redeliver_webhook", func(tx slipway.Tx, w *slipway.Webhook) (err error) {
		old, err := tx.Delivery(w.ID, deliveryID)
		if slipway.ErrorCode(err) == slipway.CodeNotFound {
			return slipway.Errorf(slipway.CodeNotFound, "Delivery ID %s not found.", deliveryID)
		}
		if err != nil {
			return err
		}
		w.Seq++
		now := s.clock()
		d = slipway.Delivery{
			ID: s.ids(), WebhookID: w.ID, TenantID: w.TenantID, Seq: w.Seq, EventID: old.EventID, Event: old.Event, Sequence: old.Sequence, Body: old.Body,
			Status: slipway.DeliveryPending, NextAt: now, CreatedAt: now, RedeliveryOf: old.ID,
		}
		return s.putDelivery(tx, *w, d)
	})
	if err == nil {
		s.outbox.wake()
	}
	return d, err
}

// Deliveries returns one page of a webhook's log, newest first.
func (s *Service) Deliveries(ctx context.Context, who slipway.Principal, q slipway.DeliveryQuery) (out []slipway.Delivery, err error) {
	if err := authorize(who, mayRead); err != nil {
		return nil, err
	}
	err = s.store.View(ctx, func(tx slipway.Tx) (err error) {
		if _, err = visibleWebhook(tx, who.TenantID, q.WebhookID); err != nil {
			return err
		}
		out, err = tx.Deliveries(q)
		return err
	})
	return out, wrap("list deliveries", err)
}

func visibleWebhook(tx slipway.Tx, tenantID, id string) (slipway.Webhook, error) {
	w, err := tx.Webhook(tenantID, id)
	if slipway.ErrorCode(err) == slipway.CodeNotFound {
		return w, slipway.Errorf(slipway.CodeNotFound, "Webhook ID %s not found.", id)
	}
	return w, err
}
