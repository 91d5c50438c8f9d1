package robust_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/bus/local"
	"github.com/slipway-dev/slipway/engine"
	"github.com/slipway-dev/slipway/worker/supervise"
)

const semanticsPython = `
import asyncio
import operator
import os
import time
from typing import Annotated, TypedDict
from langgraph.graph import END, START, StateGraph
from langgraph.store.base import BaseStore
from langgraph.types import Command, Send, interrupt


class State(TypedDict, total=False):
    ran: Annotated[list, operator.add]
    wait: int
    until: str  # a file


def graph(edges, **nodes):
    g = StateGraph(State)
    for name, node in nodes.items():
        g.add_node(name, node)
    for a, b in edges:
        g.add_edge(a, b)
    return g.compile()


def note(name):
    return lambda state: {"ran": [name]}


async def pid(state):
    return {"ran": [os.getpid()]}


async def pid_then(state):
    while not os.path.exists(state["until"]):
        await asyncio.sleep(0.02)
    return {"ran": [os.getpid()]}


async def block(state):
    time.sleep(600)


def ask(name):
    return lambda state: {"ran": [f"{name}:{interrupt({'q': name})}"]}


async def remember(state, *, store: BaseStore):
    store.put(("notes",), "sync", {"text": "banana"})
    await store.aput(("notes",), "async", {"text": "cherry"}, index=False)
    found = await store.asearch(("notes",), query="aaa", limit=5)
    return {"ran": [[i.key, i.score is not None] for i in found]}


def embed(texts):
    return [[t.count("a"), 1.0] for t in texts]


async def wait(state):
    await asyncio.sleep(state.get("wait", 0))
    return {"ran": ["two"]}


work = graph([(START, "a"), ("a", "b")], a=pid, b=pid_then)
blocked = graph([(START, "a")], a=block)
steps = graph([(START, "one"), ("one", "two"), ("two", "three")], one=note("one"), two=wait, three=note("three"))
child = graph([(START, "inner")], inner=ask("inner"))
asks = graph([(START, "left"), (START, "right"), (START, "sub")], left=ask("left"), right=ask("right"), sub=child)
jump = graph([(START, "one"), ("three", END)], one=note("one"), two=note("two"), three=lambda state: {"ran": ["three" + str(state.get("wait", ""))]})
memory = graph([(START, "a")], a=remember)
`

const semanticsNode = `
import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Annotation, END, interrupt, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({ ran: Annotation({ reducer: (a, b) => a.concat(b), default: () => [] }), wait: Annotation(), until: Annotation() });
const graph = (edges, nodes, options) => {
  const g = new StateGraph(State);
  for (const [name, node] of Object.entries(nodes)) g.addNode(name, node);
  for (const [a, b] of edges) g.addEdge(a, b);
  return g.compile(options);
};
const note = (name) => () => ({ ran: [name] });
const pid = () => ({ ran: [process.pid] });
const pidThen = async (state, config) => {
  while (!existsSync(state.until)) await sleep(20, undefined, { signal: config.signal });
  return { ran: [process.pid] };
};
const block = () => {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 600_000);
};
const ask = (name) => () => ({ ran: [name + ":" + interrupt({ q: name })] });
const wait = async (state, config) => {
  await sleep((state.wait ?? 0) * 1000, undefined, { signal: config.signal });
  return { ran: ["two"] };
};

export const work = graph([[START, "a"], ["a", "b"]], { a: pid, b: pidThen });
export const blocked = graph([[START, "a"]], { a: block });
export const steps = graph([[START, "one"], ["one", "two"], ["two", "three"]], { one: note("one"), two: wait, three: note("three") });
const child = graph([[START, "inner"]], { inner: ask("inner") });
export const asks = graph([[START, "left"], [START, "right"], [START, "sub"]], { left: ask("left"), right: ask("right"), sub: child });
export const jump = new StateGraph(State)
  .addNode("one", note("one"), { ends: ["two", "three"] })
  .addNode("two", note("two"))
  .addNode("three", (state) => ({ ran: ["three" + (state.wait ?? "")] }))
  .addEdge(START, "one")
  .addEdge("three", END)
  .compile();
`

// slots is how many runs a worker of program takes.
const slots = 4

// agentServer is an engine with the real workers of one language.
type agentServer struct {
	*engine.Engine
	t     *testing.T
	store agent.Store
}

