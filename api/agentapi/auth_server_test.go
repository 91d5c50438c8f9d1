package agentapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/api/agentapi"
	"github.com/slipway-dev/slipway/bus/local"
	"github.com/slipway-dev/slipway/engine"
	"github.com/slipway-dev/slipway/schedule"
	"github.com/slipway-dev/slipway/store/sqlite"
	workerfake "github.com/slipway-dev/slipway/worker/fake"
)

// authServer is the handler over the real engine, store and bus, with a scripted Auth object: who sends `Bearer ann` is ann.
type authServer struct {
	t    *testing.T
	url  string
	pool *workerfake.Pool

	mu     sync.Mutex
	asked  []string // what handlers were asked, as "ann threads:read"
	values []agent.Authorization
	who    []agent.Authentication // requests that were authenticated
	jobs   []agent.Job
	calls  []string // questions about graphs
	log    bytes.Buffer
	wild   bool // handlers answer with statuses of their own, which no description knows
	decide func(a agent.Authorization) (agent.Verdict, error)
	greet  func(a agent.Authentication, body []byte) (string, error)
}

// change is a setting of a server under test.
type change func(s *authServer, c *engine.Config)

func newAuthServer(t *testing.T, changes ...change) *authServer {
	t.Helper()
	dir := t.TempDir()
	store, err := sqlite.OpenAgent(filepath.Join(dir, "agent.db"))
	if err != nil {
		t.Fatal(err)
	}
	s := &authServer{t: t, decide: owners, greet: bearers}
	log := slog.New(slog.NewTextHandler(locked{&s.log, &s.mu}, nil))
	bus, err := local.Open(filepath.Join(dir, "bus"), "a", log)
	if err != nil {
		t.Fatal(err)
	}
	s.pool = &workerfake.Pool{Store: store, AnswerCall: s.answer, Parts: map[agent.PartName]*agent.PartInfo{
		agent.PartAuth: {Handlers: []string{"*"}, Authenticates: true},
	}}
	s.pool.OnStart = func(p *workerfake.Pool) { s.addWorker() }
	cfg := engine.Config{
		Instance: "a", Graphs: map[string]engine.Graph{"agent": {Language: slipway.Node}}, DrainGrace: time.Millisecond, NextDate: schedule.Next,
		Parts: map[slipway.Language][]agent.PartName{slipway.Node: {agent.PartAuth}},
	}
	for _, change := range changes {
		change(s, &cfg)
	}
	ids := func() string { return uuid.Must(uuid.NewV7()).String() }
	e := engine.New(cfg, store, bus, s.pool, time.Now, ids, log)
	if err := e.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	api := agentapi.New(agentapi.Over(e), agentapi.Config{IDs: ids, Log: log, MaxBody: 4 << 20, UI: cards()})
	var front http.Handler = api
	if !s.wild {
		front = truthful(t, api)
	}
	server := httptest.NewServer(front)
	s.url = server.URL
	t.Cleanup(func() {
		server.CloseClientConnections()
		if err := e.Drain(context.Background()); err != nil {
			t.Error(err)
		}
		server.Close()
		_ = bus.Close()
		_ = store.Close()
	})
	return s
}

func wild(s *authServer, _ *engine.Config) { s.wild = true }

func (s *authServer) addWorker() {
	s.pool.Add(20, map[string]workerfake.Graph{"agent": func(ctx context.Context, r *workerfake.Run) agent.Done {
		s.mu.Lock()
		s.jobs = append(s.jobs, r.Job)
		s.mu.Unlock()
		if strings.Contains(string(r.Job.Run.Kwargs.Input), `"wait"`) {
			<-ctx.Done()
			return agent.Done{Status: "cancelled"}
		}
		return echoGraph(ctx, r)
	}})
}

// bearers takes the word after Bearer for the user.
func bearers(a agent.Authentication, _ []byte) (string, error) {
	for _, h := range a.Headers {
		if name, ok := strings.CutPrefix(h[1], "Bearer "); ok && h[0] == "authorization" {
			return `{"identity":"` + name + `","display_name":"` + name + `","is_authenticated":true,"permissions":["p"],"token":"secret-of-` + name + `"}`, nil
		}
	}
	return "", &agent.HTTPRefusal{Status: 401, Detail: "who are you?", Headers: [][2]string{{"X-Hint", "send a token"}}}
}

// owners lets everybody do everything with what is his own: what he makes is marked so.
func owners(a agent.Authorization) (agent.Verdict, error) {
	var value map[string]any
	if err := json.Unmarshal(a.Value, &value); err != nil {
		return agent.Verdict{}, err
	}
	name := identity(a)
	mark := func(in map[string]any, key string) {
		m, _ := in[key].(map[string]any)
		if m == nil {
			m = map[string]any{}
		}
		m["owner"] = name
		in[key] = m
	}
	switch {
	case a.Resource == "store" && a.Action == "put":
		mark(value, "value")
	case strings.HasPrefix(a.Action, "create"):
		mark(value, "metadata")
	}
	raw, err := json.Marshal(value)
	return agent.Verdict{Allow: true, Filter: json.RawMessage(`{"owner":"` + name + `"}`), Value: raw}, err
}

func identity(a agent.Authorization) string {
	var u struct{ Identity string }
	_ = json.Unmarshal(a.User, &u) // the server sent it
	return u.Identity
}

