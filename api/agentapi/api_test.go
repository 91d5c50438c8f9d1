package agentapi_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/api/agentapi"
	"github.com/slipway-dev/slipway/engine"
)

const (
	thread = "0199f0a0-0000-7000-8000-000000000001"
	runID  = "0199f0a0-0000-7000-8000-000000000002"
)

// fake answers what a test tells it to; calls it does not know panic on the nil interface.
type fake struct {
	agentapi.Engine
	err       error
	waitErr   error
	frames    []agent.Frame
	open      bool // the stream does not end by itself
	request   engine.RunRequest
	result    engine.Result
	cancelled chan string
	threads   []agent.Thread
	health    engine.Health
	asked     string
	metrics   engine.Metrics
	wanted    agent.ThreadQuery // of the last search for threads
}

func (f *fake) run() agent.Run {
	return agent.Run{
		ID: runID, ThreadID: thread, Status: agent.RunPending, CreatedAt: time.Unix(1, 5000).UTC(), UpdatedAt: time.Unix(2, 0).UTC(),
		Multitask: agent.MultitaskEnqueue,
		Kwargs:    agent.Kwargs{Config: json.RawMessage(`{"configurable":{"langgraph_auth_user":{"token":"secret"},"n":12345678901234567890}}`)},
	}
}

func (f *fake) Health(context.Context) engine.Health { return f.health }

func (f *fake) Metrics(context.Context) (engine.Metrics, error) { return f.metrics, f.err }

func (f *fake) CreateRun(_ context.Context, r engine.RunRequest) (agent.Run, error) {
	f.request = r
	return f.run(), f.err
}

func (f *fake) StreamRun(_ context.Context, r engine.RunRequest) (agent.Run, agentapi.Stream, error) {
	f.request = r
	return f.run(), &stream{frames: f.frames, open: f.open}, f.err
}

func (f *fake) JoinStream(context.Context, string, string, engine.From) (agentapi.Stream, error) {
	return &stream{frames: f.frames, open: f.open}, f.err
}

func (f *fake) Run(context.Context, string, string) (agent.Run, error) { return f.run(), f.err }

func (f *fake) Wait(context.Context, string, string) (engine.Result, error) {
	if f.waitErr != nil {
		return engine.Result{}, f.waitErr
	}
	return f.result, f.err
}

func (f *fake) Thread(context.Context, string) (agent.Thread, error) {
	return agent.Thread{Values: json.RawMessage(`{"left":1}`)}, f.err
}

func (f *fake) Threads(_ context.Context, q agent.ThreadQuery) ([]agent.Thread, error) {
	f.wanted = q
	return f.threads[:min(len(f.threads), q.Limit)], f.err
}

func (f *fake) Authenticate(context.Context, engine.Sender) (*agent.User, error) { return nil, nil }

func (f *fake) MayCancel(context.Context, string, string, agent.CancelAction) error { return f.err }

func (f *fake) Disconnected(_ context.Context, _, _, reason string) error {
	f.cancelled <- reason
	return f.err
}

func (f *fake) Cancel(_ context.Context, _, _ string, _ agent.CancelAction, reason string, _ bool) error {
	f.cancelled <- reason
	return f.err
}

func (f *fake) ChangeCron(_ context.Context, id string, change func(agent.Cron) (agent.Cron, engine.RunRequest, error)) (agent.Cron, error) {
	c, run, err := change(agent.Cron{ID: id, Payload: json.RawMessage(`{"assistant_id":"a"}`)})
	f.request = run
	return c, err
}

func (f *fake) StoreBatch(context.Context, []agent.StoreOp) ([]agent.StoreResult, error) {
	return []agent.StoreResult{{}}, f.err
}

type stream struct {
	frames []agent.Frame
	open   bool
}

func (s *stream) Next(ctx context.Context) (agent.Frame, error) {
	if len(s.frames) > 0 {
		f := s.frames[0]
		s.frames = s.frames[1:]
		return f, nil
	}
	if s.open {
		<-ctx.Done()
		return agent.Frame{}, ctx.Err()
	}
	return agent.Frame{}, io.EOF
}

func (s *stream) Close() {}

