package control

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/slipway-dev/slipway"
)

const (
	// deliveriesAtOnce bounds what is under way, deliveriesPerHook what is to one address: a slow one holds up nobody else.
	deliveriesAtOnce  = 32
	deliveriesPerHook = 4
	// deliveryLease is after which time a delivery that nobody finished is tried again; it is longer than a sender takes.
	deliveryLease = time.Minute
)

// outbox knows which deliveries this process has under way.
type outbox struct {
	kick chan struct{}
	mu   sync.Mutex
	busy map[string]int // by webhook
	all  int
}

func newOutbox() *outbox { return &outbox{kick: make(chan struct{}, 1), busy: map[string]int{}} }

// wake makes RunWebhooks look again.
func (o *outbox) wake() {
	select {
	case o.kick <- struct{}{}:
	default:
	}
}

// room returns how many deliveries may begin, and the webhooks that have their share.
func (o *outbox) room() (free int, full []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id, n := range o.busy {
		if n >= deliveriesPerHook {
			full = append(full, id)
		}
	}
	return deliveriesAtOnce - o.all, full
}

// begin takes a place for a delivery; false if its webhook has its share.
func (o *outbox) begin(webhookID string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.busy[webhookID] >= deliveriesPerHook || o.all >= deliveriesAtOnce {
		return false
	}
	o.busy[webhookID]++
	o.all++
	return true
}

func (o *outbox) end(webhookID string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all--
	if o.busy[webhookID]--; o.busy[webhookID] == 0 {
		delete(o.busy, webhookID)
	}
	o.wake()
}

// RunWebhooks delivers to webhooks until ctx ends; then it returns nil. What was under way is tried again by the next.
func (s *Service) RunWebhooks(ctx context.Context) error {
	if s.sender == nil {
		return nil
	}
	var under sync.WaitGroup
	defer under.Wait()
	for ctx.Err() == nil {
		claimed, next, err := s.claimDeliveries(ctx)
		if err != nil && ctx.Err() == nil {
			s.log.Error("deliveries not claimed", "error", err)
			next = s.clock().Add(time.Second)
		}
		for _, d := range claimed {
			under.Go(func() {
				defer s.outbox.end(d.WebhookID)
				s.tryDelivery(ctx, d)
			})
		}
		if len(claimed) == 0 {
			s.awaitDeliveries(ctx, next)
		}
	}
	return nil
}

func (s *Service) awaitDeliveries(ctx context.Context, next time.Time) {
	var due <-chan time.Time
	if !next.IsZero() {
		timer := time.NewTimer(max(next.Sub(s.clock()), time.Millisecond))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
	case <-s.outbox.kick:
	case <-due:
	}
}

// claimDeliveries takes what is due and there is room for. Each is leased: whoever dies with it leaves it to be tried again.
// Without any it says when to look again; zero = when woken.
func (s *Service) claimDeliveries(ctx context.Context) (claimed []slipway.Delivery, next time.Time, err error) {
	free, full := s.outbox.room()
	if free <= 0 {
		return nil, next, nil // the end of one wakes
	}
	now := s.clock()
	var due []slipway.Delivery
	err = s.store.View(ctx, func(tx slipway.Tx) (err error) {
		if due, err = tx.DueDeliveries(now, full, free); err != nil || len(due) > 0 {
			return err
		}
		next, err = tx.NextDelivery()
		return err
	})
	if err != nil || len(due) == 0 {
		if len(full) > 0 && !next.After(now) {
			next = time.Time{} // what is due belongs to webhooks that have their share
		}
		return nil, next, err
	}
	err = s.store.Update(ctx, func(tx slipway.Tx) error {
		claimed = nil
		for _, d := range due {
			d, err := tx.Delivery(d.WebhookID, d.ID)
			if err != nil || d.Status != slipway.DeliveryPending || d.NextAt.After(now) {
				continue // gone, or somebody else's by now
			}
			d.Attempts++
			d.NextAt, d.Leased = now.Add(deliveryLease), true
			if err := tx.PutDelivery(d); err != nil {
				return err
			}
			claimed = append(claimed, d)
		}
		return nil
	})
	if err != nil {
		return nil, next, err
	}
	return s.begun(ctx, claimed), next, nil
}

