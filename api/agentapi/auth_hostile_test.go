package agentapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/api/agentapi"
	"github.com/slipway-dev/slipway/engine"
)

// Ways by which bob could try to get at what is ann's. TestWhatIsHiddenIsMissing has tried every route with her ids.

// A temporary run leaves no thread behind, but frames that can be replayed for a while: by its own user.
func TestNobodyElseReplaysATemporaryRun(t *testing.T) {
	t.Parallel()
	s := newAuthServer(t)
	mine := s.annsThings()
	path := "/runs/" + mine.gone + "/stream"
	if got := s.do("ann", "GET", path, "", "Last-Event-ID", "-1"); got.status != 200 || !strings.Contains(got.body, "frame-of-ann") {
		t.Errorf("ann: got %d %s", got.status, got.body)
	}
	got := s.do("bob", "GET", path, "", "Last-Event-ID", "-1")
	if got.status != 404 || strings.TrimSpace(got.body) != `{"detail":"Run not found"}` {
		t.Errorf("bob: got %d %s", got.status, got.body)
	}
}

// Ids that exist already, but hidden, are taken: neither their content nor anything of them is given away.
func TestTakenIdsAreConflicts(t *testing.T) {
	t.Parallel()
	s := newAuthServer(t)
	mine := s.annsThings()
	for path, body := range map[string]string{
		"/threads":    `{"thread_id":"{thread}","if_exists":"%"}`,
		"/assistants": `{"assistant_id":"{assistant}","graph_id":"agent","if_exists":"%"}`,
	} {
		for _, mode := range []string{"raise", "do_nothing"} {
			got := s.do("bob", "POST", path, strings.ReplaceAll(mine.fill(body), "%", mode))
			if got.status != 409 || strings.Contains(got.body, "owner") {
				t.Errorf("%s %s: got %d %s, want 409", path, mode, got.status, got.body)
			}
		}
		if got := s.do("ann", "POST", path, strings.ReplaceAll(mine.fill(body), "%", "do_nothing")); got.status != 200 {
			t.Errorf("ann: %s: got %d %s", path, got.status, got.body)
		}
	}
	for _, strategy := range []string{"enqueue", "reject", "interrupt", "rollback"} {
		body := mine.fill(`{"assistant_id":"agent","if_not_exists":"create","multitask_strategy":"` + strategy + `"}`)
		if got := s.do("bob", "POST", "/threads/"+mine.waiting+"/runs", body); got.status != 404 {
			t.Errorf("run with %s: got %d %s", strategy, got.status, got.body)
		}
	}
	if got := s.do("ann", "GET", "/threads/"+mine.waiting+"/runs/"+mine.pending, ""); !strings.Contains(got.body, `"pending"`) {
		t.Errorf("ann's waiting run: %s", got.body)
	}
}

// A run, or a state, of bob's own thread is not led to ann's by an address inside its body.
func TestAddressesInsideBodiesLeadNowhere(t *testing.T) {
	t.Parallel()
	s := newAuthServer(t)
	mine := s.annsThings()
	his := s.must("bob", "POST", "/threads", `{"metadata":{"graph_id":"agent"}}`, "thread_id")
	address := mine.fill(`{"thread_id":"{thread}","checkpoint_id":"{checkpoint}","checkpoint_ns":""}`)
	if got := s.do("bob", "POST", "/threads/"+his+"/state/checkpoint", `{"checkpoint":`+address+`}`); got.status != 404 {
		t.Errorf("state: got %d %s", got.status, got.body)
	}
	for _, body := range []string{`{"assistant_id":"agent","checkpoint":` + address + `}`, `{"assistant_id":"agent","config":{"configurable":` + address + `}}`} {
		if got := s.do("bob", "POST", "/threads/"+his+"/runs/wait", body); got.status != 404 {
			t.Errorf("a run from ann's checkpoint: got %d %s", got.status, got.body)
		}
	}
	address = mine.fill(`{"thread_id":"{thread}","checkpoint_ns":""}`)
	s.must("bob", "POST", "/threads/"+his+"/runs/wait", `{"assistant_id":"agent","checkpoint":`+address+`,"config":{"configurable":`+address+`}}`, "")
	s.mu.Lock()
	job := s.jobs[len(s.jobs)-1]
	s.mu.Unlock()
	if job.Run.ThreadID != his || configurable(t, job)["thread_id"] != his {
		t.Errorf("got a run of thread %s with %s", job.Run.ThreadID, job.Run.Kwargs.Config)
	}
	if got := s.do("bob", "POST", "/threads/"+his+"/state", `{"values":{},"checkpoint":`+address+`}`); got.status == 200 {
		s.mu.Lock()
		last := s.calls[len(s.calls)-1]
		s.mu.Unlock()
		if strings.Contains(last, mine.thread) {
			t.Errorf("the worker was asked to write to ann's thread: %s", last)
		}
	}
}

