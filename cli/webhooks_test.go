package cli_test

import (
	"testing"
	"time"
)

func TestWebhooks(t *testing.T) {
	t.Parallel()
	c := newControl(t)
	on := map[string]any{"id": "w1", "url": "https://example.com/hook", "events": []string{}, "enabled": true}
	off := map[string]any{"id": "w2", "url": "https://example.com/other", "events": []string{"deployment.created"}, "enabled": false, "note": "failed for 5 days"}
	failing := map[string]any{"id": "w3", "url": "https://example.com/x", "events": []string{}, "enabled": true, "failing_since": time.Now().Add(-2 * time.Hour)}
	fresh := map[string]any{"id": "w1", "url": "https://example.com/hook", "events": []string{}, "enabled": true, "secret": "whs_1"}
	sent := map[string]any{"id": "d1", "event": "deployment.created", "status": "failed", "attempts": 3, "error": "connection\x1b refused", "created_at": time.Now().Add(-time.Hour)}
	arrived := map[string]any{"id": "d2", "event": "ping", "status": "delivered", "attempts": 1, "response_code": 204, "created_at": time.Now().Add(-time.Hour)}
	last := c.recorded("/v2/webhooks", map[string]any{
		"GET /v2/webhooks": list(on, off, failing), "POST /v2/webhooks": fresh, "PATCH /v2/webhooks/w1": on, "DELETE /v2/webhooks/w1": nil,
		"POST /v2/webhooks/w1/rotate": fresh, "POST /v2/webhooks/w1/ping": arrived, "GET /v2/webhooks/w1/deliveries": list(sent, arrived),
		"POST /v2/webhooks/w1/deliveries/d1/redeliver": arrived,
	})
	c.try(t, last, []try{
		{"webhooks list", "GET /v2/webhooks?limit=100&offset=0", "https://example.com/hook   all                 enabled                      w1"},
		{"webhooks list", "GET /v2/webhooks?limit=100&offset=0", "https://example.com/other  deployment.created  disabled: failed for 5 days  w2"},
		{"webhooks list", "GET /v2/webhooks?limit=100&offset=0", "failing for 2h"},
		{"webhooks create https://example.com/hook", `POST /v2/webhooks {"url":"https://example.com/hook"}`, "secret  whs_1"},
		{
			"webhooks create https://example.com/hook --events deployment.created,revision.status_changed",
			`POST /v2/webhooks {"url":"https://example.com/hook","events":["deployment.created","revision.status_changed"]}`, "created w1",
		},
		{"webhooks patch w1 --to https://example.com/2 --disable", `PATCH /v2/webhooks/w1 {"url":"https://example.com/2","enabled":false}`, "changed w1"},
		{"webhooks patch w1 --enable", `PATCH /v2/webhooks/w1 {"enabled":true}`, "changed w1"},
		{"webhooks patch w1 --all-events", `PATCH /v2/webhooks/w1 {"events":[]}`, "events all"},
		{"webhooks rotate w1", "POST /v2/webhooks/w1/rotate", "secret  whs_1"},
		{"webhooks ping w1", "POST /v2/webhooks/w1/ping", "delivery d2 is on its way"},
		{"webhooks deliveries w1", "GET /v2/webhooks/w1/deliveries?limit=20&offset=0", "1h   deployment.created  failed     3         connection refused  d1"},
		{"webhooks deliveries w1 --status failed --limit 5", "GET /v2/webhooks/w1/deliveries?limit=5&offset=0&status=failed", "204"},
		{"webhooks redeliver w1 d1", "POST /v2/webhooks/w1/deliveries/d1/redeliver", "delivery d2 is on its way"},
		{"webhooks delete w1", "DELETE /v2/webhooks/w1", "deleted w1"},
	})
	c.refuse(t, map[string]string{
		"webhooks patch w1": "nothing to change", "webhooks patch w1 --enable --disable": "either --enable or --disable",
		"webhooks deliveries w1 --limit 1000": "give 1 to 100", "webhooks ping w9": "not here", "webhooks redeliver w1": "accepts 2 arg",
	})
}
