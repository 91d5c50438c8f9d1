package agentapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/engine"
	workerfake "github.com/slipway-dev/slipway/worker/fake"
)

// read is what a member of a run creation becomes.
type read struct {
	member string // JSON
	of     func(engine.RunRequest) any
	want   any
}

// accepted are the members of reference 4.1 with values that are right, and what the engine gets.
var accepted = []read{
	{`"input":{"n":12345678901234567890}`, func(r engine.RunRequest) any { return string(r.Input) }, `{"n":12345678901234567890}`},
	{`"input":null`, func(r engine.RunRequest) any { return r.Input == nil }, true},
	{`"input":[1,"x"]`, func(r engine.RunRequest) any { return string(r.Input) }, `[1,"x"]`},
	{`"command":{"resume":{"id":5}}`, func(r engine.RunRequest) any { return string(r.Command) }, `{"resume":{"id":5}}`},
	{`"command":{"resume":null}`, func(r engine.RunRequest) any { return string(r.Command) }, `{"resume":null}`},
	{`"command":{"update":[["a",1]],"goto":"n"}`, func(r engine.RunRequest) any { return string(r.Command) }, `{"update":[["a",1]],"goto":"n"}`},
	{`"command":{"goto":[{"node":"n","input":{}},"m"]}`, func(r engine.RunRequest) any { return string(r.Command) }, `{"goto":[{"node":"n","input":{}},"m"]}`},
	{`"command":{"goto":{"node":"n"}}`, func(r engine.RunRequest) any { return string(r.Command) }, `{"goto":{"node":"n"}}`},
	{`"command":null`, func(r engine.RunRequest) any { return r.Command == nil }, true},
	{`"checkpoint":{"checkpoint_id":"c","checkpoint_ns":"a|b","checkpoint_map":{"":"c"},"thread_id":"t"}`, func(r engine.RunRequest) any { return string(r.Checkpoint) },
		`{"checkpoint_id":"c","checkpoint_ns":"a|b","checkpoint_map":{"":"c"},"thread_id":"t"}`},
	{`"checkpoint_id":"c"`, func(r engine.RunRequest) any { return r.CheckpointID }, "c"},
	{`"metadata":{"a":{"b":[1]}}`, func(r engine.RunRequest) any { return string(r.Metadata) }, `{"a":{"b":[1]}}`},
	{`"config":{"tags":["a"],"recursion_limit":7,"configurable":{"k":"v"},"metadata":{"m":1},"run_name":"n","max_concurrency":3,"more":[1]}`,
		func(r engine.RunRequest) any { return string(r.Config) }, `{"tags":["a"],"recursion_limit":7,"configurable":{"k":"v"},"metadata":{"m":1},"run_name":"n","max_concurrency":3,"more":[1]}`},
	{`"config":{"recursion_limit":1}`, func(r engine.RunRequest) any { return string(r.Config) }, `{"recursion_limit":1}`},
	{`"context":{"c":1},"config":{"configurable":{"k":2}}`, func(r engine.RunRequest) any { return string(r.Context) + string(r.Config) }, `{"c":1}{"configurable":{"k":2}}`},
	{`"webhook":"https://example.com/hook"`, func(r engine.RunRequest) any { return r.Webhook }, "https://example.com/hook"},
	{`"interrupt_before":"*"`, func(r engine.RunRequest) any { return string(r.InterruptBefore) }, `"*"`},
	{`"interrupt_before":["a","b"]`, func(r engine.RunRequest) any { return string(r.InterruptBefore) }, `["a","b"]`},
	{`"interrupt_after":["a"]`, func(r engine.RunRequest) any { return string(r.InterruptAfter) }, `["a"]`},
	{`"stream_mode":"updates"`, func(r engine.RunRequest) any { return r.StreamMode }, []string{"updates"}},
	{`"stream_mode":["values","messages","messages-tuple","tasks","checkpoints","updates","events","debug","custom","tools","lifecycle"]`,
		func(r engine.RunRequest) any { return len(r.StreamMode) }, 11},
	{`"stream_subgraphs":true`, func(r engine.RunRequest) any { return r.StreamSubgraphs }, true},
	{`"stream_resumable":true`, func(r engine.RunRequest) any { return r.StreamResumable }, true},
	{`"feedback_keys":["a","b"]`, func(r engine.RunRequest) any { return r.FeedbackKeys }, []string{"a", "b"}},
	{`"feedback_keys":"a"`, func(r engine.RunRequest) any { return r.FeedbackKeys }, []string{"a"}},
	{`"multitask_strategy":"reject"`, func(r engine.RunRequest) any { return r.Multitask }, agent.MultitaskReject},
	{`"multitask_strategy":"rollback"`, func(r engine.RunRequest) any { return r.Multitask }, agent.MultitaskRollback},
	{`"multitask_strategy":"interrupt"`, func(r engine.RunRequest) any { return r.Multitask }, agent.MultitaskInterrupt},
	{`"multitask_strategy":null`, func(r engine.RunRequest) any { return r.Multitask }, agent.MultitaskEnqueue},
	{`"if_not_exists":"create"`, func(r engine.RunRequest) any { return r.CreateThread }, true},
	{`"if_not_exists":"reject"`, func(r engine.RunRequest) any { return r.CreateThread }, false},
	{`"after_seconds":1.5`, func(r engine.RunRequest) any { return r.After }, 1500 * time.Millisecond},
	{`"after_seconds":0`, func(r engine.RunRequest) any { return r.After }, time.Duration(0)},
	{`"durability":"sync"`, func(r engine.RunRequest) any { return r.Durability }, "sync"},
	{`"durability":"async"`, func(r engine.RunRequest) any { return r.Durability }, "async"},
	{`"durability":"exit"`, func(r engine.RunRequest) any { return r.Durability }, "exit"},
	{`"checkpoint_during":true`, func(r engine.RunRequest) any { return r.Durability }, "async"},
	{`"checkpoint_during":false`, func(r engine.RunRequest) any { return r.Durability }, "exit"},
	{`"checkpoint_during":false,"durability":"sync"`, func(r engine.RunRequest) any { return r.Durability }, "sync"},
	{`"strict_resume":true`, func(r engine.RunRequest) any { return r.StrictResume }, true},
	{`"on_disconnect":"cancel"`, func(r engine.RunRequest) any { return true }, true}, // TestADisconnectCancelsIfAskedFor
	{`"on_completion":"delete"`, func(r engine.RunRequest) any { return r.Keep }, false},
	{`"on_completion":"complete"`, func(r engine.RunRequest) any { return r.Keep }, false},
	{`"on_completion":"keep"`, func(r engine.RunRequest) any { return r.Keep }, true},
	{`"on_completion":"continue"`, func(r engine.RunRequest) any { return r.Keep }, true},
	{`"langsmith_tracer":{"project_name":"p","example_id":"e"},"config":{"configurable":{"k":1}}`, func(r engine.RunRequest) any { return string(r.Config) },
		`{"configurable":{"k":1,"langsmith_example_id":"e","langsmith_project":"p"}}`},
	{`"langsmith_tracer":{"project_name":"p"}`, func(r engine.RunRequest) any { return string(r.Config) }, `{"configurable":{"langsmith_project":"p"}}`},
	{`"unknown":{"x":1},"assistantId":"camel"`, func(r engine.RunRequest) any { return r.AssistantID }, "a"},
}