// Who may only look at a thread cannot end its runs by hanging up.
func TestReadersDoNotCancelByHangingUp(t *testing.T) {
	t.Parallel()
	s := newAuthServer(t)
	mine := s.annsThings()
	s.decide = func(a agent.Authorization) (agent.Verdict, error) {
		if identity(a) == "bob" {
			return agent.Verdict{Allow: a.Action == "read", Value: a.Value}, nil
		}
		return owners(a)
	}
	run := "/threads/" + mine.waiting + "/runs/" + mine.pending
	for _, path := range []string{run + "/join?cancel_on_disconnect=1", run + "/stream?cancel_on_disconnect=1", "/runs/" + mine.pending + "/stream?cancel_on_disconnect=true"} {
		if got := s.do("bob", "GET", path, ""); got.status != 403 {
			t.Errorf("%s: got %d %s, want 403", path, got.status, got.body)
		}
	}
	if got := s.do("ann", "GET", run, ""); !strings.Contains(got.body, `"pending"`) {
		t.Errorf("ann's run: %s", got.body)
	}
}

// Cancelling by status or assistant reaches one's own runs only.
func TestCancelManyReachesOnesOwn(t *testing.T) {
	t.Parallel()
	s := newAuthServer(t)
	mine := s.annsThings()
	his := s.must("bob", "POST", "/threads", `{}`, "thread_id")
	for _, body := range []string{`{"status":"all"}`, `{"status":"pending"}`, `{"assistant_id":"agent"}`} {
		run := s.must("bob", "POST", "/threads/"+his+"/runs", `{"assistant_id":"agent","after_seconds":86400}`, "run_id")
		if got := s.do("bob", "POST", "/runs/cancel", body); got.status != 204 {
			t.Errorf("%s: got %d %s", body, got.status, got.body)
		}
		if got := s.do("bob", "GET", "/threads/"+his+"/runs/"+run, ""); !strings.Contains(got.body, `"interrupted"`) {
			t.Errorf("%s: bob's run is %s", body, got.body)
		}
		if got := s.do("ann", "GET", "/threads/"+mine.waiting+"/runs/"+mine.pending, ""); !strings.Contains(got.body, `"pending"`) {
			t.Errorf("%s: ann's run is %s", body, got.body)
		}
	}
}

// Deleting an assistant takes no threads with it that the caller cannot see.
func TestThreadsOfADeletedAssistant(t *testing.T) {
	t.Parallel()
	s := newAuthServer(t)
	open := s.must("bob", "POST", "/assistants", `{"graph_id":"agent"}`, "assistant_id")
	hers := s.must("ann", "POST", "/threads", `{"metadata":{"assistant_id":"`+open+`"}}`, "thread_id")
	his := s.must("bob", "POST", "/threads", `{"metadata":{"assistant_id":"`+open+`"}}`, "thread_id")
	kept := s.must("bob", "POST", "/threads", `{"metadata":{"assistant_id":"`+open+`"}}`, "thread_id")
	s.decide = func(a agent.Authorization) (agent.Verdict, error) {
		if a.Action == "delete" && strings.Contains(string(a.Value), kept) {
			return agent.Verdict{}, nil
		}
		return owners(a)
	}
	if got := s.do("bob", "DELETE", "/assistants/"+open+"?delete_threads=true", ""); got.status != 204 {
		t.Fatalf("got %d %s", got.status, got.body)
	}
	for user, want := range map[[2]string]int{{"ann", hers}: 200, {"bob", his}: 404, {"bob", kept}: 200} {
		if got := s.do(user[0], "GET", "/threads/"+user[1], ""); got.status != want {
			t.Errorf("%s: got %d, want %d", user[0], got.status, want)
		}
	}
}