func serve(t *testing.T, language slipway.Language, workers int, change func(*engine.Config, *supervise.Program)) agentServer {
	t.Helper()
	p := program(t, language)
	names := []string{"work", "blocked", "steps", "asks", "jump"}
	file := "semantics.mjs"
	if language == slipway.Python {
		file = "semantics.py"
		names = append(names, "memory")
		write(t, filepath.Join(p.Dir, file), semanticsPython)
	} else {
		write(t, filepath.Join(p.Dir, file), semanticsNode)
	}
	cfg := engine.Config{Instance: "me", Graphs: map[string]engine.Graph{}, CancelGrace: time.Second, DrainGrace: 5 * time.Second}
	p.Graphs, p.Workers = map[string]string{}, workers
	for _, name := range names {
		p.Graphs[name] = "./" + file + ":" + name
		cfg.Graphs[name] = engine.Graph{Language: language}
	}
	if change != nil {
		change(&cfg, &p)
	}
	store, log := agentStore(t), slog.New(slog.DiscardHandler)
	bus, err := local.Open(filepath.Join(t.TempDir(), "bus"), "me", log)
	if err != nil {
		t.Fatal(err)
	}
	lines := func(l supervise.Line) {
		if os.Getenv("SLIPWAY_TEST_LINES") != "" {
			t.Log(l.Text)
		}
	}
	pool := supervise.New(supervise.Config{Programs: []supervise.Program{p}}, store, time.Now, log, lines)
	ids := func() string { return uuid.Must(uuid.NewV7()).String() }
	e := engine.New(cfg, store, bus, pool, time.Now, ids, log)
	if err := e.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		if err := e.Drain(ended); err != nil {
			t.Error(err)
		}
		_ = bus.Close()
	})
	return agentServer{e, t, store}
}

func (s agentServer) thread() string {
	s.t.Helper()
	th, err := s.CreateThread(s.t.Context(), agent.Thread{}, false)
	if err != nil {
		s.t.Fatal(err)
	}
	return th.ID
}

func (s agentServer) run(r engine.RunRequest) agent.Run {
	s.t.Helper()
	run, err := s.CreateRun(s.t.Context(), r)
	if err != nil {
		s.t.Fatal(err)
	}
	return run
}

// ran waits for a run and returns what it did, or its whole result.
func (s agentServer) ran(r agent.Run) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Minute)
	defer cancel()
	res, err := s.Wait(ctx, r.ThreadID, r.ID)
	if err != nil {
		s.t.Fatal(err)
	}
	var state struct {
		Ran       []any `json:"ran"`
		Interrupt []any `json:"__interrupt__"`
	}
	if err := json.Unmarshal(res.Body, &state); err != nil || state.Interrupt != nil || strings.Contains(string(res.Body), "__error__") {
		return string(res.Body)
	}
	return fmt.Sprint(state.Ran)
}

func (s agentServer) state(thread string) string {
	s.t.Helper()
	raw, err := s.State(s.t.Context(), engine.StateRequest{ThreadID: thread})
	if err != nil {
		s.t.Fatal(err)
	}
	var state struct {
		Values struct{ Ran []any }
		Next   []string
	}
	if err := json.Unmarshal(raw, &state); err != nil {
		s.t.Fatal(err)
	}
	return fmt.Sprint(state.Values.Ran, state.Next)
}

// until reads a run's stream until a frame of the event holds the text.
func (s agentServer) until(sub *engine.Subscription, event, text string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	for {
		f, err := sub.Next(ctx)
		if err != nil {
			s.t.Fatalf("waiting for %s %s: %v", event, text, err)
		}
		if f.Event == event && strings.Contains(string(f.Data), text) {
			return
		}
	}
}

func wish(graph, thread, input string) engine.RunRequest {
	return engine.RunRequest{AssistantID: graph, ThreadID: thread, Input: json.RawMessage(input), StreamMode: []string{"updates", "values"}}
}

func inBoth(t *testing.T, test func(t *testing.T, language slipway.Language)) {
	t.Helper()
	t.Parallel()
	for _, language := range both {
		t.Run(string(language), func(t *testing.T) {
			t.Parallel()
			test(t, language)
		})
	}
}

