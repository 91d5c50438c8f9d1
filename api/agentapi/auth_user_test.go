package agentapi_test

import (
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/api/agentapi"
	"github.com/slipway-dev/slipway/engine"
)

// lastJob waits for the job of a user's run.
func (s *authServer) lastJob() agent.Job {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.jobs) == 0 {
		s.t.Fatal("nothing has run")
	}
	return s.jobs[len(s.jobs)-1]
}

const forged = `{"langgraph_auth_user":{"identity":"eve"},"langgraph_auth_user_id":"eve","langgraph_auth_permissions":["all"],"__pregel_x":1}`

// A graph is told whom it works for, and nobody else can tell it (reference 4.2, 12).
func TestGraphsKnowTheirUser(t *testing.T) {
	t.Parallel()
	s := newAuthServer(t)
	assistant := s.must("ann", "POST", "/assistants", `{"graph_id":"agent","config":{"configurable":`+forged+`}}`, "assistant_id")
	thread := s.must("ann", "POST", "/threads", `{"metadata":`+forged+`}`, "thread_id")
	s.must("ann", "POST", "/threads/"+thread+"/runs/wait", `{"assistant_id":"`+assistant+`","config":{"configurable":`+forged+`,"metadata":`+forged+`},"metadata":`+forged+`}`, "")
	job := s.lastJob()
	c := configurable(t, job)
	user, _ := c["langgraph_auth_user"].(map[string]any)
	permissions, _ := json.Marshal(c["langgraph_auth_permissions"])
	if user["identity"] != "ann" || user["token"] != "secret-of-ann" || c["langgraph_auth_user_id"] != "ann" || string(permissions) != `["p"]` || c["user_id"] != "ann" {
		t.Errorf("configurable: %v", c)
	}
	if _, there := c["__pregel_x"]; there || strings.Contains(string(job.Run.Kwargs.Config), "eve") || strings.Contains(string(job.Run.Metadata), "auth") {
		t.Errorf("what clients forged reached the graph: %s, %s", job.Run.Kwargs.Config, job.Run.Metadata)
	}
	s.must("ann", "POST", "/runs/wait", `{"assistant_id":"agent","config":{"configurable":{"user_id":"chosen"}}}`, "")
	if c := configurable(t, s.lastJob()); c["user_id"] != "chosen" || c["langgraph_auth_user_id"] != "ann" {
		t.Errorf("configurable: %v", c)
	}
}

// Where nothing is guarded nobody is known, whatever clients say.
func TestWithoutAuthNobodyIsKnown(t *testing.T) {
	t.Parallel()
	s := newAuthServer(t, func(s *authServer, c *engine.Config) { c.Parts, s.pool.Parts = nil, nil })
	s.must("", "POST", "/runs/wait", `{"assistant_id":"agent","config":{"configurable":`+forged+`}}`, "")
	if job := s.lastJob(); strings.Contains(string(job.Run.Kwargs.Config), "eve") {
		t.Errorf("got %s", job.Run.Kwargs.Config)
	}
	if asked := s.takeAsked(); len(asked)+len(s.who) > 0 {
		t.Errorf("asked %v, %v", asked, s.who)
	}
}

// Questions about states carry the user, so that factories can make the graph for him.
func TestStatesAreAskedForTheUser(t *testing.T) {
	t.Parallel()
	s := newAuthServer(t)
	mine := s.annsThings()
	s.calls = nil
	for _, path := range []string{"/state/" + finishedCheckpoint, "/history"} {
		s.must("ann", "GET", "/threads/"+mine.thread+path, "", "")
	}
	s.must("ann", "POST", "/threads/"+mine.thread+"/state", `{"values":{"a":1}}`, "")
	s.must("ann", "GET", "/assistants/"+mine.assistant+"/graph", "", "")
	if len(s.calls) != 4 {
		t.Fatalf("got %d questions, want 4: %v", len(s.calls), s.calls)
	}
	for _, call := range s.calls {
		if !strings.Contains(call, `"langgraph_auth_user":{"identity":"ann"`) || !strings.Contains(call, `"langgraph_auth_user_id":"ann"`) {
			t.Errorf("got %s", call)
		}
	}
}