func (s *authServer) answer(_ context.Context, envelope json.RawMessage, payload []byte) (json.RawMessage, error) {
	var call struct {
		Verb string
		agent.Authorization
	}
	if err := json.Unmarshal(envelope, &call); err != nil {
		return nil, err
	}
	switch call.Verb {
	case "auth.authenticate":
		var a agent.Authentication
		if err := json.Unmarshal(envelope, &a); err != nil {
			return nil, err
		}
		s.mu.Lock()
		s.who = append(s.who, a)
		greet := s.greet
		s.mu.Unlock()
		user, err := greet(a, payload)
		return json.RawMessage(user), err
	case "auth.authorize":
		s.mu.Lock()
		s.asked = append(s.asked, identity(call.Authorization)+" "+call.Resource+":"+call.Action)
		s.values = append(s.values, call.Authorization)
		decide := s.decide
		s.mu.Unlock()
		v, err := decide(call.Authorization)
		if err != nil {
			return nil, err
		}
		return json.Marshal(v)
	}
	s.mu.Lock()
	s.calls = append(s.calls, string(envelope))
	s.mu.Unlock()
	switch call.Verb {
	case "state.update":
		return json.RawMessage(`{"config":{"configurable":{"checkpoint_id":"c","langgraph_auth_user":{"token":"secret-of-ann"}}}}`), nil
	case "state.history":
		return json.RawMessage(`[]`), nil
	case "graph.draw":
		return json.RawMessage(`{"nodes":[],"edges":[]}`), nil
	}
	return json.RawMessage(`{"values":{"x":1},"next":[],"tasks":[],"checkpoint":{"thread_id":"t","checkpoint_ns":"","checkpoint_id":"c","checkpoint_map":null},"metadata":{},"created_at":null,"parent_checkpoint":null,"interrupts":[]}`), nil
}

// answered is what a request was answered.
type answered struct {
	status int
	header http.Header
	body   string
}

// do sends a request as a user; "" is nobody. A stream that would stay open is left after its first bytes.
func (s *authServer) do(user, method, path, body string, headers ...string) answered {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if user != "" {
		r.Header.Set("Authorization", "Bearer "+user)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer w.Body.Close()
	got := answered{status: w.StatusCode, header: w.Header}
	if strings.HasSuffix(strings.Split(path, "?")[0], "/stream") && method == "GET" && !strings.Contains(path, "/runs/") && w.StatusCode == 200 {
		return got
	}
	raw, err := io.ReadAll(w.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	got.body = string(raw)
	return got
}

// must is do for what has to succeed; it returns the named member of the answer.
func (s *authServer) must(user, method, path, body, member string) string {
	s.t.Helper()
	got := s.do(user, method, path, body)
	if got.status >= 300 {
		s.t.Fatalf("%s %s as %s: got %d %s", method, path, user, got.status, got.body)
	}
	var m map[string]any
	_ = json.Unmarshal([]byte(got.body), &m)
	text, _ := m[member].(string)
	return text
}

// takeAsked returns what handlers were asked since the last time.
func (s *authServer) takeAsked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked
	s.asked = nil
	return asked
}

func (s *authServer) lastValue(resource, action string) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.values) - 1; i >= 0; i-- {
		if a := s.values[i]; a.Resource == resource && a.Action == action {
			var m map[string]any
			_ = json.Unmarshal(a.Value, &m)
			return m
		}
	}
	s.t.Fatalf("%s:%s was not asked", resource, action)
	return nil
}

// things are what ann has.
type things struct{ assistant, thread, run, waiting, pending, cron, gone string }

const finishedCheckpoint = "1f000000-0000-6000-8000-000000000001"

func (s *authServer) annsThings() things {
	s.t.Helper()
	var a things
	a.assistant = s.must("ann", "POST", "/assistants", `{"graph_id":"agent"}`, "assistant_id")
	a.thread = s.must("ann", "POST", "/threads", `{}`, "thread_id")
	s.must("ann", "POST", "/threads/"+a.thread+"/runs/wait", `{"assistant_id":"agent","input":{"n":1}}`, "")
	var runs []map[string]any
	if err := json.Unmarshal([]byte(s.do("ann", "GET", "/threads/"+a.thread+"/runs", "").body), &runs); err != nil || len(runs) != 1 {
		s.t.Fatalf("runs: %v, %v", runs, err)
	}
	a.run, _ = runs[0]["run_id"].(string)
	a.waiting = s.must("ann", "POST", "/threads", `{"metadata":{"graph_id":"agent"}}`, "thread_id")
	a.pending = s.must("ann", "POST", "/threads/"+a.waiting+"/runs", `{"assistant_id":"agent","after_seconds":86400}`, "run_id")
	a.cron = s.must("ann", "POST", "/runs/crons", `{"schedule":"0 0 1 1 *","assistant_id":"agent"}`, "cron_id")
	s.must("ann", "PUT", "/store/items", `{"namespace":["x"],"key":"k","value":{"v":1}}`, "")
	stream := s.do("ann", "POST", "/runs/stream", `{"assistant_id":"agent","input":{"mine":"frame-of-ann"},"stream_resumable":true}`)
	a.gone = strings.TrimPrefix(stream.header.Get("Content-Location"), "/runs/")
	s.takeAsked()
	return a
}

func (a things) fill(text string) string {
	return strings.NewReplacer("{assistant}", a.assistant, "{thread}", a.thread, "{run}", a.run, "{waiting}", a.waiting, "{pending}", a.pending,
		"{cron}", a.cron, "{gone}", a.gone, "{checkpoint}", finishedCheckpoint).Replace(text)
}

// strange are ids of nothing.
func strange() things {
	id := func(n string) string { return "0199f0a0-0000-7000-8000-0000000000" + n }
	return things{assistant: id("01"), thread: id("02"), run: id("03"), waiting: id("04"), pending: id("05"), cron: id("06"), gone: id("07")}
}
