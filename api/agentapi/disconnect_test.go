package agentapi_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/agent"
	workerfake "github.com/slipway-dev/slipway/worker/fake"
)

// A closed connection cancels the run where that was asked for, on every call that waits for one; elsewhere the run goes on.
func TestClosedConnections(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, made, method, path, body string // made = the run's path, for calls that join one
		cancels                        bool
	}{
		{"wait", "", "POST", "/runs/wait", `,"on_disconnect":"cancel"`, true},
		{"wait, and goes on", "", "POST", "/runs/wait", `,"on_disconnect":"continue"`, false},
		{"stream", "", "POST", "/runs/stream", `,"on_disconnect":"cancel"`, true},
		{"stream, and goes on", "", "POST", "/runs/stream", ``, false},
		{"join", "/join?cancel_on_disconnect=1", "GET", "", ``, true},
		{"join, and goes on", "/join", "GET", "", ``, false},
		{"join the stream", "/stream?cancel_on_disconnect=true", "GET", "", ``, true},
		{"join the stream, and goes on", "/stream", "GET", "", ``, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			started, stopped, let := make(chan struct{}), make(chan string, 1), make(chan struct{})
			s := newRealServer(t, map[string]workerfake.Graph{"agent": func(ctx context.Context, r *workerfake.Run) agent.Done {
				close(started)
				select {
				case <-ctx.Done():
					stopped <- "cancelled"
					return workerfake.Cancelled()
				case <-let:
					stopped <- "ended"
					return r.Success("", `{}`)
				}
			}})
			method, path, body := c.method, c.path, `{"assistant_id":"agent","input":{}`+c.body+`}`
			if c.made != "" {
				var run struct {
					Thread string `json:"thread_id"`
					ID     string `json:"run_id"`
				}
				s.post(t, "/runs", `{"assistant_id":"agent","input":{}}`, &run)
				path, body = "/threads/"+run.Thread+"/runs/"+run.ID+c.made, ""
			}
			ctx, hangUp := context.WithCancel(t.Context())
			defer hangUp()
			req, err := http.NewRequestWithContext(ctx, method, s.URL+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			res, err := s.Client().Do(req) // the headers come at once
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			<-started
			hangUp()
			want := "cancelled"
			if !c.cancels {
				want = "ended"
				s.body(t, "GET", "/ok", "") // the server has had the time to hear of it
				close(let)
			}
			if got := <-stopped; got != want {
				t.Errorf("the run was %s, want %s", got, want)
			}
		})
	}
}