// The user's secrets are in no answer, no stream, no webhook and no log (reference 4, 12).
func TestUsersStayInside(t *testing.T) {
	t.Parallel()
	hooks := make(sink, 10)
	s := newAuthServer(t, func(_ *authServer, c *engine.Config) {
		c.Webhooks, c.WebhookPolicy.AllowLoopback, c.ShowRun = hooks, true, agentapi.ShowRun
	})
	mine := s.annsThings()
	for _, a := range accesses() {
		if a.verb() == "DELETE" || strings.Contains(a.path, "prune") {
			continue
		}
		got := s.do("ann", a.verb(), mine.fill(a.path), mine.fill(a.body))
		if strings.Contains(got.body, "secret-of-ann") || strings.Contains(got.body, "langgraph_auth") {
			t.Errorf("%s %s: %s", a.verb(), a.path, got.body)
		}
	}
	s.must("ann", "POST", "/threads/"+mine.thread+"/runs/wait", `{"assistant_id":"agent","webhook":"http://localhost/x"}`, "")
	select {
	case hook := <-hooks:
		if body := string(hook.Body); !strings.Contains(body, `"run_id"`) || strings.Contains(body, "secret-of-ann") || strings.Contains(body, "langgraph_auth") {
			t.Errorf("webhook: %s", body)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the webhook was not called")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.Contains(s.log.String(), "secret-of-ann") {
		t.Errorf("log: %s", s.log.String())
	}
}

// soonOnce is a schedule whose dates come at once while it is on.
type soonOnce struct{ on atomic.Bool }

func (s *soonOnce) next(_, _ string, after time.Time) (time.Time, error) {
	if s.on.Load() {
		return after.Add(20 * time.Millisecond), nil
	}
	return after.Add(24 * time.Hour), nil
}

// A cron acts as its user, whoever changes it, and no longer than he may.
func TestCronsActAsTheirUser(t *testing.T) {
	t.Parallel()
	dates := &soonOnce{}
	s := newAuthServer(t, func(_ *authServer, c *engine.Config) { c.NextDate = dates.next })
	thread := s.must("ann", "POST", "/threads", `{}`, "thread_id")
	cron := s.must("ann", "POST", "/threads/"+thread+"/runs/crons", `{"schedule":"* * * * *","assistant_id":"agent","metadata":{"mine":1}}`, "cron_id")
	s.decide = func(a agent.Authorization) (agent.Verdict, error) {
		if identity(a) == "root" {
			return agent.Verdict{Allow: true, Value: a.Value}, nil
		}
		return owners(a)
	}
	if got := s.do("root", "PATCH", "/runs/crons/"+cron, `{"metadata":{"by":"root"}}`); got.status != 200 || !strings.Contains(got.body, `"user_id":"ann"`) {
		t.Fatalf("got %d %s", got.status, got.body)
	}
	s.takeAsked()
	dates.on.Store(true)
	s.must("root", "PATCH", "/runs/crons/"+cron, `{"enabled":true}`, "")
	await(t, func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.jobs) > 0 })
	job := s.lastJob()
	if c := configurable(t, job); c["langgraph_auth_user_id"] != "ann" || job.Run.ThreadID != thread {
		t.Errorf("got %v on %s", c, job.Run.ThreadID)
	}
	if asked := s.takeAsked(); !slices.Contains(asked, "ann threads:create_run") {
		t.Errorf("asked %v", asked)
	}
	if !strings.Contains(string(job.Run.Metadata), `"owner":"ann"`) || !strings.Contains(string(job.Run.Metadata), `"cron_id"`) {
		t.Errorf("metadata %s", job.Run.Metadata)
	}
	// The thread is taken from ann: the cron goes on without runs.
	s.must("root", "PATCH", "/threads/"+thread, `{"metadata":{"owner":"bob"}}`, "")
	await(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return strings.Contains(s.log.String(), "a cron has nothing to run")
	})
	if got := s.do("bob", "GET", "/threads/"+thread, ""); got.status != 200 {
		t.Errorf("bob: %d", got.status)
	}
}

func await(t *testing.T, done func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it did not come")
		}
	}
}

