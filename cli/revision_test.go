package cli_test

import (
	"net/http"
	"strings"
	"testing"
)

// withRevisions adds the calls about revisions to a control service and remembers which of them were made.
func withRevisions(t *testing.T) (*control, *[]string) {
	t.Helper()
	c := newControl(t)
	c.exists = true
	made := &[]string{}
	inner := c.Config.Handler
	c.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/interruption"):
			*made = append(*made, r.Method+" "+r.URL.Path)
			answer(w, map[string]any{"id": "r7", "status": "INTERRUPTED"})
		case strings.HasSuffix(r.URL.Path, "/events"):
			*made = append(*made, r.Method+" "+r.URL.Path)
			answer(w, map[string]any{"events": []any{
				map[string]any{"seq": 1, "status": "QUEUED", "at": "2026-01-02T03:04:05Z"},
				map[string]any{"seq": 2, "status": "BUILD_FAILED", "at": "2026-01-02T03:04:06Z", "reason": "npm ci\n\x1b[2Jended"},
			}})
		default:
			inner.ServeHTTP(w, r)
		}
	})
	return c, made
}

func TestInterrupt(t *testing.T) {
	t.Parallel()
	c, made := withRevisions(t)
	for _, args := range [][]string{{"interrupt", "desk"}, {"interrupt", "desk", "r7"}} {
		out, err := c.run(args...)
		if err != nil || out != "r7 of desk is INTERRUPTED\n" {
			t.Errorf("%v: %q %v", args, out, err)
		}
	}
	want := []string{"POST /v2/deployments/d1/revisions/r1/interruption", "POST /v2/deployments/d1/revisions/r7/interruption"}
	if got := strings.Join(*made, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("calls\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	c, made := withRevisions(t)
	out, err := c.run("events", "desk")
	if err != nil || !strings.Contains(out, "QUEUED        -") || !strings.Contains(out, "BUILD_FAILED  npm ci [2Jended") || strings.Contains(out, "\x1b") {
		t.Errorf("%q %v", out, err)
	}
	if len(*made) != 1 || (*made)[0] != "GET /v2/deployments/d1/revisions/r1/events" {
		t.Errorf("calls %v", *made)
	}
	if out, err = c.run("events", "desk", "--json"); err != nil || !strings.Contains(out, `"status":"QUEUED"`) {
		t.Errorf("%q %v", out, err)
	}
}