// Items that a filter hides are not read, not overwritten, not given away, and not guessed by a filter of the client's.
func TestItemsUnderAFilter(t *testing.T) {
	t.Parallel()
	s := newAuthServer(t)
	s.annsThings()
	const item = "/store/items?namespace=x&key=k"
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", item, "", 404, `{"detail":"Item not found"}`},
		{"GET", "/store/items?namespace=x&key=none", "", 200, "null"},
		{"PUT", "/store/items", `{"namespace":["x"],"key":"k","value":{"owner":"ann"}}`, 403, `{"detail":"Not authorized"}`},
		{"DELETE", "/store/items", `{"namespace":["x"],"key":"k"}`, 403, `{"detail":"Not authorized"}`},
		{"DELETE", "/store/items", `{"namespace":["x"],"key":"none"}`, 204, ""},
		{"POST", "/store/items/search", `{"namespace_prefix":["x"],"filter":{"owner":"ann"}}`, 200, `{"items":[]}`},
		{"POST", "/store/items/search", `{}`, 200, `{"items":[]}`},
		{"POST", "/store/namespaces", `{}`, 200, `{"namespaces":[]}`},
	} {
		if got := s.do("bob", c.method, c.path, c.body); got.status != c.status || strings.TrimSpace(got.body) != c.want {
			t.Errorf("%s %s %s: got %d %s, want %d %s", c.method, c.path, c.body, got.status, got.body, c.status, c.want)
		}
	}
	if got := s.do("ann", "GET", item, ""); !strings.Contains(got.body, `"v":1`) {
		t.Errorf("ann's item: %d %s", got.status, got.body)
	}
}

// sink is a webhook's receiver.
type sink chan slipway.WebhookRequest

func (s sink) Send(_ context.Context, r slipway.WebhookRequest) (slipway.WebhookAnswer, error) {
	s <- r
	return slipway.WebhookAnswer{Status: 200}, nil
}

// httpSink calls what it is told to, as the server does for loopback addresses.
type httpSink struct{ answers chan int }

func (s httpSink) Send(ctx context.Context, r slipway.WebhookRequest) (slipway.WebhookAnswer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL, strings.NewReader(string(r.Body)))
	if err != nil {
		return slipway.WebhookAnswer{}, err
	}
	w, err := http.DefaultClient.Do(request)
	if err != nil {
		return slipway.WebhookAnswer{}, err
	}
	defer w.Body.Close()
	s.answers <- w.StatusCode
	return slipway.WebhookAnswer{Status: w.StatusCode}, nil
}

// A webhook that is led to the server itself comes as nobody.
func TestALoopbackWebhookHasNoRights(t *testing.T) {
	t.Parallel()
	calls := httpSink{make(chan int, 1)}
	s := newAuthServer(t, func(_ *authServer, c *engine.Config) {
		c.Webhooks, c.WebhookPolicy.AllowLoopback, c.ShowRun = calls, true, agentapi.ShowRun
	})
	mine := s.annsThings()
	s.must("bob", "POST", "/runs/wait", `{"assistant_id":"agent","webhook":"`+s.url+"/threads/"+mine.waiting+"/runs/"+mine.pending+`/cancel"}`, "")
	select {
	case status := <-calls.answers:
		if status != 401 {
			t.Errorf("got %d, want 401", status)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the webhook was not called")
	}
	if got := s.do("ann", "GET", "/threads/"+mine.waiting+"/runs/"+mine.pending, ""); !strings.Contains(got.body, `"pending"`) {
		t.Errorf("ann's run: %s", got.body)
	}
}

func configurable(t *testing.T, job agent.Job) map[string]any {
	t.Helper()
	var config struct{ Configurable map[string]any }
	if err := json.Unmarshal(job.Run.Kwargs.Config, &config); err != nil {
		t.Fatal(err)
	}
	return config.Configurable
}