func TestEveryFieldOfARunIsRead(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/runs", "/threads/" + thread + "/runs"} {
		for _, c := range accepted {
			f := &fake{}
			if w := send(t, f, "POST", path, `{"assistant_id":"a",`+c.member+`}`); w.Code != 200 {
				t.Errorf("%s %s: %d %s", path, c.member, w.Code, w.Body)
				continue
			}
			if got := c.of(f.request); !reflect.DeepEqual(got, c.want) {
				t.Errorf("%s %s: got %v, want %v", path, c.member, got, c.want)
			}
		}
	}
}

// A body of nothing but the assistant takes the defaults of reference 4.1.
func TestDefaultsOfARun(t *testing.T) {
	t.Parallel()
	f := &fake{}
	send(t, f, "POST", "/threads/"+thread+"/runs", `{"assistant_id":"a"}`)
	want := engine.RunRequest{AssistantID: "a", ThreadID: thread, Multitask: agent.MultitaskEnqueue}
	if !reflect.DeepEqual(f.request, want) {
		t.Errorf("got %+v, want %+v", f.request, want)
	}
}

// refused are values that are wrong, and what the detail says: the field, the value and what is right.
var refused = []struct{ member, field, value, remedy string }{
	{`"command":5`, "body.command", "5", "an object"},
	{`"command":{"goto":5}`, "body.command.goto", "5", "a node's name"},
	{`"command":{"goto":["n",5]}`, "body.command.goto", "5", "a node's name"},
	{`"command":{"goto":{"input":1}}`, "body.command.goto", `{"input":1}`, "node"},
	{`"command":{"update":"x"}`, "body.command.update", `"x"`, "an object or a list of pairs"},
	{`"command":{"update":[["a"]]}`, "body.command.update", `["a"]`, "pairs"},
	{`"checkpoint":"c"`, "body.checkpoint", `"c"`, "an object"},
	{`"checkpoint":{"checkpoint_id":5}`, "body.checkpoint.checkpoint_id", "5", "a string"},
	{`"checkpoint":{"checkpoint_ns":[]}`, "body.checkpoint.checkpoint_ns", "[]", "a string"},
	{`"checkpoint":{"checkpoint_map":"m"}`, "body.checkpoint.checkpoint_map", `"m"`, "an object"},
	{`"checkpoint_id":7`, "body.checkpoint_id", "7", "a string"},
	{`"metadata":[]`, "body.metadata", "[]", "an object"},
	{`"config":"c"`, "body.config", `"c"`, "an object"},
	{`"config":{"tags":"a"}`, "body.config.tags", `"a"`, "a list of strings"},
	{`"config":{"recursion_limit":0}`, "body.config.recursion_limit", "0", "from 1"},
	{`"config":{"recursion_limit":1.5}`, "body.config.recursion_limit", "1.5", "an integer"},
	{`"config":{"recursion_limit":"9"}`, "body.config.recursion_limit", `"9"`, "an integer"},
	{`"config":{"configurable":[]}`, "body.config.configurable", "[]", "an object"},
	{`"config":{"configurable":{"checkpoint_id":1}}`, "body.config.configurable.checkpoint_id", "1", "a string"},
	{`"config":{"metadata":1}`, "body.config.metadata", "1", "an object"},
	{`"config":{"run_name":1}`, "body.config.run_name", "1", "a string"},
	{`"config":{"max_concurrency":"x"}`, "body.config.max_concurrency", `"x"`, "an integer"},
	{`"context":[1]`, "body.context", "[1]", "an object"},
	{`"webhook":5`, "body.webhook", "5", "a string"},
	{`"webhook":""`, "body.webhook", `got 0`, "1 to 65536"},
	{`"webhook":"` + strings.Repeat("x", 65537) + `"`, "body.webhook", "65537", "1 to 65536"},
	{`"interrupt_before":"n"`, "body.interrupt_before", `"n"`, `"*" or a list`},
	{`"interrupt_before":[1]`, "body.interrupt_before", "[1]", "a list of strings"},
	{`"interrupt_after":{}`, "body.interrupt_after", "{}", "a list of strings"},
	{`"stream_mode":"x"`, "body.stream_mode", `"x"`, "values"},
	{`"stream_mode":["values",1]`, "body.stream_mode", "1", "a list of strings"},
	{`"stream_subgraphs":"yes"`, "body.stream_subgraphs", `"yes"`, "true or false"},
	{`"stream_resumable":1`, "body.stream_resumable", "1", "true or false"},
	{`"feedback_keys":[1]`, "body.feedback_keys", "[1]", "a list of strings"},
	{`"multitask_strategy":"queue"`, "body.multitask_strategy", `"queue"`, "reject, rollback, interrupt, enqueue"},
	{`"multitask_strategy":1`, "body.multitask_strategy", "1", "a string"},
	{`"if_not_exists":"maybe"`, "body.if_not_exists", `"maybe"`, "create, reject"},
	{`"after_seconds":-1`, "body.after_seconds", "-1", "from 0"},
	{`"after_seconds":"1"`, "body.after_seconds", `"1"`, "a number"},
	{`"after_seconds":1e12`, "body.after_seconds", "1e+12", "1000000000"},
	{`"durability":"never"`, "body.durability", `"never"`, "sync, async, exit"},
	{`"checkpoint_during":"x"`, "body.checkpoint_during", `"x"`, "true or false"},
	{`"strict_resume":"x"`, "body.strict_resume", `"x"`, "true or false"},
	{`"on_disconnect":"stop"`, "body.on_disconnect", `"stop"`, "cancel, continue"},
	{`"on_completion":"x"`, "body.on_completion", `"x"`, "delete, keep"},
	{`"langsmith_tracer":"p"`, "body.langsmith_tracer", `"p"`, "an object"},
	{`"langsmith_tracer":{"project_name":5}`, "body.langsmith_tracer.project_name", "5", "a string"},
	{`"langsmith_tracer":{"example_id":[]}`, "body.langsmith_tracer.example_id", "[]", "a string"},
}

