package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/engine"
	"github.com/slipway-dev/slipway/worker/fake"
)

// hook is a webhook sender that answers what a test tells it to.
type hook struct {
	heard   chan slipway.WebhookRequest
	answers chan slipway.WebhookAnswer
}

func (h *hook) Send(ctx context.Context, r slipway.WebhookRequest) (slipway.WebhookAnswer, error) {
	h.heard <- r
	select {
	case a := <-h.answers:
		if a.Status == 0 {
			return a, errors.New("no answer in time")
		}
		return a, nil
	case <-ctx.Done():
		return slipway.WebhookAnswer{}, ctx.Err()
	}
}

func newHook() *hook {
	return &hook{heard: make(chan slipway.WebhookRequest, 10), answers: make(chan slipway.WebhookAnswer, 10)}
}

func (h *hook) await(t *testing.T) slipway.WebhookRequest {
	t.Helper()
	select {
	case r := <-h.heard:
		return r
	case <-time.After(time.Minute):
		t.Fatal("no webhook was called")
		return slipway.WebhookRequest{}
	}
}

func with(h *hook, policy engine.WebhookPolicy) func(*engine.Config) {
	return func(c *engine.Config) {
		c.Webhooks, c.WebhookPolicy, c.SelfURL = h, policy, "http://self:1/m"
		c.ShowRun = func(r agent.Run) json.RawMessage {
			return raw(`{"run_id":"` + r.ID + `","status":"` + string(r.Status) + `"}`)
		}
	}
}

func TestTheEndOfARunCallsItsWebhook(t *testing.T) {
	t.Parallel()
	h := newHook()
	h.answers <- slipway.WebhookAnswer{Status: 204}
	s := newWorld(t).start("a", 1, map[string]fake.Graph{"agent": echo}, with(h, engine.WebhookPolicy{Headers: map[string]string{"X-Key": "k"}}))
	r := request(s.thread(), "agent", `{"n":1}`)
	r.Webhook = "https://example.com/hook"
	run := s.create(r)
	got := h.await(t)
	if got.URL != r.Webhook || got.Header["X-Key"] != "k" {
		t.Errorf("got %s with %v", got.URL, got.Header)
	}
	var body struct {
		RunID   string `json:"run_id"`
		Status  string
		Values  json.RawMessage
		Error   any
		Started string `json:"run_started_at"`
		Ended   string `json:"run_ended_at"`
		Sent    string `json:"webhook_sent_at"`
	}
	if err := json.Unmarshal(got.Body, &body); err != nil {
		t.Fatal(err)
	}
	if body.RunID != run.ID || body.Status != "success" || string(body.Values) != `{"n":1}` || body.Error != nil {
		t.Errorf("got %s", got.Body)
	}
	if body.Started == "" || body.Ended < body.Started || body.Sent < body.Ended {
		t.Errorf("times: got %q, %q, %q", body.Started, body.Ended, body.Sent)
	}
}