func handler(f *fake) http.Handler {
	return agentapi.New(f, agentapi.Config{
		MaxBody: 2000, IDs: func() string { return "made" }, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
}

// sendLong is send for bodies beyond what the other tests allow.
func sendLong(t *testing.T, f *fake, method, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	api := agentapi.New(f, agentapi.Config{Log: slog.New(slog.DiscardHandler)})
	truthful(t, api).ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	return w
}

func send(t *testing.T, f *fake, method, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	truthful(t, handler(f)).ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	return w
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	conflict := "Thread is already running a task. Wait for it to finish or choose a different multitask strategy."
	tests := []struct {
		method, path, body string
		err                error
		status             int
		want               string
	}{
		{"GET", "/nope", "", nil, 404, "Not Found"},
		{"DELETE", "/ok", "", nil, 405, "Method Not Allowed"},
		{"GET", "/threads/x", "", nil, 422, "must be a UUID"},
		{"POST", "/runs", "{", nil, 422, "not valid JSON"},
		{"POST", "/runs", "[]", nil, 422, "must be a JSON object"},
		{"POST", "/runs", "{}", nil, 422, "body.assistant_id: Field required"},
		{"POST", "/runs", strings.Repeat(" ", 2001), nil, 413, "HTTP_MAX_REQUEST_BODY_BYTES"},
		{"POST", "/runs", `{"assistant_id":"a","stream_mode":"x"}`, nil, 422, `"x" is not one of values`},
		{"POST", "/runs", `{"assistant_id":"a","after_seconds":-1}`, nil, 422, "body.after_seconds"},
		{"POST", "/runs", `{"assistant_id":"a","config":{"recursion_limit":0}}`, nil, 422, "body.config.recursion_limit"},
		{"POST", "/runs", `{"assistant_id":"a","multitask_strategy":"x"}`, nil, 422, "must be one of reject"},
		{"POST", "/runs/batch", `[]`, nil, 422, "at least one"},
		{"POST", "/threads/" + thread + "/runs", `{"assistant_id":"a"}`, slipway.Errorf(slipway.CodeConflict, "%s", conflict), 409, conflict},
		{"POST", "/threads/" + thread + "/runs", `{"assistant_id":"a"}`, slipway.Errorf(slipway.CodeUnavailable, "later"), 503, "later"},
		{"POST", "/threads/" + thread + "/runs", `{"assistant_id":"a"}`, io.ErrUnexpectedEOF, 500, "Internal server error"},
		{"POST", "/runs/cancel", `{}`, nil, 422, "Must provide either a status, an assistant_id, or both 'thread_id' and 'run_ids'"},
		{"POST", "/runs/cancel", `{"status":"x"}`, nil, 422, "Invalid status: must be 'pending', 'running', or 'all'"},
		{"POST", "/runs/cancel", `{"status":"all","thread_id":"` + thread + `"}`, nil, 422, "Cannot specify 'thread_id' or 'run_ids' when using 'status'"},
		{"POST", "/runs/cancel", `{"assistant_id":"a","status":"all"}`, nil, 422, "Cannot specify 'thread_id', 'run_ids', or 'status' when using 'assistant_id'"},
		{"PUT", "/store/items", `{"namespace":["a.b"],"key":"k","value":{}}`, nil, 422, "Namespace labels cannot be empty or contain periods. Received: [a.b]"},
		{"PUT", "/store/items", `{"namespace":[],"key":"k","value":{}}`, nil, 400, "Namespace is required"},
		{"POST", "/threads/search", `{"limit":1001}`, nil, 422, "body.limit"},
		{"GET", "/threads/" + thread + "/runs?select=nope", ``, nil, 422, `"nope" is not one of`},
	}
	for _, tt := range tests {
		t.Run(tt.method+" "+tt.path+" "+tt.want, func(t *testing.T) {
			t.Parallel()
			w := send(t, &fake{err: tt.err}, tt.method, tt.path, tt.body)
			var got struct{ Detail string }
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatalf("body %q: %v", w.Body, err)
			}
			if w.Code != tt.status || !strings.Contains(got.Detail, tt.want) {
				t.Errorf("got %d %q, want %d %q", w.Code, got.Detail, tt.status, tt.want)
			}
		})
	}
}

func TestRunIsShownWithoutSecretsAndWithExactNumbers(t *testing.T) {
	t.Parallel()
	w := send(t, &fake{}, "POST", "/threads/"+thread+"/runs", `{"assistant_id":"a"}`)
	if got, want := w.Header().Get("Content-Location"), "/threads/"+thread+"/runs/"+runID; got != want {
		t.Errorf("Content-Location: got %q, want %q", got, want)
	}
	for _, want := range []string{`"created_at":"1970-01-01T00:00:01.000005+00:00"`, "12345678901234567890"} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("got %s, want %s in it", w.Body, want)
		}
	}
	if strings.Contains(w.Body.String(), "secret") {
		t.Errorf("the run shows what authentication put into it: %s", w.Body)
	}
}