// A cron that could not fire is refused when it is made.
func TestCronsNeedWhatTheirRunsNeed(t *testing.T) {
	t.Parallel()
	s := newAuthServer(t)
	mine := s.annsThings()
	for _, c := range [][2]string{
		{"/threads/" + mine.thread + "/runs/crons", `{"schedule":"0 0 1 1 *","assistant_id":"agent"}`},
		{"/runs/crons", `{"schedule":"0 0 1 1 *","assistant_id":"` + mine.assistant + `"}`},
	} {
		if got := s.do("bob", "POST", c[0], c[1]); got.status != 404 {
			t.Errorf("%s %s: got %d %s", c[0], c[1], got.status, got.body)
		}
	}
	his := s.must("bob", "POST", "/runs/crons", `{"schedule":"0 0 1 1 *","assistant_id":"agent"}`, "cron_id")
	if got := s.do("bob", "PATCH", "/runs/crons/"+his, `{"assistant_id":"`+mine.assistant+`"}`); got.status != 404 {
		t.Errorf("change: got %d %s", got.status, got.body)
	}
	if got := s.do("bob", "GET", "/runs/crons/"+his, ""); !strings.Contains(got.body, `"user_id":"bob"`) || !strings.Contains(got.body, `"owner":"bob"`) {
		t.Errorf("bob's cron: %s", got.body)
	}
}

// Handlers are shown what the reference names, and what they change is what happens.
func TestValuesOfHandlers(t *testing.T) {
	t.Parallel()
	s := newAuthServer(t)
	thread := s.must("ann", "POST", "/threads", `{"metadata":{"a":1},"ttl":5}`, "thread_id")
	has(t, s.lastValue("threads", "create"), `{"if_exists":"raise","metadata":{"a":1},"thread_id":"`+thread+`","ttl":{"strategy":"delete","ttl":5}}`)
	if got := s.do("ann", "POST", "/threads/search", `{}`); !strings.Contains(got.body, thread) {
		t.Errorf("a thread without values is not found: %s", got.body)
	}
	s.must("ann", "POST", "/threads/search", `{"metadata":{"a":1},"status":"idle","limit":3,"offset":1}`, "")
	has(t, s.lastValue("threads", "search"), `{"ids":[],"limit":4,"metadata":{"a":1},"offset":1,"status":"idle","values":{}}`)
	s.must("ann", "GET", "/threads/"+thread+"/runs", "", "")
	has(t, s.lastValue("threads", "search"), `{"limit":10,"metadata":{},"offset":0,"status":null,"thread_id":"`+thread+`","values":{}}`)
	run := s.must("ann", "POST", "/threads/"+thread+"/runs", `{"assistant_id":"agent","input":{"wait":1},"multitask_strategy":"reject","after_seconds":0,"if_not_exists":"create","metadata":{"b":2}}`, "run_id")
	v := s.lastValue("threads", "create_run")
	kwargs, _ := v["kwargs"].(map[string]any)
	if v["run_id"] != run || v["thread_id"] != thread || v["prevent_insert_if_inflight"] != true || v["if_not_exists"] != "create" || v["status"] != "pending" || kwargs["input"] == nil {
		t.Errorf("create_run: %v", v)
	}
	s.must("ann", "POST", "/threads/"+thread+"/runs/"+run+"/cancel?action=rollback&wait=true", "", "")
	has(t, s.lastValue("threads", "update"), `{"action":"rollback","run_id":"`+run+`","thread_id":"`+thread+`"}`)
	s.must("ann", "POST", "/runs", `{"assistant_id":"agent"}`, "")
	if v := s.lastValue("threads", "create_run"); v["thread_id"] != nil {
		t.Errorf("stateless: %v", v)
	}
	s.must("ann", "PUT", "/store/items", `{"namespace":["a"],"key":"k","value":{"v":1},"index":["v"]}`, "")
	has(t, s.lastValue("store", "put"), `{"index":["v"],"key":"k","namespace":["a"],"value":{"v":1}}`)
	s.must("ann", "POST", "/store/namespaces", `{}`, "")
	has(t, s.lastValue("store", "list_namespaces"), `{"limit":100,"max_depth":null,"namespace":null,"offset":0,"suffix":null}`)
}