// begun takes places for the claimed deliveries; those beyond their webhook's share are given back.
func (s *Service) begun(ctx context.Context, claimed []slipway.Delivery) []slipway.Delivery {
	var out, back []slipway.Delivery
	for _, d := range claimed {
		if s.outbox.begin(d.WebhookID) {
			out = append(out, d)
		} else {
			back = append(back, d)
		}
	}
	if len(back) == 0 {
		return out
	}
	err := s.store.Update(ctx, func(tx slipway.Tx) error {
		for _, d := range back {
			d.Attempts, d.NextAt, d.Leased = d.Attempts-1, s.clock(), false
			if err := tx.PutDelivery(d); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		s.log.Warn("deliveries not given back", "error", err) // their lease gives them back
	}
	return out
}

// freeDeliveries ends the leases of whoever died while delivering; what waits for a later try goes on waiting.
func (s *Service) freeDeliveries(tx slipway.Tx) error {
	now := s.clock()
	held, err := tx.DeliveriesBetween(now, now.Add(deliveryLease))
	if err != nil {
		return err
	}
	for _, d := range held {
		if !d.Leased {
			continue
		}
		d.Leased, d.NextAt = false, now
		if err := tx.PutDelivery(d); err != nil {
			return err
		}
	}
	return nil
}

// tryDelivery sends one delivery and records what came of it.
func (s *Service) tryDelivery(ctx context.Context, d slipway.Delivery) {
	var w slipway.Webhook
	err := s.store.View(ctx, func(tx slipway.Tx) (err error) {
		w, err = tx.Webhook("", d.WebhookID)
		return err
	})
	if err != nil {
		return // deleted, or the store is away: the lease decides
	}
	var answer slipway.WebhookAnswer
	failure := slipway.Errorf(slipway.CodeConflict, "the webhook is disabled")
	if w.Enabled || d.Event == slipway.EventPing || d.RedeliveryOf != "" {
		answer, failure = s.send(ctx, w, d)
	}
	if ctx.Err() != nil {
		return // not the webhook's fault
	}
	if err := s.attempted(ctx, d, w.Enabled, answer, failure); err != nil && ctx.Err() == nil {
		s.log.Error("delivery not recorded", "delivery_id", d.ID, "error", err)
	}
}

func (s *Service) send(ctx context.Context, w slipway.Webhook, d slipway.Delivery) (slipway.WebhookAnswer, error) {
	secret, err := s.sealer.Open(w.TenantID, w.ID, webhookSecret, w.Sealed)
	if err != nil {
		return slipway.WebhookAnswer{}, slipway.Errorf(slipway.CodeInvalid, "the webhook's secret cannot be opened with this installation's master key; rotate it")
	}
	at := s.clock().Unix()
	return s.sender.Send(ctx, slipway.WebhookRequest{URL: w.URL, Body: []byte(d.Body), Header: map[string]string{
		"Content-Type":      "application/json",
		"Slipway-Event":     string(d.Event),
		"Slipway-Event-Id":  d.EventID,
		"Slipway-Delivery":  d.ID,
		"Slipway-Sequence":  strconv.FormatInt(d.Sequence, 10),
		"Slipway-Attempt":   strconv.Itoa(d.Attempts),
		"Slipway-Signature": fmt.Sprintf("t=%d,v1=%s", at, Signature(secret, at, d.Body)),
	}})
}

// Signature is the v1 of the header Slipway-Signature: hex HMAC-SHA256 over "<t>.<body>", keyed with the webhook's secret.
func Signature(secret string, at int64, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%d.%s", at, body)
	return hex.EncodeToString(mac.Sum(nil))
}

func (s *Service) attempted(ctx context.Context, d slipway.Delivery, enabled bool, answer slipway.WebhookAnswer, failure error) error {
	jitter := s.jitter()
	return s.store.Update(ctx, func(tx slipway.Tx) error {
		stored, err := tx.Delivery(d.WebhookID, d.ID)
		if slipway.ErrorCode(err) == slipway.CodeNotFound {
			return nil
		}
		if err != nil || stored.Attempts != d.Attempts {
			return err // somebody else tries it by now
		}
		w, err := tx.Webhook("", d.WebhookID)
		if err != nil {
			return err
		}
		stored.Leased = false
		done, after := stored.Attempted(w, answer, failure, s.cfg.Deliveries, jitter, s.clock())
		if !enabled && done.Status == slipway.DeliveryPending {
			done.Status = slipway.DeliveryFailed
		}
		if w.Enabled && !after.Enabled {
			s.log.Warn("webhook disabled", "webhook_id", w.ID, "error", done.Error)
		}
		return s.putDelivery(tx, after, done)
	})
}

// jitter is a random number in [0, 1); without randomness nothing is spread.
func (s *Service) jitter() float64 {
	var raw [8]byte
	if _, err := io.ReadFull(s.random, raw[:]); err != nil {
		return 0
	}
	return float64(binary.BigEndian.Uint64(raw[:])>>11) / (1 << 53)
}
