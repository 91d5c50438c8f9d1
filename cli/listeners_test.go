package cli_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// recorded makes the control service answer everything below a path with answers by "METHOD path", and returns what it
// was asked last, with the body.
func (c *control) recorded(below string, answers map[string]any) *string {
	last, inner := new(string), c.Config.Handler
	c.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, below) {
			inner.ServeHTTP(w, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		*last = strings.TrimSpace(r.Method + " " + r.URL.RequestURI() + " " + string(body))
		v, known := answers[r.Method+" "+r.URL.Path]
		switch {
		case !known:
			w.WriteHeader(http.StatusNotFound)
			answer(w, map[string]any{"detail": "not here."})
		case v == nil:
			w.WriteHeader(http.StatusNoContent)
		default:
			answer(w, v)
		}
	})
	return last
}

func list(of ...any) map[string]any { return map[string]any{"resources": of, "offset": len(of)} }

// try is one command line: what it asks of the service in the end, and what it prints.
type try struct {
	args         string
	asks, prints string
}

func (c *control) try(t *testing.T, last *string, all []try) {
	t.Helper()
	for _, one := range all {
		*last = ""
		out, err := c.run(strings.Fields(one.args)...)
		if err != nil || *last != one.asks || !strings.Contains(out, one.prints) {
			t.Errorf("%s\nasks   %s\nwant   %s\nprints %s\nwant   %s\nerror  %v", one.args, *last, one.asks, out, one.prints, err)
		}
		out, err = c.run(append(strings.Fields(one.args), "--json")...)
		if err != nil || !json.Valid([]byte(out)) {
			t.Errorf("%s --json prints no JSON: %s (%v)", one.args, out, err)
		}
	}
}

// refuse runs command lines that must fail and say so before anything is changed.
func (c *control) refuse(t *testing.T, all map[string]string) {
	t.Helper()
	for args, want := range all {
		if out, err := c.run(strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q\n%s", args, err, want, out)
		}
	}
}

func TestListeners(t *testing.T) {
	t.Parallel()
	c := newControl(t)
	east := map[string]any{
		"id": "l1", "compute_type": "cluster", "compute_id": "east", "compute_config": map[string]any{"cluster_namespaces": []string{"a", "b"}},
		"version": "0.1.0", "online": true, "last_seen_at": time.Now(),
	}
	west := map[string]any{
		"id": "l2", "compute_type": "cluster", "compute_id": "west", "compute_config": map[string]any{}, "online": false,
		"last_seen_at": time.Now().Add(-3 * time.Hour),
	}
	last := c.recorded("/v2/listeners", map[string]any{
		"GET /v2/listeners": list(east, west), "POST /v2/listeners": east, "PATCH /v2/listeners/l1": east, "PATCH /v2/listeners/l2": west,
		"DELETE /v2/listeners/l2": nil,
	})
	c.try(t, last, []try{
		{"listeners list", "GET /v2/listeners?limit=100&offset=0", "east     a,b         0.1.0    online          l1"},
		{"listeners list", "GET /v2/listeners?limit=100&offset=0", "west     all         -        offline for 3h  l2"},
		{"listeners create east", `POST /v2/listeners {"compute_type":"cluster","compute_id":"east","compute_config":{}}`, "created east (l1)"},
		{
			"listeners create east --namespaces a,b --version 0.1.0",
			`POST /v2/listeners {"compute_type":"cluster","compute_id":"east","compute_config":{"cluster_namespaces":["a","b"]},"version":"0.1.0"}`, "created east (l1)",
		},
		{"listeners patch east --namespaces c", `PATCH /v2/listeners/l1 {"compute_config":{"cluster_namespaces":["c"]}}`, "changed east (l1)"},
		{"listeners patch l2 --all-namespaces", `PATCH /v2/listeners/l2 {"compute_config":{}}`, "changed west (l2)"},
		{"listeners patch east --version 0.2.0", `PATCH /v2/listeners/l1 {"version":"0.2.0"}`, "changed east (l1)"},
		{"listeners delete west", "DELETE /v2/listeners/l2", "deleted west"},
	})
	c.refuse(t, map[string]string{
		"listeners patch east": "nothing to change", "listeners patch east --namespaces a --all-namespaces": "either --namespaces or --all-namespaces",
		"listeners patch north --version 1": `there is no listener "north"`, "listeners delete north": "slipway listeners list", "listeners delete": "accepts 1 arg",
	})
}