func has(t *testing.T, got map[string]any, want string) {
	t.Helper()
	raw, _ := json.Marshal(got)
	if string(raw) != want {
		t.Errorf("got value %s, want %s", raw, want)
	}
}

// scoped puts everything of the store below the user's own name, and marks runs.
func scoped(a agent.Authorization) (agent.Verdict, error) {
	var value map[string]any
	if err := json.Unmarshal(a.Value, &value); err != nil {
		return agent.Verdict{}, err
	}
	switch {
	case a.Resource == "store":
		namespace, _ := value["namespace"].([]any)
		value["namespace"] = append([]any{identity(a)}, namespace...)
	case a.Action == "create_run":
		value["metadata"] = map[string]any{"team": "red"}
		kwargs, _ := value["kwargs"].(map[string]any)
		kwargs["config"] = map[string]any{"configurable": map[string]any{"tenant": "t1"}}
	}
	raw, err := json.Marshal(value)
	return agent.Verdict{Allow: true, Value: raw}, err
}

func TestChangesOfHandlersHappen(t *testing.T) {
	t.Parallel()
	s := newAuthServer(t)
	s.decide = scoped
	for _, user := range []string{"ann", "bob"} {
		s.must(user, "PUT", "/store/items", `{"namespace":["notes"],"key":"k","value":{"of":"`+user+`","big":12345678901234567890}}`, "")
	}
	for _, user := range []string{"ann", "bob"} {
		got := s.do(user, "GET", "/store/items?namespace=notes&key=k", "").body
		if !strings.Contains(got, `"namespace":["`+user+`","notes"]`) || !strings.Contains(got, `"of":"`+user+`"`) || !strings.Contains(got, "12345678901234567890") {
			t.Errorf("%s: %s", user, got)
		}
		if got := s.do(user, "POST", "/store/items/search", `{}`).body; strings.Count(got, `"key"`) != 1 {
			t.Errorf("%s finds %s", user, got)
		}
		if got := s.do(user, "POST", "/store/namespaces", `{}`).body; strings.TrimSpace(got) != `{"namespaces":[["`+user+`","notes"]]}` {
			t.Errorf("%s: namespaces %s", user, got)
		}
	}
	s.must("ann", "DELETE", "/store/items", `{"namespace":["notes"],"key":"k"}`, "")
	if got := s.do("bob", "GET", "/store/items?namespace=notes&key=k", "").body; !strings.Contains(got, "bob") {
		t.Errorf("bob's item: %s", got)
	}
	thread := s.must("ann", "POST", "/threads", `{}`, "thread_id")
	s.must("ann", "POST", "/threads/"+thread+"/runs/wait", `{"assistant_id":"agent","input":{"big":12345678901234567890},"if_not_exists":"create"}`, "")
	job := s.lastJob()
	if c := configurable(t, job); c["tenant"] != "t1" || !strings.Contains(string(job.Run.Metadata), `"team":"red"`) {
		t.Errorf("got %v, %s", c, job.Run.Metadata)
	}
	if got := string(job.Run.Kwargs.Input); got != `{"big":12345678901234567890}` {
		t.Errorf("a handler's language rounded what it did not change: %s", got)
	}
}

// A namespace that a handler made is held to the rules of clients (reference 7).
func TestNamespacesOfHandlersAreChecked(t *testing.T) {
	t.Parallel()
	s := newAuthServer(t)
	s.decide = func(a agent.Authorization) (agent.Verdict, error) {
		return agent.Verdict{Allow: true, Value: json.RawMessage(`{"namespace":["ann@example.com"]}`)}, nil
	}
	for _, c := range [][3]string{
		{"PUT", "/store/items", `{"namespace":["n"],"key":"k","value":{}}`}, {"GET", "/store/items?namespace=n&key=k", ""},
		{"POST", "/store/items/search", `{}`}, {"POST", "/store/namespaces", `{}`}, {"DELETE", "/store/items", `{"namespace":["n"],"key":"k"}`},
	} {
		if got := s.do("ann", c[0], c[1], c[2]); got.status != 422 || !strings.Contains(got.body, "Namespace labels cannot be empty or contain periods") {
			t.Errorf("%s %s: got %d %s", c[0], c[1], got.status, got.body)
		}
	}
}
