package engine_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/engine"
	"github.com/slipway-dev/slipway/store/postgres/pgtest"
	"github.com/slipway-dev/slipway/worker/fake"
)

// A run that a drain hands back goes on from its checkpoint, and its stream goes on behind the frames it has told.
func TestAHandedBackRunGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	inside := make(chan struct{})
	large := `"` + strings.Repeat("x", 16<<20) + `"`
	first := w.start("first", 1, map[string]fake.Graph{"agent": func(ctx context.Context, r *fake.Run) agent.Done {
		r.Checkpoint(checkpointID(1), `{}`)
		r.Chunk("custom", large)
		r.Chunk("values", `1`) // waits in memory until the large one is kept
		close(inside)
		<-ctx.Done()
		return fake.Cancelled()
	}}, func(c *engine.Config) { c.DrainGrace = time.Millisecond })
	r := request(first.thread(), "agent", `{}`)
	r.StreamResumable = true
	run := first.create(r)
	<-inside
	first.stop()
	second := w.start("second", 1, map[string]fake.Graph{"agent": func(_ context.Context, r *fake.Run) agent.Done {
		r.Chunk("values", `2`)
		return r.Success(checkpointID(2), fmt.Sprintf(`{"resume":%v}`, r.Job.Resume))
	}})
	if got := string(second.wait(run).Body); got != `{"resume":true}` {
		t.Errorf("got %s, want a run that resumes", got)
	}
	sub, err := second.JoinStream(t.Context(), run.ThreadID, run.ID, engine.From{LastEventID: "-1"})
	if err != nil {
		t.Fatal(err)
	}
	start := `metadata {"run_id":"` + run.ID + `","attempt":1}` + "\n"
	want := start + "custom " + large + "\nvalues 1\n" + start + "values 2\n" + `end {"run_id":"` + run.ID + `","status":"success"}` + "\n"
	if got := tell(frames(t, sub)); got != want {
		t.Errorf("got\n%swant\n%s", strings.ReplaceAll(got, large, "large"), strings.ReplaceAll(want, large, "large"))
	}
}

