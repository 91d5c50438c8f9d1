package feedback_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/feedback"
)

func TestURLs(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		want := `[{"run_id":"r","feedback_key":"a","expires_in":{"days":0,"hours":3,"minutes":0}},{"run_id":"r","feedback_key":"b","expires_in":{"days":0,"hours":3,"minutes":0}}]`
		if r.URL.Path != "/api/feedback/tokens" || r.Header.Get("X-Api-Key") != "k" || string(raw) != want {
			t.Errorf("%s %s with key %q: %s", r.Method, r.URL, r.Header.Get("X-Api-Key"), raw)
		}
		_ = json.NewEncoder(w).Encode([]map[string]string{{"url": "https://x/1"}, {"url": "https://x/2"}})
	}))
	defer server.Close()
	got, err := feedback.New(server.URL+"/api/", "k", server.Client()).URLs(t.Context(), "r", []string{"a", "b"})
	if err != nil || got["a"] != "https://x/1" || got["b"] != "https://x/2" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestRefusalsDoNotTellTheKey(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"403 ":      func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "bad key secret", http.StatusForbidden) },
		"not what":  func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
		"0 address": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("[]")) },
	} {
		server := httptest.NewServer(answer)
		_, err := feedback.New(server.URL, "secret", server.Client()).URLs(t.Context(), "r", []string{"a"})
		if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "secret") {
			t.Errorf("got %v, want %q", err, name)
		}
		server.Close()
	}
}
