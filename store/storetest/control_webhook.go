package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
)

func webhooks(t *testing.T, s slipway.Store) {
	at := startTime()
	delivery := func(id, hook string, seq int64, status slipway.DeliveryStatus, next time.Duration) slipway.Delivery {
		return slipway.Delivery{ID: id, WebhookID: hook, TenantID: "t", Seq: seq, Status: status, NextAt: at.Add(next), CreatedAt: at.Add(time.Duration(seq) * time.Hour), Body: "{}"}
	}
	update(t, s, func(tx slipway.Tx) error {
		for _, w := range []slipway.Webhook{{ID: "w1", TenantID: "t", URL: "a"}, {ID: "w2", TenantID: "t", URL: "b"}, {ID: "w3", TenantID: "other"}, {ID: "w1", TenantID: "t", URL: "c", Seq: 4}} {
			must(t, tx.PutWebhook(w))
		}
		for _, d := range []slipway.Delivery{
			delivery("d1", "w1", 1, slipway.DeliveryDelivered, 0), delivery("d2", "w1", 2, slipway.DeliveryPending, 2*time.Second),
			delivery("d3", "w1", 3, slipway.DeliveryPending, time.Second), delivery("d4", "w2", 1, slipway.DeliveryPending, 0),
		} {
			must(t, tx.PutDelivery(d))
		}
		return nil
	})
	must(t, s.View(context.Background(), func(tx slipway.Tx) error {
		list, err := tx.Webhooks("t", 0, 0)
		must(t, err)
		equal(t, "webhooks", fmt.Sprint(len(list), list[0].ID, list[1].URL), "2w2c")
		_, err = tx.Webhook("other", "w1")
		wantCode(t, err, slipway.CodeNotFound)
		_, err = tx.Delivery("w2", "d1")
		wantCode(t, err, slipway.CodeNotFound)
		next, err := tx.NextDelivery()
		must(t, err)
		equal(t, "next", next.Equal(at), true)
		return nil
	}))
	due := func(busy []string, limit int) string {
		return ids(t, s, func(tx slipway.Tx) ([]slipway.Delivery, error) {
			return tx.DueDeliveries(at.Add(time.Second), busy, limit)
		})
	}
	log := func(q slipway.DeliveryQuery) string {
		return ids(t, s, func(tx slipway.Tx) ([]slipway.Delivery, error) { return tx.Deliveries(q) })
	}
	between := func(from, until time.Duration) string {
		return ids(t, s, func(tx slipway.Tx) ([]slipway.Delivery, error) {
			return tx.DeliveriesBetween(at.Add(from), at.Add(until))
		})
	}
	equal(t, "due within two seconds", between(0, 2*time.Second), "[d3 d2]")
	equal(t, "due within one second", between(-1, time.Second), "[d4 d3]")
	equal(t, "due", due(nil, 9), "[d4 d3]")
	equal(t, "the first due", due(nil, 1), "[d4]")
	equal(t, "due but for a busy one", due([]string{"w2"}, 9), "[d3]")
	equal(t, "log", log(slipway.DeliveryQuery{WebhookID: "w1", Limit: 2}), "[d3 d2]")
	equal(t, "pending", log(slipway.DeliveryQuery{WebhookID: "w1", Status: slipway.DeliveryPending, Offset: 1}), "[d2]")
	update(t, s, func(tx slipway.Tx) error { return tx.PruneWebhookLog("w1", 0, at.Add(24*time.Hour)) })
	equal(t, "log without what is finished and old", log(slipway.DeliveryQuery{WebhookID: "w1"}), "[d3 d2]")
	update(t, s, func(tx slipway.Tx) error { return tx.PruneWebhookLog("w1", 2, at) })
	equal(t, "log without the oldest", log(slipway.DeliveryQuery{WebhookID: "w1"}), "[d3]")
	update(t, s, func(tx slipway.Tx) error { return tx.DeleteWebhook("w1") })
	equal(t, "log of a deleted webhook", log(slipway.DeliveryQuery{WebhookID: "w1"}), "[]")
}

func ids(t *testing.T, s slipway.Store, read func(tx slipway.Tx) ([]slipway.Delivery, error)) string {
	t.Helper()
	out := []string{}
	must(t, s.View(context.Background(), func(tx slipway.Tx) error {
		found, err := read(tx)
		for _, d := range found {
			out = append(out, d.ID)
		}
		return err
	}))
	return fmt.Sprint(out)
}
