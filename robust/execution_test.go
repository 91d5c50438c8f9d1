package robust_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/engine"
	"github.com/slipway-dev/slipway/worker/supervise"
)

// executing serves the graphs of these names out of the ones for execution.
func executing(t *testing.T, language slipway.Language, names ...string) agentServer {
	t.Helper()
	return serve(t, language, 1, func(c *engine.Config, p *supervise.Program) {
		file, text := "execution.mjs", executionNode
		if language == slipway.Python {
			file, text = "execution.py", executionPython
		}
		write(t, filepath.Join(p.Dir, file), text)
		p.Env = append(p.Env, "LANGGRAPH_DELTA_MAX_SUPERSTEPS_SINCE_SNAPSHOT=7")
		p.Graphs, c.Graphs = map[string]string{}, map[string]engine.Graph{}
		for _, name := range names {
			p.Graphs[name], c.Graphs[name] = "./"+file+":"+name, engine.Graph{Language: language}
		}
	})
}

// does runs a graph on a thread of its own.
func (s agentServer) does(graph, input string) string {
	s.t.Helper()
	return s.ran(s.run(wish(graph, s.thread(), input)))
}

// killWorker kills the process that ran a node and waits for the next one. What told its process is "[pid:times]".
func (s agentServer) killWorker(told string) {
	s.t.Helper()
	var pid int
	if _, err := fmt.Sscanf(told, "[%d:", &pid); err != nil || pid == 0 || pid == os.Getpid() {
		s.t.Fatalf("%q tells no process: %v", told, err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		s.t.Fatal(err)
	}
	s.await("another worker", func() bool { return syscall.Kill(pid, 0) != nil && s.Info().WorkersAvailable == slots })
}

// What a node with a cache policy did is taken from the cache: in another run, in another process, and in a task
// of a functional graph, until its time is over (reference 15).
func TestNodesAreCached(t *testing.T) {
	inBoth(t, func(t *testing.T, language slipway.Language) {
		graphs := []string{"cached", "short", "cached_task"}
		s := executing(t, language, graphs...)
		first := map[string]string{}
		for _, graph := range graphs {
			if graph == "short" {
				continue
			}
			first[graph] = s.does(graph, `{"x":1}`)
			if got := s.does(graph, `{"x":1}`); got != first[graph] {
				t.Errorf("%s ran again: got %s, want %s", graph, got, first[graph])
			}
			if got := s.does(graph, `{"x":2}`); got == first[graph] || !strings.HasSuffix(got, ":2]") {
				t.Errorf("%s with another key: got %s, want that it ran", graph, got)
			}
		}
		s.killWorker(first["cached"])
		for graph, want := range first {
			if got := s.does(graph, `{"x":1}`); got != want {
				t.Errorf("%s ran again in another process: got %s, want %s", graph, got, want)
			}
		}
		once := s.does("short", `{"x":1}`)
		if once == first["cached"] {
			t.Errorf("got %s from the node of the same name of another graph", once)
		}
		s.await("the entry's end", func() bool { return s.does("short", `{"x":1}`) != once })
	})
}

// A node that fails is tried again as its policy says, within one attempt of the run, and fails the run when it has no
// tries left; without a policy it fails at once.
func TestNodesAreRetried(t *testing.T) {
	inBoth(t, func(t *testing.T, language slipway.Language) {
		graphs := []string{"flaky", "once"}
		if language == slipway.Python {
			graphs = append(graphs, "flaky_sync")
		}
		s := executing(t, language, graphs...)
		for _, graph := range graphs {
			for fails, want := range []string{"[attempt 1]", "[attempt 2]", "[attempt 3]", "no 3"} {
				if graph == "once" && fails > 0 {
					want = "no 1"
				}
				status := agent.RunSuccess
				if strings.HasPrefix(want, "no") {
					want, status = `{"__error__":{"error":"Flaky","message":"`+want+`"}}`, agent.RunError
				}
				r := s.run(wish(graph, s.thread(), fmt.Sprintf(`{"x":%d}`, fails)))
				got := s.ran(r)
				ended, err := s.Run(t.Context(), r.ThreadID, r.ID)
				if got != want || err != nil || ended.Status != status || ended.Attempt != 1 {
					t.Errorf("%s that fails %d times: got %s, %s in attempt %d, %v; want %s, %s", graph, fails, got, ended.Status, ended.Attempt, err, want, status)
				}
			}
		}
	})
}

// The limit of steps comes from the run, else from its assistant, else from the graph, else from the library.
func TestRecursionLimits(t *testing.T) {
	inBoth(t, func(t *testing.T, language slipway.Language) {
		s := executing(t, language, "endless", "long", "own_limit")
		assistant := func(graph string) string {
			a, err := s.CreateAssistant(t.Context(), agent.Assistant{GraphID: graph, Config: json.RawMessage(`{"recursion_limit":4}`)}, false)
			if err != nil {
				t.Fatal(err)
			}
			return a.ID
		}
		ofEndless, ofOwn := assistant("endless"), assistant("own_limit")
		standard := 25
		if language == slipway.Python {
			standard = 0 // ten thousand steps
		}
		for _, c := range []struct {
			name, assistant, config string
			limit                   int
		}{
			{"the run's", "endless", `{"recursion_limit":3}`, 3},
			{"one", "endless", `{"recursion_limit":1}`, 1},
			{"the assistant's", ofEndless, ``, 4},
			{"the run's before the assistant's", ofEndless, `{"recursion_limit":5}`, 5},
			{"the graph's", "own_limit", ``, 6},
			{"the assistant's before the graph's", ofOwn, ``, 4},
			{"the library's", "long", ``, standard},
			{"a high one", "long", `{"recursion_limit":60}`, 0},
		} {
			r := wish(c.assistant, s.thread(), `{}`)
			r.Config = json.RawMessage(c.config)
			got, steps := s.ran(s.run(r)), s.steps(r.ThreadID)
			if c.limit == 0 {
				if steps != 40 || strings.Contains(got, "__error__") {
					t.Errorf("%s: got %s after %d steps, want 40", c.name, got, steps)
				}
				continue
			}
			want := fmt.Sprintf("Recursion limit of %d reached without hitting a stop condition. You can increase the limit by setting the ", c.limit)
			if !strings.Contains(got, `"error":"GraphRecursionError","message":"`+want) || steps != c.limit {
				t.Errorf("%s: got %s after %d steps, want a GraphRecursionError after %d", c.name, got, steps, c.limit)
			}
		}
	})
}

// steps counts what the thread's state tells.
func (s agentServer) steps(thread string) int {
	s.t.Helper()
	return len(s.values(engine.StateRequest{ThreadID: thread}).Ran)
}

// held are the values that tests look for.
type held struct {
	Ran           []json.RawMessage
	Seldom, Often []int
	N             int
}

func (s agentServer) values(q engine.StateRequest) held {
	s.t.Helper()
	raw, err := s.State(s.t.Context(), q)
	var state struct{ Values held }
	if err == nil {
		err = json.Unmarshal(raw, &state)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return state.Values
}

// Every checkpoint keeps its state when channels store only what was written to them: over many snapshots of either kind,
// in another process, and after pruning (reference 14.5).
func TestDeltaChannels(t *testing.T) {
	inBoth(t, func(t *testing.T, language slipway.Language) {
		s := executing(t, language, "delta", "cached")
		thread := s.thread()
		grow := func(until int) {
			t.Helper()
			if got := s.ran(s.run(wish("delta", thread, fmt.Sprintf(`{"until":%d}`, until)))); strings.Contains(got, "error") {
				t.Fatalf("got %s", got)
			}
			s.grown(thread, until)
		}
		grow(24)
		if n := s.grownCheckpoints(thread, 0); n < 24 {
			t.Errorf("got %d checkpoints, want each step's", n)
		}
		s.killWorker(s.does("cached", `{"x":1}`))
		grow(41)
		if n := s.grownCheckpoints(thread, 0); n < 41 {
			t.Errorf("got %d checkpoints, want each step's", n)
		}
		if _, err := s.Prune(t.Context(), []string{thread}, true); err != nil {
			t.Fatal(err)
		}
		if n := s.checkpoints(thread); n > 9 {
			t.Errorf("after pruning there are %d checkpoints, want the last and those up to a snapshot", n)
		}
		s.grown(thread, 41)
		s.killWorker(s.does("cached", `{"x":3}`))
		s.grown(thread, 41)
		grow(55)
		s.grownCheckpoints(thread, 41)
	})
}

// grown looks at the last state.
func (s agentServer) grown(thread string, n int) {
	s.t.Helper()
	if v := s.values(engine.StateRequest{ThreadID: thread}); v.N != n || !counts(v) {
		s.t.Errorf("got %+v, want all to %d", v, n)
	}
}

// grownCheckpoints looks at every checkpoint from a number of steps on, through the history and one by one, and counts all.
func (s agentServer) grownCheckpoints(thread string, from int) int {
	s.t.Helper()
	raw, err := s.History(s.t.Context(), engine.HistoryRequest{ThreadID: thread, Limit: 100})
	var history []struct {
		Values     held
		Checkpoint agent.CheckpointKey
	}
	if err != nil || json.Unmarshal(raw, &history) != nil {
		s.t.Fatalf("history: %v\n%s", err, raw)
	}
	for _, h := range history {
		if h.Values.N < from {
			continue // kept below the latest for what was written to its channels
		}
		one := s.values(engine.StateRequest{ThreadID: thread, Checkpoint: h.Checkpoint})
		if !counts(h.Values) || !counts(one) || one.N != h.Values.N {
			s.t.Errorf("checkpoint %s: got %+v in the history and %+v by itself", h.Checkpoint.ID, h.Values, one)
		}
	}
	return len(history)
}

// counts says whether both lists count to n.
func counts(v held) bool {
	var want []int
	for i := range v.N {
		want = append(want, i+1)
	}
	return fmt.Sprint(v.Seldom) == fmt.Sprint(want) && fmt.Sprint(v.Often) == fmt.Sprint(want)
}

// A node sees what assistant and request say, merged; the store, the writer of the stream and who it is.
func TestWhatANodeSees(t *testing.T) {
	inBoth(t, func(t *testing.T, language slipway.Language) {
		s := executing(t, language, "sees")
		a, err := s.CreateAssistant(t.Context(), agent.Assistant{
			GraphID:  "sees",
			Config:   json.RawMessage(`{"tags":["fine"],"recursion_limit":9}`),
			Metadata: json.RawMessage(`{"of":"assistant","kind":"assistant"}`),
			Context:  json.RawMessage(`{"name":"assistant","model":"a","temperature":1}`),
		}, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			graph, config, context, metadata, want string
		}{
			{a.ID, ``, ``, ``, `{"model":"a","temperature":1,"context":[true,"assistant",7],"of":"assistant","kind":"assistant","tags":["fine"],"limit":9}`},
			{
				a.ID, `{"configurable":{"temperature":2},"metadata":{"of":"config"}}`, `{"level":8}`, `{"kind":"run"}`,
				`{"model":"a","temperature":2,"context":[true,"assistant",8],"of":"config","kind":"run","tags":["fine"],"limit":9}`,
			},
			{
				"sees", `{"configurable":{"model":"b","temperature":0},"tags":["own"],"recursion_limit":5}`, `{"name":"run","level":0}`, `{"of":"run"}`,
				`{"model":"b","temperature":0,"context":[true,"run",0],"of":"run","kind":null,"tags":["own"],"limit":5}`,
			},
		} {
			r := engine.RunRequest{
				AssistantID: c.graph, ThreadID: s.thread(), Input: json.RawMessage(`{}`), StreamMode: []string{"custom"},
				Config: json.RawMessage(c.config), Context: json.RawMessage(c.context), Metadata: json.RawMessage(c.metadata),
			}
			run, sub, err := s.StreamRun(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			s.until(sub, "custom", `"writer"`)
			s.until(sub, "custom", `"runtime"`)
			sub.Close()
			if got := s.ran(run); got != s.seen(c.want) {
				t.Errorf("got  %s\nwant %s", got, s.seen(c.want))
			}
		}
	})
}

// seen completes what a node is to see by what all runs have in common, as ran shows it.
func (s agentServer) seen(differing string) string {
	s.t.Helper()
	var got struct {
		Model, Temperature any
		Context, Tags      []any
		Of, Kind           any
		Limit              any
	}
	if err := json.Unmarshal([]byte(differing), &got); err != nil {
		s.t.Fatal(err)
	}
	return fmt.Sprint([]any{map[string]any{
		"model": got.Model, "temperature": got.Temperature, "graph": "sees", "context": got.Context,
		"store": map[string]any{"n": 1}, "same": true,
		"metadata": map[string]any{"of": got.Of, "kind": got.Kind, "graph_id": "sees", "run_attempt": 1, "langgraph_host": "self-hosted"},
		"tags":     got.Tags, "limit": got.Limit, "server": []any{true, true}, "run": []any{true, true, true},
	}})
}

// Every form in which an application may name a graph runs (reference 13).
func TestEveryFormOfGraphRuns(t *testing.T) {
	forms := map[string]string{
		"uncompiled": "[uncompiled]", "compiled": "[compiled]", "factory": "[factory]", "factory_async": "[factory_async]",
		"factory_config": "[m]", "functional": "[4]", "factory_functional": "[4]",
	}
	own := map[slipway.Language]map[string]string{
		slipway.Python: {
			"factory_unannotated": "[m]", "factory_runtime": "[threads.create_run me me]", "callable_object": "[made m]", "partial": "[partial m]",
			"managed": "[open 1]", "managed_sync": "[open 1 m]", "agent": "hello from the agent", "functional": "[4 <nil>]", "factory_functional": "[4 <nil>]",
		},
		slipway.Node: {"promised": "[promised]", "factory_runtime": "[threads.create_run me]", "agent": "[unwrapped]", "factory_agent": "[unwrapped]"},
	}
	inBoth(t, func(t *testing.T, language slipway.Language) {
		want, names := map[string]string{}, []string{}
		for _, list := range []map[string]string{forms, own[language]} {
			for name, text := range list {
				want[name] = text
			}
		}
		for name := range want {
			names = append(names, name)
		}
		s := executing(t, language, names...)
		for name, text := range want {
			for range 2 { // what a factory opened is closed after each run
				r := wish(name, s.thread(), `{"x":2}`)
				if name == "agent" && language == slipway.Python {
					r.Input = json.RawMessage(`{"messages":[{"role":"user","content":"hi"}]}`)
				}
				r.Config, r.Context = json.RawMessage(`{"configurable":{"model":"m"}}`), json.RawMessage(`{"name":"me"}`)
				run := s.run(r)
				got := s.ran(run)
				if name == "agent" && language == slipway.Python {
					got = s.text(run)
				}
				if got != text {
					t.Errorf("%s: got %s, want %s", name, got, text)
				}
			}
		}
	})
}

// text is the content of the last message of a run's thread.
func (s agentServer) text(r agent.Run) string {
	s.t.Helper()
	th, err := s.Thread(s.t.Context(), r.ThreadID)
	var values struct{ Messages []struct{ Content string } }
	if err != nil || json.Unmarshal(th.Values, &values) != nil || len(values.Messages) == 0 {
		s.t.Fatalf("got %s, %v", th.Values, err)
	}
	return values.Messages[len(values.Messages)-1].Content
}

// How many checkpoints a run leaves is what its durability says: each step's, or one at the end, also where it ends in a
// failure; the next run of the thread finds the same state.
func TestDurabilityDecidesWhatIsKept(t *testing.T) {
	inBoth(t, func(t *testing.T, language slipway.Language) {
		s := executing(t, language, "long", "endless")
		for durability, want := range map[string][]int{"": {5, 10}, "async": {5, 10}, "sync": {5, 10}, "exit": {1, 2}} {
			thread := s.thread()
			for i, n := range want {
				r := wish("endless", thread, `{}`)
				r.Durability, r.Config = durability, json.RawMessage(`{"recursion_limit":3}`)
				if got := s.ran(s.run(r)); !strings.Contains(got, "GraphRecursionError") {
					t.Fatalf("%q: got %s", durability, got)
				}
				if got, steps := s.checkpoints(thread), s.steps(thread); got != n || steps != 3*(i+1) {
					t.Errorf("%q: got %d checkpoints and %d steps after run %d, want %d and %d", durability, got, steps, i+1, n, 3*(i+1))
				}
			}
		}
		thread := s.thread()
		r := wish("long", thread, `{}`)
		r.Durability, r.Config = "exit", json.RawMessage(`{"recursion_limit":60}`)
		if got := s.ran(s.run(r)); strings.Contains(got, "error") || s.checkpoints(thread) != 1 || s.steps(thread) != 40 {
			t.Errorf("exit: got %s, %d checkpoints and %d steps, want 1 and 40", got, s.checkpoints(thread), s.steps(thread))
		}
	})
}