// What could not be delivered is delivered by whoever comes next, also after a restart; what is refused is not repeated.
func TestAWebhookSurvivesARestart(t *testing.T) {
	t.Parallel()
	w, h := newWorld(t), newHook()
	graphs := map[string]fake.Graph{"agent": echo}
	first := w.start("one", 1, graphs, with(h, engine.WebhookPolicy{}))
	r := request(first.thread(), "agent", `{"n":1}`)
	r.Webhook = "https://example.com/hook"
	run := first.create(r)
	first.wait(run)
	h.await(t)
	first.stop() // in the middle of the delivery
	store, bus := w.open("between", slog.New(slog.DiscardHandler))
	err := errors.Join(store.PutOffNotice(t.Context(), run.ID, time.Now()), bus.Close(), store.Close()) // as if its lease were over
	if err != nil {
		t.Fatal(err)
	}
	h.answers <- slipway.WebhookAnswer{Status: 410}
	second := w.start("two", 0, graphs, with(h, engine.WebhookPolicy{}))
	if got := h.await(t); got.URL != r.Webhook {
		t.Errorf("got %s", got.URL)
	}
	deadline := time.Now().Add(time.Minute)
	for {
		next, err := second.store.NextNotice(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if next.IsZero() {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("a refused delivery is still there")
		}
		time.Sleep(time.Millisecond)
	}
}

func TestAFailedDeliveryIsPutOff(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]slipway.WebhookAnswer{"no answer": {}, "5xx": {Status: 503}, "429": {Status: 429, RetryAfter: time.Hour}} {
		h := newHook()
		h.answers <- answer
		s := newWorld(t).start("a", 1, map[string]fake.Graph{"agent": echo}, with(h, engine.WebhookPolicy{}))
		r := request(s.thread(), "agent", `{}`)
		r.Webhook = "https://example.com/hook"
		run := s.create(r)
		h.await(t)
		deadline, want := time.Now().Add(time.Minute), time.Now().Add(2*time.Minute)
		for {
			next, err := s.store.NextNotice(t.Context())
			if err != nil || next.IsZero() || time.Now().After(deadline) {
				t.Fatalf("%s: run %s has no delivery left: %v, %v", name, run.ID, next, err)
			}
			if answer.RetryAfter > 0 && next.After(want) || answer.RetryAfter == 0 && next.Before(time.Now().Add(20*time.Second)) {
				break
			}
			time.Sleep(time.Millisecond)
		}
	}
}

func TestWebhookPolicy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, url string
		policy    engine.WebhookPolicy
		want      string // part of the refusal; "" = allowed
	}{
		{"plain", "https://example.com/x", engine.WebhookPolicy{}, ""},
		{"relative", "/hook", engine.WebhookPolicy{}, "webhooks.url.disable_loopback"},
		{"localhost", "http://localhost:9/x", engine.WebhookPolicy{}, "Loopback webhooks (relative URLs and localhost) are disabled by default"},
		{"loopback address", "http://127.1.2.3/x", engine.WebhookPolicy{}, "disable_loopback"},
		{"mapped loopback", "http://[::ffff:127.0.0.1]/x", engine.WebhookPolicy{}, "disable_loopback"},
		{"relative allowed", "/hook", engine.WebhookPolicy{AllowLoopback: true}, ""},
		{"not http", "ftp://example.com/x", engine.WebhookPolicy{}, "no http or https address"},
		{"no address", "ht tp://%", engine.WebhookPolicy{}, "no address"},
		{"https", "http://example.com/x", engine.WebhookPolicy{RequireHTTPS: true}, "webhooks.url.require_https"},
		{"domain", "https://a.example.com/x", engine.WebhookPolicy{AllowedDomains: []string{"*.example.com"}}, ""},
		{"domain itself", "https://example.com/x", engine.WebhookPolicy{AllowedDomains: []string{"*.example.com"}}, "webhooks.url.allowed_domains"},
		{"look-alike", "https://evilexample.com/x", engine.WebhookPolicy{AllowedDomains: []string{"*.example.com"}}, "webhooks.url.allowed_domains"},
		{"port", "https://example.com/x", engine.WebhookPolicy{AllowedPorts: []int{8443}}, "webhooks.url.allowed_ports"},
		{"long", "https://example.com/" + strings.Repeat("x", 100), engine.WebhookPolicy{MaxURLLength: 50}, "webhooks.url.max_url_length"},
		{"off", "https://example.com/x", engine.WebhookPolicy{Disabled: true}, "http.disable_webhooks"},
	} {
		s := newWorld(t).start("a", 0, map[string]fake.Graph{"agent": echo}, with(newHook(), c.policy), withDates)
		r := request(s.thread(), "agent", `{}`)
		r.Webhook = c.url
		_, err := s.CreateRun(t.Context(), r)
		_, cronErr := s.CreateCron(t.Context(), agent.Cron{Schedule: "soon"}, engine.RunRequest{AssistantID: "agent", Webhook: c.url})
		for _, err := range []error{err, cronErr} {
			if c.want == "" && err != nil || c.want != "" && (slipway.ErrorCode(err) != slipway.CodeInvalid || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s: got %v, want %q", c.name, err, c.want)
			}
		}
	}
}
