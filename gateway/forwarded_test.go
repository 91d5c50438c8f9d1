package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/gateway"
)

// What a request says of the way it came is a trusted proxy's word, or nobody's.
func TestForwardedHeaders(t *testing.T) {
	t.Parallel()
	agent := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s %s", r.Header.Get("X-Forwarded-Proto"), r.Header.Get("X-Forwarded-Host"), r.Header.Get("X-Forwarded-For"))
	})
	for proxies, want := range map[string]string{
		"127.0.0.0/8":  "https agents.example.com 192.0.2.7, 127.0.0.1",
		"192.0.2.0/24": "http HOST 127.0.0.1",
	} {
		g, server := open(t, gateway.Config{TrustedProxies: []netip.Prefix{netip.MustParsePrefix(proxies)}})
		g.Route("desk", "d", "r", agent)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/d/desk/x", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Proto": "https", "Host": "agents.example.com", "For": "192.0.2.7"} {
			req.Header.Set("X-Forwarded-"+name, value)
		}
		want = strings.Replace(want, "HOST", req.Host, 1)
		if got := text(t, req); got != want {
			t.Errorf("from %s trusted: got %q, want %q", proxies, got, want)
		}
	}
}

func text(t *testing.T, req *http.Request) string {
	t.Helper()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