// A graph that blocks its worker is killed with it after the grace period. Runs of other workers do not notice; those in the
// same worker are taken up again where they were (reference 17.6).
func TestABlockedWorkerIsKilledAndOnlyItsNeighboursStartAgain(t *testing.T) {
	inBoth(t, func(t *testing.T, language slipway.Language) {
		s := serve(t, language, 2, nil)
		s.awaitWorkers(2)
		until := filepath.Join(t.TempDir(), "over")
		var runs []agent.Run
		for range 4 {
			runs = append(runs, s.run(wish("work", s.thread(), fmt.Sprintf(`{"until":%q}`, until))))
		}
		for _, r := range runs {
			s.awaitState(r.ThreadID, "[b]")
		}
		blocked := s.run(wish("blocked", s.thread(), `{}`))
		s.awaitStatus(blocked, agent.RunRunning)
		if err := s.Cancel(t.Context(), blocked.ThreadID, blocked.ID, agent.CancelInterrupt, "enough", true); err != nil {
			t.Fatal(err)
		}
		s.awaitStatus(blocked, agent.RunInterrupted)
		if err := os.WriteFile(until, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		alone, again := 0, 0
		for _, r := range runs {
			pids := strings.Fields(strings.Trim(s.ran(r), "[]"))
			ended, err := s.Run(t.Context(), r.ThreadID, r.ID)
			if err != nil || ended.Status != agent.RunSuccess || len(pids) != 2 {
				t.Fatalf("got %s %v, %v", ended.Status, pids, err)
			}
			switch {
			case pids[0] == pids[1] && ended.Attempt == 1:
				alone++
			case pids[0] != pids[1] && ended.Attempt == 2:
				again++
			default:
				t.Errorf("a run of attempt %d ran in %v", ended.Attempt, pids)
			}
		}
		if alone != 2 || again != 2 {
			t.Errorf("got %d runs untouched and %d taken up again, want 2 and 2", alone, again)
		}
	})
}

func (s agentServer) awaitWorkers(n int) {
	s.t.Helper()
	s.await(fmt.Sprint(n, " workers"), func() bool { return s.Info().WorkersAvailable == n*slots })
}

func (s agentServer) awaitState(thread, want string) {
	s.t.Helper()
	s.await("state "+want, func() bool { return strings.HasSuffix(s.state(thread), want) })
}

func (s agentServer) awaitStatus(r agent.Run, want agent.RunStatus) {
	s.t.Helper()
	s.await("run "+string(want), func() bool {
		got, err := s.Run(s.t.Context(), r.ThreadID, r.ID)
		return err == nil && got.Status == want
	})
}

// await looks until it is so.
func (s agentServer) await(what string, so func() bool) {
	s.t.Helper()
	for end := time.Now().Add(2 * time.Minute); !so(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("waited in vain for %s", what)
		}
	}
}

