package e2e_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestKilledBetweenEventAndDelivery kills the platform while a delivery is under way and another waits: the next one
// delivers both, under the ids they had.
func TestKilledBetweenEventAndDelivery(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	arrived, hold := make(chan http.Header, 100), make(chan struct{})
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived <- r.Header
		select {
		case <-hold:
			w.WriteHeader(http.StatusNoContent)
		case <-r.Context().Done():
		}
	}))
	defer far.Close()
	m.up()
	var hook struct{ ID string }
	status, err := m.call(http.MethodPost, m.url+"/v2/webhooks", `{"url":"`+far.URL+`"}`, &hook)
	if check(t, err); status != http.StatusCreated {
		t.Fatalf("webhook = %d", status)
	}
	const pings = 6 // more than are delivered to one address at a time
	for range pings {
		if status, err = m.call(http.MethodPost, m.url+"/v2/webhooks/"+hook.ID+"/ping", "", nil); err != nil || status != http.StatusCreated {
			t.Fatalf("ping = %d, %v", status, err)
		}
	}
	first := next(t, arrived)
	m.kill()
	close(hold)
	m.up()
	events := map[string]string{} // by delivery
	for again := false; len(events) < pings || !again; {
		h := next(t, arrived)
		id, event := h.Get("Slipway-Delivery"), h.Get("Slipway-Event-Id")
		if known := events[id]; id == "" || event == "" || known != "" && known != event {
			t.Fatalf("delivery %q of event %q, before of %q", id, event, known)
		}
		events[id] = event
		again = again || id == first.Get("Slipway-Delivery") && h.Get("Slipway-Attempt") != "1"
	}
	if got := events[first.Get("Slipway-Delivery")]; got != first.Get("Slipway-Event-Id") {
		t.Errorf("the interrupted delivery came again with event %q, want %q", got, first.Get("Slipway-Event-Id"))
	}
	m.eventually("all are delivered", func() error {
		var log struct{ Resources []struct{ Status string } }
		if _, err := m.call(http.MethodGet, m.url+"/v2/webhooks/"+hook.ID+"/deliveries?limit=100", "", &log); err != nil {
			return err
		}
		if text := fmt.Sprint(log.Resources); len(log.Resources) != pings || strings.Count(text, "delivered") != pings {
			return fmt.Errorf("the log is %s", text)
		}
		return nil
	})
}

// next waits for a delivery. Within the patience, which is shorter than a lease, only a recovery brings it again.
func next(t *testing.T, arrived <-chan http.Header) http.Header {
	t.Helper()
	select {
	case h := <-arrived:
		return h
	case <-time.After(30 * time.Second):
		t.Fatal("no delivery came")
		return nil
	}
}
