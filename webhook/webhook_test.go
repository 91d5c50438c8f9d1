package webhook_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/webhook"
)

func at() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func TestSend(t *testing.T) {
	t.Parallel()
	elsewhere := 0
	mux := http.NewServeMux()
	mux.HandleFunc("/ok", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, r.Method+" "+r.Header.Get("Slipway-Event")+" "+string(body)+strings.Repeat("x", 5000))
	})
	mux.HandleFunc("/busy", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "120")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	mux.HandleFunc("/later", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", at().Add(time.Minute).Format(http.TimeFormat))
		w.WriteHeader(http.StatusTooManyRequests)
	})
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) })
	mux.HandleFunc("/elsewhere", func(http.ResponseWriter, *http.Request) { elsewhere++ })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	s := webhook.New(webhook.Config{Clock: at})
	for path, want := range map[string]slipway.WebhookAnswer{
		"/ok": {Status: 200}, "/busy": {Status: 503, RetryAfter: 2 * time.Minute}, "/later": {Status: 429, RetryAfter: time.Minute}, "/moved": {Status: 302},
	} {
		got, err := s.Send(t.Context(), slipway.WebhookRequest{URL: server.URL + path, Header: map[string]string{"Slipway-Event": "ping"}, Body: []byte("{}")})
		if err != nil {
			t.Fatal(err)
		}
		if got.Status != want.Status || got.RetryAfter != want.RetryAfter {
			t.Errorf("%s = %d, retry after %s; want %d, %s", path, got.Status, got.RetryAfter, want.Status, want.RetryAfter)
		}
		if path == "/ok" && (len(got.Body) != slipway.MaxWebhookResponse || !strings.HasPrefix(got.Body, "POST ping {}")) {
			t.Errorf("body = %d bytes %.20q", len(got.Body), got.Body)
		}
	}
	if elsewhere != 0 {
		t.Error("a redirect was followed")
	}
	if _, err := webhook.New(webhook.Config{Clock: at, Refuse: webhook.PublicOnly}).Send(t.Context(), slipway.WebhookRequest{URL: strings.Replace(server.URL, "127.0.0.1", "localhost", 1)}); err == nil || !strings.Contains(err.Error(), "not public") {
		t.Errorf("a name that leads to a private address = %v, want it refused", err)
	}
}

func TestPublic(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"93.184.216.34": true, "2606:2800:220:1::1": true, "127.0.0.1": false, "10.0.0.1": false, "172.16.0.1": false, "192.168.1.1": false,
		"169.254.169.254": false, "100.64.0.1": false, "0.0.0.0": false, "224.0.0.1": false, "::1": false, "fe80::1": false, "fd00::1": false,
		"::ffff:127.0.0.1": false, "64:ff9b::7f00:1": false,
	} {
		if got := webhook.Public(netip.MustParseAddr(text)); got != want {
			t.Errorf("Public(%s) = %v, want %v", text, got, want)
		}
	}
}

func TestWhoMayBeCalled(t *testing.T) {
	t.Parallel()
	for address, want := range map[string][3]bool{ // public only, not here, not metadata
		"93.184.216.34": {true, true, true}, "10.1.2.3": {false, true, true}, "127.0.0.1": {false, false, true}, "::1": {false, false, true},
		"169.254.169.254": {false, false, false}, "fd00:ec2::254": {false, false, false}, "fe80::1": {false, false, false}, "0.0.0.0": {false, false, false},
		"fd12::1": {false, true, true}, "224.0.0.1": {false, false, false},
		"100.100.100.200": {false, false, false}, "192.0.0.192": {false, false, false}, "fd20:ce::254": {false, false, false},
		"::ffff:169.254.169.254": {false, false, false}, "64:ff9b::a9fe:a9fe": {false, false, false}, "64:ff9b::7f00:1": {false, false, false},
		"2002:a9fe:a9fe::1": {false, false, false}, "64:ff9b::5db8:d822": {false, true, true}, "fe80::1%eth0": {false, false, false},
	} {
		ip := netip.MustParseAddr(address)
		got := [3]bool{webhook.PublicOnly(ip) == nil, webhook.NotHere(ip) == nil, webhook.NotMetadata(ip) == nil}
		if got != want {
			t.Errorf("%s: got %v, want %v", address, got, want)
		}
	}
}