func TestWrongFieldsOfARunAreToldWithFieldValueAndRemedy(t *testing.T) {
	t.Parallel()
	for _, c := range refused {
		for _, path := range []string{"/runs", "/threads/" + thread + "/runs/wait"} {
			f := &fake{}
			w := sendLong(t, f, "POST", path, `{"assistant_id":"a",`+c.member+`}`)
			var got struct{ Detail string }
			_ = json.Unmarshal(w.Body.Bytes(), &got)
			if w.Code != 422 || !strings.HasPrefix(got.Detail, c.field+":") || !strings.Contains(got.Detail, c.value) || !strings.Contains(got.Detail, c.remedy) {
				t.Errorf("%.80s: got %d %.300q, want 422 with %s, %s and %q", c.member, w.Code, got.Detail, c.field, c.value, c.remedy)
			}
			if f.request.AssistantID != "" {
				t.Errorf("%.80s reached the engine", c.member)
			}
		}
	}
}

// Every member of the description's RunCreate is in both tables.
func TestNoFieldOfARunIsForgotten(t *testing.T) {
	t.Parallel()
	var doc struct {
		Components struct {
			Schemas map[string]struct{ Properties map[string]any }
		}
	}
	if err := json.Unmarshal(described(), &doc); err != nil {
		t.Fatal(err)
	}
	for name := range doc.Components.Schemas["RunCreate"].Properties {
		member := `"` + name + `":`
		good := slices.ContainsFunc(accepted, func(c read) bool { return strings.Contains(c.member, member) })
		bad := slices.ContainsFunc(refused, func(c struct{ member, field, value, remedy string }) bool { return strings.Contains(c.member, member) })
		if name != "assistant_id" && (!good || !bad && name != "input") {
			t.Errorf("%s: in the table of right values %v, of wrong ones %v", name, good, bad)
		}
	}
	if n := len(doc.Components.Schemas["RunCreate"].Properties); n != 24 {
		t.Errorf("RunCreate has %d members, reference 4.1 has 24", n)
	}
}