func TestInterruptKeepsStepsAndRollbackLeavesNoTrace(t *testing.T) {
	inBoth(t, func(t *testing.T, language slipway.Language) {
		s := serve(t, language, 1, nil)
		thread := s.thread()
		if got := s.ran(s.run(wish("steps", thread, `{}`))); got != "[one two three]" {
			t.Fatalf("got %s", got)
		}
		before, err := s.Thread(t.Context(), thread)
		if err != nil {
			t.Fatal(err)
		}
		checkpoints := s.checkpoints(thread)

		r := wish("steps", thread, `{"wait":600}`)
		r.StreamResumable = true
		gone, sub, err := s.StreamRun(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		defer sub.Close()
		s.until(sub, "updates", `"one"`)
		if err := s.Cancel(t.Context(), thread, gone.ID, agent.CancelRollback, "no", true); err != nil {
			t.Fatal(err)
		}
		s.until(sub, "end", "rollback")
		after, err := s.Thread(t.Context(), thread)
		if err != nil || string(after.Values) != string(before.Values) || after.Status != before.Status || string(after.State) != string(before.State) {
			t.Errorf("after a rollback: got %s %s, %v, want %s %s", after.Status, after.Values, err, before.Status, before.Values)
		}
		if got := s.checkpoints(thread); got != checkpoints {
			t.Errorf("after a rollback there are %d checkpoints, want %d", got, checkpoints)
		}
		if frames, err := s.store.Frames(t.Context(), gone.ID, 0, 0); err != nil || len(frames) != 0 {
			t.Errorf("after a rollback %d frames are kept, %v", len(frames), err)
		}
		if _, err := s.Run(t.Context(), thread, gone.ID); slipway.ErrorCode(err) != slipway.CodeNotFound {
			t.Errorf("the run that was rolled back: got %v, want not found", err)
		}

		kept, sub2, err := s.StreamRun(t.Context(), wish("steps", thread, `{"wait":600}`))
		if err != nil {
			t.Fatal(err)
		}
		defer sub2.Close()
		s.until(sub2, "updates", `"one"`)
		if err := s.Cancel(t.Context(), thread, kept.ID, agent.CancelInterrupt, "enough", true); err != nil {
			t.Fatal(err)
		}
		if got, want := s.state(thread), "[one two three one] [two]"; got != want {
			t.Errorf("after an interrupt: got %s, want %s", got, want)
		}
		th, err := s.Thread(t.Context(), thread)
		if err != nil || th.Status != agent.ThreadInterrupted || th.Error == nil || th.Error.Error != "UserInterrupt" {
			t.Errorf("after an interrupt: got %s %v, %v", th.Status, th.Error, err)
		}
	})
}

func (s agentServer) checkpoints(thread string) int {
	s.t.Helper()
	list, err := s.store.Checkpoints(s.t.Context(), agent.CheckpointQuery{ThreadID: thread})
	if err != nil {
		s.t.Fatal(err)
	}
	return len(list)
}

// Three interrupts wait at once, one of them in a subgraph; they are answered by their ids, in two runs.
func TestSeveralInterruptsAreAnsweredByID(t *testing.T) {
	inBoth(t, func(t *testing.T, language slipway.Language) {
		s := serve(t, language, 1, nil)
		thread := s.thread()
		s.ran(s.run(wish("asks", thread, `{}`)))
		ids := s.interrupts(thread)
		if len(ids) != 3 {
			t.Fatalf("got interrupts %v, want left, right and inner", ids)
		}
		resume := func(names ...string) string {
			answers := map[string]string{}
			for _, n := range names {
				answers[ids[n]] = "yes " + n
			}
			command, _ := json.Marshal(map[string]any{"resume": answers})
			r := wish("asks", thread, "null")
			r.Command = command
			return s.ran(s.run(r))
		}
		resume("left", "inner")
		if left := s.interrupts(thread); len(left) != 1 || left["right"] != ids["right"] {
			t.Errorf("after two answers: got %v, want right", left)
		}
		got := resume("right")
		for _, want := range []string{"left:yes left", "right:yes right", "inner:yes inner"} {
			if !strings.Contains(got, want) {
				t.Errorf("%q is not in %s", want, got)
			}
		}
		if th, err := s.Thread(t.Context(), thread); err != nil || th.Status != agent.ThreadIdle {
			t.Errorf("at the end: got %s, %v, want idle", th.Status, err)
		}
	})
}

// interrupts are the ids of what waits, by question.
func (s agentServer) interrupts(thread string) map[string]string {
	s.t.Helper()
	th, err := s.Thread(s.t.Context(), thread)
	if err != nil {
		s.t.Fatal(err)
	}
	var tasks map[string][]struct {
		ID    string
		Value struct{ Q string }
	}
	if err := json.Unmarshal(th.Interrupts, &tasks); err != nil {
		s.t.Fatal(err)
	}
	ids := map[string]string{}
	for _, list := range tasks {
		for _, i := range list {
			ids[i.Value.Q] = i.ID
		}
	}
	return ids
}

func TestCommandsForksAndTimeTravel(t *testing.T) {
	inBoth(t, func(t *testing.T, language slipway.Language) {
		s := serve(t, language, 1, nil)
		thread := s.thread()
		command := func(text string) string {
			r := wish("jump", thread, "null")
			r.Command = json.RawMessage(text)
			return s.ran(s.run(r))
		}
		if got := s.ran(s.run(wish("jump", thread, `{}`))); got != "[one]" {
			t.Errorf("got %s", got)
		}
		if got := command(`{"goto":"two"}`); got != "[one two]" {
			t.Errorf("goto: got %s", got)
		}
		if got := command(`{"update":{"ran":["mine"]},"goto":["three"]}`); got != "[one two mine three]" {
			t.Errorf("update and goto: got %s", got)
		}
		got := command(`{"goto":[{"node":"three","input":{"wait":1}},{"node":"three","input":{"wait":2}}]}`)
		if got != "[one two mine three three1 three2]" {
			t.Errorf("Send: got %s", got)
		}

		fork := s.thread()
		s.ran(s.run(wish("steps", fork, `{}`)))
		var history []struct {
			Next       []string
			Checkpoint json.RawMessage
		}
		raw, err := s.History(t.Context(), engine.HistoryRequest{ThreadID: fork, Limit: 10})
		if err != nil || json.Unmarshal(raw, &history) != nil || len(history) != 5 {
			t.Fatalf("history: got %d states, %v", len(history), err)
		}
		for _, h := range history {
			if len(h.Next) != 1 || h.Next[0] != "two" {
				continue
			}
			again := wish("steps", fork, "null")
			again.Checkpoint = h.Checkpoint
			if got := s.ran(s.run(again)); got != "[one two three]" {
				t.Errorf("replayed from before two: got %s", got)
			}
		}
		if got := s.checkpoints(fork); got != 7 && got != 8 {
			t.Errorf("after the fork there are %d checkpoints, want those of both branches", got)
		}
	})
}

// The application's own embedding function ranks what its graphs store, also where a graph waits for the store without
// letting others run.
func TestGraphsSearchTheirStoreByLikeness(t *testing.T) {
	t.Parallel()
	s := serve(t, slipway.Python, 1, func(c *engine.Config, p *supervise.Program) {
		c.Index = &agent.Index{Dims: 2, Embed: "./semantics.py:embed", Fields: []string{"text"}}
		c.Parts = map[slipway.Language][]agent.PartName{slipway.Python: {agent.PartEmbed}}
		p.Parts.Embed = &agent.EmbedPart{Spec: "./semantics.py:embed"}
	})
	if got, want := s.ran(s.run(wish("memory", s.thread(), `{}`))), "[[sync true] [async false]]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