func TestTemporaryRunIsReplayedAfterItsEnd(t *testing.T) {
	t.Parallel()
	s := newWorld(t).start("a", 1, map[string]fake.Graph{"agent": echo})
	r := engine.RunRequest{AssistantID: "agent", Stateless: true, Input: json.RawMessage(`{"x":1}`), StreamResumable: true}
	run, sub, err := s.StreamRun(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	want := tell(frames(t, sub))
	for _, thread := range []string{"", run.ThreadID} {
		again, err := s.JoinStream(t.Context(), thread, run.ID, engine.From{LastEventID: "-1"})
		if err != nil {
			t.Fatal(err)
		}
		if got := tell(frames(t, again)); got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	}
}

func TestAStreamIsJoinedFromACheckpoint(t *testing.T) {
	t.Parallel()
	at := make(chan time.Time, 1)
	s := newWorld(t).start("a", 1, map[string]fake.Graph{"agent": func(_ context.Context, r *fake.Run) agent.Done {
		r.Chunk("values", `1`)
		for began := time.Now().UnixMilli(); time.Now().UnixMilli() == began; { //nolint:revive // ids count milliseconds
		}
		now := time.Now()
		r.Checkpoint(uuid6(now), `{}`)
		r.Chunk("values", `2`)
		at <- now
		return r.Success(uuid6(now), `{}`)
	}})
	r := request(s.thread(), "agent", `{}`)
	r.StreamResumable = true
	run := s.create(r)
	s.wait(run)
	made := <-at
	end := `end {"run_id":"` + run.ID + `","status":"success"}` + "\n"
	for id, want := range map[string]string{
		uuid6(made):                  "values 2\n" + end,
		uuid6(made.Add(time.Second)): `metadata {"run_id":"` + run.ID + `","attempt":1}` + "\nvalues 1\nvalues 2\n" + end,
		"nonsense":                   `metadata {"run_id":"` + run.ID + `","attempt":1}` + "\nvalues 1\nvalues 2\n" + end,
	} {
		sub, err := s.JoinStream(t.Context(), run.ThreadID, run.ID, engine.From{LastEventID: "-1", CheckpointID: id})
		if err != nil {
			t.Fatal(err)
		}
		if got := tell(frames(t, sub)); got != want {
			t.Errorf("from %s got\n%swant\n%s", id, got, want)
		}
	}
}

// uuid6 is a checkpoint id as the graph libraries make them.
func uuid6(t time.Time) string {
	ticks := fmt.Sprintf("%015x", t.UnixNano()/100+122192928000000000)
	return ticks[:8] + "-" + ticks[8:12] + "-6" + ticks[12:] + "-8000-000000000001"
}

func TestTheAssistantsConfigurableIsNotInheritedByAnother(t *testing.T) {
	t.Parallel()
	s := newWorld(t).start("a", 1, map[string]fake.Graph{"one": echo, "two": echo}, func(c *engine.Config) {
		c.Graphs["one"] = engine.Graph{Language: slipway.Node, Config: []byte(`{"tags":["one"],"configurable":{"model":"one"}}`)}
		c.Graphs["two"] = engine.Graph{Language: slipway.Node, Config: []byte(`{"configurable":{"model":"two"}}`)}
	})
	thread := s.thread()
	s.wait(s.create(request(thread, "one", `{}`)))
	run := s.create(request(thread, "two", `{}`))
	s.wait(run)
	if config := string(run.Kwargs.Config); !strings.Contains(config, `"model":"two"`) {
		t.Errorf("got %s, want the second assistant's model", config)
	}
}

func TestABatchIsAllOrNothing(t *testing.T) {
	t.Parallel()
	g := newGate()
	s := newWorld(t).start("a", 2, map[string]fake.Graph{"agent": g.graph})
	one := engine.RunRequest{AssistantID: "agent", Stateless: true, Keep: true, Input: json.RawMessage(`{}`)}
	other := one
	other.AssistantID = "nope"
	if _, err := s.CreateRuns(t.Context(), []engine.RunRequest{one, other}); slipway.ErrorCode(err) != slipway.CodeNotFound {
		t.Fatalf("got %v, want not_found", err)
	}
	if n, err := s.CountThreads(t.Context(), agent.ThreadQuery{}); err != nil || n != 0 {
		t.Errorf("got %d threads (%v), want none", n, err)
	}
	runs, err := s.CreateRuns(t.Context(), []engine.RunRequest{one, one, one})
	if err != nil {
		t.Fatal(err)
	}
	g.await(t)
	g.await(t)
	for i, want := range []agent.RunStatus{agent.RunRunning, agent.RunRunning, agent.RunPending} {
		if r, err := s.Run(t.Context(), "", runs[i].ID); err != nil || r.Status != want {
			t.Errorf("run %d: got %s (%v), want %s", i, r.Status, err, want)
		}
	}
	if err := s.CancelMany(t.Context(), engine.CancelSelection{Status: "pending"}, agent.CancelInterrupt, "enough"); err != nil {
		t.Fatal(err)
	}
	if res := s.wait(runs[2]); res.Outcome != agent.RunInterrupted {
		t.Errorf("pending run: got %s, want interrupted", res.Outcome)
	}
	close(g.let)
	for _, r := range runs[:2] {
		if res := s.wait(r); res.Outcome != agent.RunSuccess {
			t.Errorf("running run: got %s, want success", res.Outcome)
		}
	}
	if err := s.CancelMany(t.Context(), engine.CancelSelection{Status: "all"}, agent.CancelInterrupt, ""); slipway.ErrorCode(err) != slipway.CodeNotFound {
		t.Errorf("nothing to cancel: got %v, want not_found", err)
	}
}

func TestCancelManyByThreadAndAssistant(t *testing.T) {
	t.Parallel()
	g := newGate()
	s := newWorld(t).start("a", 3, map[string]fake.Graph{"one": g.graph, "two": g.graph})
	a, b, c := s.create(request(s.thread(), "one", `{}`)), s.create(request(s.thread(), "one", `{}`)), s.create(request(s.thread(), "two", `{}`))
	for range 3 {
		g.await(t)
	}
	byID := engine.CancelSelection{ThreadID: a.ThreadID, RunIDs: []string{a.ID, b.ID}} // b is on another thread
	if err := s.CancelMany(t.Context(), byID, agent.CancelRollback, "enough"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Wait(t.Context(), a.ThreadID, a.ID); err != nil && slipway.ErrorCode(err) != slipway.CodeNotFound {
		t.Fatal(err)
	}
	byAssistant := engine.CancelSelection{AssistantID: engine.AssistantID("two")}
	if err := s.CancelMany(t.Context(), byAssistant, agent.CancelInterrupt, "enough"); err != nil {
		t.Fatal(err)
	}
	if res := s.wait(c); res.Outcome != agent.RunInterrupted {
		t.Errorf("of the assistant: got %s, want interrupted", res.Outcome)
	}
	if r, err := s.Run(t.Context(), b.ThreadID, b.ID); err != nil || r.Status != agent.RunRunning {
		t.Errorf("the other: got %s (%v), want running", r.Status, err)
	}
	close(g.let)
	s.wait(b)
}

func TestStateHistoryUpdateAndCopy(t *testing.T) {
	t.Parallel()
	s := newWorld(t).start("a", 1, map[string]fake.Graph{"agent": echo})
	s.pool.Answer = func(_ context.Context, envelope json.RawMessage) (json.RawMessage, error) {
		var call struct{ Verb string }
		if err := json.Unmarshal(envelope, &call); err != nil {
			return nil, err
		}
		if call.Verb != "state.update" {
			return json.RawMessage(`["` + call.Verb + `"]`), nil
		}
		return json.RawMessage(`{"config":{"configurable":{"thread_id":"t","checkpoint_ns":"","checkpoint_id":"c2"}},
			"snapshot":{"values":{"x":2},"next":["n"],"tasks":[],"interrupts":[],"metadata":{},"checkpoint":{"checkpoint_id":"c2"},"parent_checkpoint":null,"created_at":null}}`), nil
	}
	ctx, thread := t.Context(), s.thread()
	if _, err := s.UpdateState(ctx, engine.StateUpdate{ThreadID: thread}); slipway.ErrorCode(err) != slipway.CodeBadRequest {
		t.Errorf("update without a graph: got %v, want bad_request", err)
	}
	if got, err := s.History(ctx, engine.HistoryRequest{ThreadID: thread, Limit: 1}); err != nil || string(got) != `[]` {
		t.Errorf("history of nothing: got %s (%v)", got, err)
	}
	if _, err := s.State(ctx, engine.StateRequest{ThreadID: thread, Checkpoint: agent.CheckpointKey{ID: "c"}}); slipway.ErrorCode(err) != slipway.CodeNotFound {
		t.Errorf("missing checkpoint: got %v, want not_found", err)
	}
	s.wait(s.create(request(thread, "agent", `{"x":1}`)))
	for name, c := range map[string]struct {
		q    engine.StateRequest
		want string
	}{
		"latest":    {engine.StateRequest{ThreadID: thread}, `"values":{"x":1}`},
		"older":     {engine.StateRequest{ThreadID: thread, Checkpoint: agent.CheckpointKey{ID: checkpointID(1)}}, `state.get`},
		"subgraphs": {engine.StateRequest{ThreadID: thread, Subgraphs: true}, `state.get`},
	} {
		if got, err := s.State(ctx, c.q); err != nil || !strings.Contains(string(got), c.want) {
			t.Errorf("%s: got %s (%v), want %s", name, got, err, c.want)
		}
	}
	if got, err := s.History(ctx, engine.HistoryRequest{ThreadID: thread, Limit: 1}); err != nil || string(got) != `["state.history"]` {
		t.Errorf("history: got %s (%v)", got, err)
	}
	got, err := s.UpdateState(ctx, engine.StateUpdate{ThreadID: thread, Values: json.RawMessage(`{"x":2}`)})
	if err != nil || !strings.Contains(string(got), `"checkpoint_id":"c2"`) {
		t.Errorf("update: got %s (%v)", got, err)
	}
	patched, err := s.PatchState(ctx, thread, json.RawMessage(`{"mine":1,"__not":1}`))
	if err != nil || !strings.Contains(string(patched), checkpointID(1)) {
		t.Errorf("patch: got %s (%v)", patched, err)
	}
	copied, err := s.CopyThread(ctx, thread)
	if err != nil || string(copied.Values) != `{"x":2}` || copied.Status != agent.ThreadInterrupted {
		t.Errorf("copy: got %+v (%v)", copied, err)
	}
	if state, err := s.State(ctx, engine.StateRequest{ThreadID: thread}); err != nil || !strings.Contains(string(state), `"metadata":{"mine":1}`) {
		t.Errorf("after all: got %s (%v)", state, err)
	}
}

func TestAThreadOfAnUnknownGraphIsToldSoAtOnce(t *testing.T) {
	t.Parallel()
	s := newWorld(t).start("a", 0, map[string]fake.Graph{"agent": echo})
	th, err := s.CreateThread(t.Context(), agent.Thread{Metadata: json.RawMessage(`{"graph_id":"gone"}`)}, false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // half of what a known graph may take
	defer cancel()
	_, err = s.UpdateState(ctx, engine.StateUpdate{ThreadID: th.ID})
	if slipway.ErrorCode(err) != slipway.CodeNotFound || !strings.Contains(err.Error(), `Graph "gone" not found`) {
		t.Errorf("got %v, want not_found", err)
	}
}

func TestAReaderIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	big := `"` + strings.Repeat("x", 1<<20) + `"`
	s := newWorld(t).start("a", 1, map[string]fake.Graph{"agent": func(_ context.Context, r *fake.Run) agent.Done {
		for range 100 {
			r.Chunk("values", big)
		}
		return r.Success("", `{}`)
	}})
	run, sub, err := s.StreamRun(t.Context(), request(s.thread(), "agent", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	s.wait(run)
	if _, err := sub.Next(t.Context()); slipway.ErrorCode(err) != slipway.CodeUnavailable {
		t.Errorf("got %v, want unavailable", err)
	}
}

// serverEnv makes the test binary an agent server on the data directory it names, until it is killed.
const (
	serverEnv         = "SLIPWAY_TEST_SERVER"
	serverDatabaseEnv = "SLIPWAY_TEST_SERVER_DATABASE"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(serverEnv); dir != "" {
		testing.Init()
		serveUntilKilled(dir, os.Getenv(serverDatabaseEnv))
	}
	if os.Getenv(databaseEnv) == "postgres" {
		os.Exit(pgtest.Main(m))
	}
	os.Exit(m.Run())
}

// serveUntilKilled runs one run that has written a checkpoint and hangs, and prints its thread and id.
func serveUntilKilled(dir, url string) {
	inside := make(chan struct{})
	tests := []testing.InternalTest{{Name: "server", F: func(t *testing.T) {
		w := &world{t: t, dir: dir, url: url}
		s := w.start("killed", 1, map[string]fake.Graph{"agent": func(_ context.Context, r *fake.Run) agent.Done {
			r.Checkpoint(checkpointID(1), `{}`)
			close(inside)
			select {}
		}})
		run := s.create(request(s.thread(), "agent", `{}`))
		<-inside
		if _, err := s.State(t.Context(), engine.StateRequest{ThreadID: run.ThreadID}); err != nil { // reads see every write before
			t.Fatal(err)
		}
		fmt.Println("run", run.ThreadID, run.ID)
		select {}
	}}}
	testing.Main(func(string, string) (bool, error) { return true, nil }, tests, nil, nil)
}

// killedServer starts a server in a process of its own, whose run hangs; kill kills it.
func (w *world) killedServer() (run agent.Run, kill func()) {
	w.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serverEnv+"="+w.dir, serverDatabaseEnv+"="+w.url)
	out, err := cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	kill = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	w.t.Cleanup(kill)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, err := fmt.Sscanf(lines.Text(), "run %s %s", &run.ThreadID, &run.ID); err == nil {
			return run, kill
		}
	}
	w.t.Fatal("the server said nothing")
	return run, nil
}

func resumed(_ context.Context, r *fake.Run) agent.Done {
	return r.Success(checkpointID(2), fmt.Sprintf(`{"attempt":%d,"resume":%v}`, r.Job.Run.Attempt, r.Job.Resume))
}

func TestAKilledServersRunIsRescuedAtOnceByOneThatLives(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run, kill := w.killedServer()
	s := w.start("alive", 1, map[string]fake.Graph{"agent": resumed}, func(c *engine.Config) { c.RescueEvery = 24 * time.Hour })
	kill()
	if got := string(s.wait(run).Body); got != `{"attempt":2,"resume":true}` {
		t.Errorf("got %s", got)
	}
}

func TestAKilledServersRunIsRescuedAtTheNextStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run, kill := w.killedServer()
	kill()
	s := w.start("next", 1, map[string]fake.Graph{"agent": resumed})
	if got := string(s.wait(run).Body); got != `{"attempt":2,"resume":true}` {
		t.Errorf("got %s", got)
	}
	th, err := s.Thread(t.Context(), run.ThreadID)
	if err != nil || th.Status != agent.ThreadIdle {
		t.Errorf("thread: got %s (%v), want idle", th.Status, err)
	}
}

// Requests that arrive while the server goes are told so: they would wait for an end that nobody here hears of.
func TestADrainedServerKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	g := newGate()
	s := newWorld(t).start("a", 1, map[string]fake.Graph{"agent": g.graph}, func(c *engine.Config) { c.DrainGrace = time.Millisecond })
	thread := s.thread()
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.once.Do(func() { t.Cleanup(func() { _ = s.closers[1].Close(); _ = s.closers[0].Close() }) })
	run, sub, err := s.StreamRun(t.Context(), request(thread, "agent", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	if _, err := sub.Next(t.Context()); slipway.ErrorCode(err) != slipway.CodeUnavailable {
		t.Errorf("stream: got %v, want unavailable", err)
	}
	if _, err := s.Wait(t.Context(), run.ThreadID, run.ID); slipway.ErrorCode(err) != slipway.CodeUnavailable {
		t.Errorf("wait: got %v, want unavailable", err)
	}
}

func TestDeletingARunInFlightLeavesNothingOfIt(t *testing.T) {
	t.Parallel()
	g := newGate()
	s := newWorld(t).start("a", 1, map[string]fake.Graph{"echo": echo, "agent": func(ctx context.Context, r *fake.Run) agent.Done {
		r.Checkpoint(checkpointID(5), `{"x":5}`)
		done := g.graph(ctx, r)
		done.Snapshot = r.Snapshot(checkpointID(5), `{"x":5}`)
		return done
	}})
	thread := s.thread()
	s.wait(s.create(request(thread, "echo", `{"x":1}`)))
	run := s.create(request(thread, "agent", `{}`))
	g.await(t)
	if err := s.DeleteRun(t.Context(), thread, run.ID); err != nil {
		t.Fatal(err)
	}
	th, err := s.Thread(t.Context(), thread)
	if err != nil || string(th.Values) != `{"x":1}` || th.Status != agent.ThreadIdle {
		t.Errorf("thread: got %s %s (%v), want what it was before", th.Status, th.Values, err)
	}
	if _, err := s.Run(t.Context(), thread, run.ID); slipway.ErrorCode(err) != slipway.CodeNotFound {
		t.Errorf("run: got %v, want not_found", err)
	}
}