// What a client asks for reaches the graph: the run tells its kwargs as its result.
func TestFieldsReachTheGraph(t *testing.T) {
	t.Parallel()
	s := newRealServer(t, map[string]workerfake.Graph{"agent": func(_ context.Context, r *workerfake.Run) agent.Done {
		kwargs, err := json.Marshal(r.Job.Run.Kwargs)
		if err != nil {
			panic(err)
		}
		return r.Success("", string(kwargs))
	}})
	for _, c := range []struct{ member, want string }{
		{`"input":{"a":1}`, `"input":{"a":1}`}, {`"command":{"resume":1}`, `"command":{"resume":1}`},
		{`"interrupt_before":["n"]`, `"interrupt_before":["n"]`}, {`"interrupt_after":"*"`, `"interrupt_after":"*"`},
		{`"durability":"exit"`, `"durability":"exit"`}, {`"checkpoint_during":false`, `"durability":"exit"`}, {`"strict_resume":true`, `"strict_resume":true`},
		{`"stream_subgraphs":true`, `"subgraphs":true`}, {`"stream_resumable":true`, `"resumable":true`}, {`"stream_mode":"debug"`, `"stream_mode":["debug"]`},
		{`"input":1`, `"stream_mode":["values"]`}, {`"context":{"c":1}`, `"context":{"c":1}`}, {`"feedback_keys":"k"`, `"feedback_keys":["k"]`},
		{`"langsmith_tracer":{"project_name":"p"}`, `"langsmith_project":"p"`}, {`"config":{"recursion_limit":7}`, `"recursion_limit":7`},
		{`"config":{"configurable":{"x":1}}`, `"x":1`}, {`"config":{"run_name":"named"}`, `"run_name":"named"`},
		{`"checkpoint":{"checkpoint_ns":"s"}`, `"checkpoint_ns":"s"`}, {`"checkpoint_id":"c"`, `Checkpoint c not found`},
		{`"metadata":{"m":1}`, `"m":1`}, {`"if_not_exists":"create"`, `"graph_id":"agent"`}, {`"after_seconds":0.01`, `"temporary":false`},
	} {
		var made struct {
			ID string `json:"thread_id"`
		}
		s.post(t, "/threads", `{}`, &made)
		got := s.body(t, "POST", "/threads/"+made.ID+"/runs/wait", `{"assistant_id":"agent",`+c.member+`}`)
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: got %s, want %s in it", c.member, got, c.want)
		}
		if strings.Contains(c.member, "recursion") != strings.Contains(got, "recursion_limit") {
			t.Errorf("%s: an absent recursion_limit must stay absent: %s", c.member, got)
		}
	}
}