func TestNULIsReplacedOnlyWhereItIsAnEscape(t *testing.T) {
	t.Parallel()
	f := &fake{}
	send(t, f, "POST", "/runs", `{"assistant_id":"a","input":"x\u0000y\\u0000"}`)
	if got, want := string(f.request.Input), `"x\ufffdy\\u0000"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestStreamFrames(t *testing.T) {
	t.Parallel()
	f := &fake{frames: []agent.Frame{
		{Event: "metadata", Data: json.RawMessage(`{"attempt":1}`), ID: "1-0"},
		{Event: "values|sub:1", Data: json.RawMessage(`{}`)},
		{Event: "custom", Data: json.RawMessage(`1`)},
		{Event: "messages/partial", Data: json.RawMessage(`[]`)},
		{Event: "end", Data: json.RawMessage(`{}`)},
	}}
	w := send(t, f, "GET", "/threads/"+thread+"/runs/"+runID+"/stream?stream_mode=values,messages-tuple", "")
	want := "event: metadata\ndata: {\"attempt\":1}\nid: 1-0\n\n" + "event: values|sub:1\ndata: {}\n\n" +
		"event: messages/partial\ndata: []\n\n" + "event: end\ndata: {}\n\n"
	if got := w.Body.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	location := "/threads/" + thread + "/runs/" + runID + "/stream?stream_mode=values&stream_mode=messages-tuple"
	if got := w.Header().Get("Location"); got != location {
		t.Errorf("Location: got %q, want %q", got, location)
	}
}

func TestNamespaceFilter(t *testing.T) {
	t.Parallel()
	f := &fake{frames: []agent.Frame{{Event: "values|sub:1"}, {Event: "values"}, {Event: "end"}}}
	w := send(t, f, "POST", "/runs/stream?namespace=sub:1", `{"assistant_id":"a"}`)
	if got, want := w.Body.String(), "event: values|sub:1\ndata: null\n\nevent: end\ndata: null\n\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := w.Header().Get("Content-Location"), "/runs/"+runID; got != want {
		t.Errorf("Content-Location: got %q, want %q", got, want)
	}
}

func TestADisconnectCancelsIfAskedFor(t *testing.T) {
	t.Parallel()
	f := &fake{open: true, cancelled: make(chan string, 1)}
	server := httptest.NewServer(handler(f))
	defer server.Close()
	ctx, hangUp := context.WithCancel(t.Context())
	r, _ := http.NewRequestWithContext(ctx, "POST", server.URL+"/runs/stream", strings.NewReader(`{"assistant_id":"a","on_disconnect":"cancel"}`))
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	hangUp()
	if got, want := <-f.cancelled, "client disconnected"; got != want {
		t.Errorf("reason: got %q, want %q", got, want)
	}
}

func TestJoinPassesTheBodyOn(t *testing.T) {
	t.Parallel()
	f := &fake{result: engine.Result{Body: json.RawMessage(`{"n":12345678901234567890}`)}}
	w := send(t, f, "GET", "/threads/"+thread+"/runs/"+runID+"/join", "")
	if got, want := strings.TrimSpace(w.Body.String()), `{"n":12345678901234567890}`; w.Code != 200 || got != want {
		t.Errorf("got %d %s, want 200 %s", w.Code, got, want)
	}
}

func TestPaginationAndSelect(t *testing.T) {
	t.Parallel()
	f := &fake{threads: []agent.Thread{{ID: "1"}, {ID: "2"}, {ID: "3"}}}
	w := send(t, f, "POST", "/threads/search", `{"limit":2,"offset":4,"select":["thread_id"]}`)
	if got, want := w.Body.String(), `[{"thread_id":"1"},{"thread_id":"2"}]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if next, total := w.Header().Get("X-Pagination-Next"), w.Header().Get("X-Pagination-Total"); next != "6" || total != "7" {
		t.Errorf("got next %s, total %s, want 6 and 7", next, total)
	}
}

func TestDeepHealthNamesGraphsThatFail(t *testing.T) {
	t.Parallel()
	f := &fake{health: engine.Health{Database: "ok", Workers: "broken", Failures: map[string]string{"g": "no module"}, Parts: map[string]string{"auth.path": "no file"}}}
	w := send(t, f, "GET", "/ok?check_db=1", "")
	want := `{"ok":false,"services":{"database":"ok","workers":"broken"},"failures":{"g":"no module"},"parts":{"auth.path":"no file"}}`
	if got := w.Body.String(); w.Code != 500 || got != want {
		t.Errorf("got %d %s, want 500 %s", w.Code, got, want)
	}
	if w := send(t, f, "GET", "/ok", ""); w.Code != 200 || w.Body.String() != `{"ok":true}` {
		t.Errorf("plain /ok: got %d %s", w.Code, w.Body)
	}
}

func TestPreflightAndRequestID(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	r := httptest.NewRequest("OPTIONS", "/runs", nil)
	r.Header.Set("Origin", "http://here")
	r.Header.Set("Access-Control-Request-Method", "POST")
	handler(&fake{}).ServeHTTP(w, r)
	if w.Code != 204 || w.Header().Get("Access-Control-Allow-Origin") != "*" || w.Header().Get("X-Request-Id") != "made" {
		t.Errorf("got %d %v", w.Code, w.Header())
	}
}

func TestAPanicIsAnsweredWithoutItsText(t *testing.T) {
	t.Parallel()
	w := send(t, &fake{}, "GET", "/info", "") // the fake has no Info
	if got, want := w.Body.String(), `{"detail":"Internal server error"}`; w.Code != 500 || got != want {
		t.Errorf("got %d %s, want 500 %s", w.Code, got, want)
	}
}

func TestAnEmptyFilterFiltersNothing(t *testing.T) {
	t.Parallel()
	f := &fake{frames: []agent.Frame{{Event: "custom", Data: json.RawMessage(`1`)}}}
	w := send(t, f, "GET", "/threads/"+thread+"/runs/"+runID+"/stream?stream_mode=", "")
	if got, want := w.Body.String(), "event: custom\ndata: 1\n\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
