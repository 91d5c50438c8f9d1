package control_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/control"
	"github.com/slipway-dev/slipway/control/controltest"
	"github.com/slipway-dev/slipway/seal"
)

// receiver is the far end of webhooks. It answers what answer says.
type receiver struct {
	mu     sync.Mutex
	got    []slipway.WebhookRequest
	at     []time.Time
	answer func(n int) (slipway.WebhookAnswer, error)
}

func (r *receiver) Send(_ context.Context, req slipway.WebhookRequest) (slipway.WebhookAnswer, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got, r.at = append(r.got, req), append(r.at, time.Now())
	if r.answer == nil {
		return slipway.WebhookAnswer{Status: 204}, nil
	}
	return r.answer(len(r.got))
}

// hooked is a service in a bubble of time, with one webhook.
type hooked struct {
	*control.Service
	t      *testing.T
	who    slipway.Principal
	hook   slipway.Webhook
	secret string
}

func newHooked(t *testing.T, store slipway.Store, sender slipway.WebhookSender) *hooked {
	t.Helper()
	key, err := seal.New(bytes.Repeat([]byte{7}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	var mu sync.Mutex
	ids := func() string {
		mu.Lock()
		defer mu.Unlock()
		n++
		return fmt.Sprintf("01900000-0000-7000-8000-%012d", n)
	}
	svc := control.New(control.Config{UploadKey: []byte("k")}, control.Deps{
		Store: store, Blob: &controltest.Blob{}, Sealer: key, Clock: time.Now, IDs: ids, Random: zeros{}, Log: slog.New(slog.DiscardHandler), Webhooks: sender,
	})
	h := &hooked{Service: svc, t: t, who: slipway.Principal{ID: "admin", TenantID: "t", Role: slipway.RoleAdmin}}
	return h
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

var _ io.Reader = zeros{}

func (h *hooked) listen(events ...slipway.WebhookEvent) {
	h.t.Helper()
	var err error
	h.hook, h.secret, err = h.CreateWebhook(h.t.Context(), h.who, slipway.WebhookChange{URL: p("https://example.com/h"), Events: &events})
	must(h.t, 0, err)
}

func (h *hooked) deployment() control.Deployment {
	h.t.Helper()
	d, err := h.Create(h.t.Context(), h.who, slipway.DeploymentCreate{
		Name: "desk", Source: slipway.SourceGithost, SourceConfig: slipway.SourceConfig{RepoURL: p("https://example.com/a/b")},
		SourceRevisionConfig: slipway.SourceRevisionConfig{AgentgraphConfigPath: p("agentgraph.json")},
		Secrets:              []slipway.Secret{{Name: "TOKEN", Value: canary}},
	})
	return must(h.t, d, err)
}

func (h *hooked) log() []slipway.Delivery {
	h.t.Helper()
	out, err := h.Deliveries(h.t.Context(), h.who, slipway.DeliveryQuery{WebhookID: h.hook.ID})
	return must(h.t, out, err)
}

func TestWebhooksAreToldWhatHappens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{}
		h := newHooked(t, controltest.NewStore(), r)
		h.listen()
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go h.RunWebhooks(ctx)
		d := h.deployment()
		must(t, 0, h.Delete(t.Context(), h.who, d.ID, control.Deletion{}))
		synctest.Wait()
		seen := map[string]int{}
		for _, req := range r.got {
			var body struct {
				ID, Type string
				Sequence int64
				Data     struct{ Deployment struct{ ID, Name string } }
			}
			must(t, 0, json.Unmarshal(req.Body, &body))
			seen[body.Type]++
			if body.ID != req.Header["Slipway-Event-Id"] || body.Data.Deployment.ID != d.ID || strings.Contains(string(req.Body), canary) {
				t.Errorf("delivery = %s %v", req.Body, req.Header)
			}
			var at int64
			var mac string
			fmt.Sscanf(strings.Replace(req.Header["Slipway-Signature"], ",v1=", " ", 1), "t=%d %s", &at, &mac)
			if mac != control.Signature(h.secret, at, string(req.Body)) || at == 0 {
				t.Errorf("signature = %q", req.Header["Slipway-Signature"])
			}
		}
		if seen["deployment.created"] != 1 || seen["deployment.deleted"] != 1 || seen["revision.status_changed"] < 3 {
			t.Errorf("told = %v", seen)
		}
		for _, d := range h.log() {
			if d.Status != slipway.DeliveryDelivered || d.Attempts != 1 {
				t.Errorf("log = %+v", d)
			}
		}
		stop()
		synctest.Wait()
	})
}

func TestADeliveryIsTriedForADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{answer: func(n int) (slipway.WebhookAnswer, error) {
			if n == 2 {
				return slipway.WebhookAnswer{Status: 503, RetryAfter: 3 * time.Hour}, nil
			}
			return slipway.WebhookAnswer{}, errors.New("no answer: refused")
		}}
		h := newHooked(t, controltest.NewStore(), r)
		h.listen(slipway.EventDeploymentCreated)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go h.RunWebhooks(ctx)
		h.deployment()
		time.Sleep(25 * time.Hour)
		synctest.Wait()
		d := h.log()[0]
		if d.Status != slipway.DeliveryFailed || d.Error != "no answer: refused" || d.Attempts != len(r.got) || d.Attempts < 15 {
			t.Errorf("after a day: %s after %d attempts, %q", d.Status, d.Attempts, d.Error)
		}
		if gap := r.at[2].Sub(r.at[1]); gap != 3*time.Hour {
			t.Errorf("Retry-After of 3h was followed after %s", gap)
		}
		if last := r.at[len(r.at)-1].Sub(r.at[0]); last > 24*time.Hour {
			t.Errorf("tried for %s", last)
		}
		r.answer = nil
		again, err := h.Redeliver(t.Context(), h.who, h.hook.ID, d.ID)
		must(t, 0, err)
		synctest.Wait()
		if got := h.log()[0]; got.ID != again.ID || got.Status != slipway.DeliveryDelivered || got.EventID != d.EventID || got.Sequence != d.Sequence {
			t.Errorf("redelivery = %+v", got)
		}
		stop()
		synctest.Wait()
	})
}

func TestAWebhookThatOnlyFailsIsDisabled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{answer: func(int) (slipway.WebhookAnswer, error) { return slipway.WebhookAnswer{Status: 500}, nil }}
		h := newHooked(t, controltest.NewStore(), r)
		h.listen()
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go h.RunWebhooks(ctx)
		for range 6 {
			_, err := h.PingWebhook(t.Context(), h.who, h.hook.ID)
			must(t, 0, err)
			time.Sleep(24 * time.Hour)
		}
		w, err := h.Webhook(t.Context(), h.who, h.hook.ID)
		must(t, 0, err)
		if w.Enabled || !strings.Contains(w.Note, "answered 500") {
			t.Errorf("after five days of failures: enabled = %v, note = %q", w.Enabled, w.Note)
		}
		before := len(h.log())
		h.deployment()
		if got := len(h.log()); got != before {
			t.Errorf("a disabled webhook got %d deliveries", got-before)
		}
		w, err = h.PatchWebhook(t.Context(), h.who, h.hook.ID, slipway.WebhookChange{Enabled: p(true)})
		if must(t, 0, err); !w.Enabled || w.Note != "" {
			t.Errorf("enabled again = %+v", w)
		}
		stop()
		synctest.Wait()
	})
}

// A process that dies between an event and its delivery, or in the middle of one, loses neither.
func TestADeathBetweenCommitAndDeliveryLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := controltest.NewStore()
		first := newHooked(t, store, hanging{})
		first.listen(slipway.EventDeploymentCreated)
		first.deployment() // committed, and nobody delivers
		ctx, kill := context.WithCancel(t.Context())
		go first.RunWebhooks(ctx)
		synctest.Wait() // claimed, and in the middle of it
		kill()
		r := &receiver{}
		second := newHooked(t, store, r)
		second.hook = first.hook
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go second.RunWebhooks(ctx)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if len(r.got) != 1 || second.log()[0].Status != slipway.DeliveryDelivered {
			t.Errorf("delivered %d times, log = %+v", len(r.got), second.log())
		}
		stop()
		synctest.Wait()
	})
}

func TestARestartTriesAgainAtOnceWhatItInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := controltest.NewStore()
		first := newHooked(t, store, hanging{})
		first.listen(slipway.EventDeploymentCreated)
		first.deployment()
		ctx, kill := context.WithCancel(t.Context())
		go first.RunWebhooks(ctx)
		synctest.Wait()
		kill()
		waiting := first.log()[0] // it failed before, and its next try is not due yet
		waiting.ID, waiting.Seq, waiting.Leased, waiting.NextAt = "another", waiting.Seq+1, false, time.Now().Add(30*time.Second)
		must(t, 0, store.Update(t.Context(), func(tx slipway.Tx) error { return tx.PutDelivery(waiting) }))
		r := &receiver{}
		second := newHooked(t, store, r)
		second.hook = first.hook
		must(t, 0, second.Recover(t.Context()))
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go second.RunWebhooks(ctx)
		synctest.Wait() // no time passes
		if len(r.got) != 1 || r.got[0].Header["Slipway-Delivery"] == "another" || r.got[0].Header["Slipway-Attempt"] != "2" {
			t.Errorf("tried at once: %+v, want the second attempt of what was interrupted alone", r.got)
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if len(r.got) != 2 || r.got[1].Header["Slipway-Delivery"] != "another" {
			t.Errorf("after half a minute %d deliveries, want the one that waited too", len(r.got))
		}
		stop()
		synctest.Wait()
	})
}

// hanging never answers.
type hanging struct{}

func (hanging) Send(ctx context.Context, _ slipway.WebhookRequest) (slipway.WebhookAnswer, error) {
	<-ctx.Done()
	return slipway.WebhookAnswer{}, ctx.Err()
}