// body asks and returns the text of the answer.
func (s realServer) body(t *testing.T, method, path, body string) string {
	t.Helper()
	req, err := http.NewRequest(method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d %s", res.StatusCode, strings.TrimSpace(string(text)))
}

// What a missing thread, a kept thread and a delayed run are.
func TestFieldsThatDecideAboutThreads(t *testing.T) {
	t.Parallel()
	s := newRealServer(t, map[string]workerfake.Graph{"agent": echoGraph})
	missing := "0199f0a0-0000-7000-8000-0000000000aa"
	run := func(more string) string { return `{"assistant_id":"agent","input":{"x":1}` + more + `}` }
	want := func(what, got, part string) {
		t.Helper()
		if !strings.Contains(got, part) {
			t.Errorf("%s: got %s, want %s", what, got, part)
		}
	}
	want("a missing thread", s.body(t, "POST", "/threads/"+missing+"/runs/wait", run("")), "404 {\"detail\":\"Thread with ID "+missing+" not found\"}")
	want("to be rejected", s.body(t, "POST", "/threads/"+missing+"/runs", run(`,"if_not_exists":"reject"`)), "404 ")
	want("to be created", s.body(t, "POST", "/threads/"+missing+"/runs/wait", run(`,"if_not_exists":"create","metadata":{"of":"me"}`)), `200 {"x":1}`)
	want("it has the run's metadata", s.body(t, "GET", "/threads/"+missing, ""), `"of":"me"`)
	want("no such assistant", s.body(t, "POST", "/runs", `{"assistant_id":"nobody"}`), `404 {"detail":"No assistant found for \"nobody\". Make sure the assistant ID is for a valid assistant or a valid graph ID."}`)
	for _, c := range []struct{ more, status string }{{"", "404"}, {`,"on_completion":"complete"`, "404"}, {`,"on_completion":"keep"`, "200"}, {`,"on_completion":"continue"`, "200"}} {
		res, err := s.Client().Post(s.URL+"/runs/wait", "application/json", strings.NewReader(run(c.more)))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		thread, _, _ := strings.Cut(res.Header.Get("Location"), "/runs/")
		want("thread after "+c.more, s.body(t, "GET", thread, ""), c.status)
	}
	var delayed struct {
		Status  string
		Thread  string    `json:"thread_id"`
		Created time.Time `json:"created_at"`
		Updated time.Time `json:"updated_at"`
	}
	s.post(t, "/runs", run(`,"after_seconds":3600,"on_completion":"keep"`), &delayed)
	if delayed.Status != "pending" || delayed.Created.Sub(delayed.Updated) != time.Hour {
		t.Errorf("delayed: %+v", delayed)
	}
	want("a second one on its thread with reject", s.body(t, "POST", "/threads/"+delayed.Thread+"/runs", run(`,"multitask_strategy":"reject"`)), "409 ")
	want("a second one is not held back", s.body(t, "POST", "/threads/"+delayed.Thread+"/runs/wait", run("")), `200 {"x":1}`)
}
