package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/bus/broadcast"
	"github.com/slipway-dev/slipway/bus/local"
	"github.com/slipway-dev/slipway/engine"
	"github.com/slipway-dev/slipway/store/postgres"
	"github.com/slipway-dev/slipway/store/postgres/pgtest"
	"github.com/slipway-dev/slipway/store/sqlite"
	"github.com/slipway-dev/slipway/worker/fake"
)

// world is one deployment's data directory, or its database; servers are started on it.
type world struct {
	t   *testing.T
	dir string
	url string // of the database; "" = SQLite in the directory
	bus func(agent.Bus) agent.Bus
}

// server is one agent server process's engine over the real store and the real bus, with scripted workers.
type server struct {
	*engine.Engine
	t       *testing.T
	store   agent.Store
	pool    *fake.Pool
	once    sync.Once
	closers []io.Closer
}

// databaseEnv chooses the database of all worlds: "" = SQLite, "postgres" = one of a cluster that TestMain starts.
const databaseEnv = "SLIPWAY_TEST_DATABASE"

func newWorld(t *testing.T) *world {
	w := &world{t: t, dir: t.TempDir()}
	if os.Getenv(databaseEnv) == "postgres" {
		w.url = pgtest.URL(t)
	}
	return w
}

// closingStore and closingBus are what a server opens.
type (
	closingStore interface {
		agent.Store
		io.Closer
	}
	closingBus interface {
		agent.Bus
		io.Closer
	}
)

// open opens the store and the bus as cmd/slipway does.
func (w *world) open(name string, log *slog.Logger) (closingStore, closingBus) {
	w.t.Helper()
	if w.url == "" {
		store, err := sqlite.OpenAgent(filepath.Join(w.dir, "agent.db"))
		w.check(err)
		bus, err := local.Open(filepath.Join(w.dir, "bus"), name, log)
		w.check(err)
		return store, bus
	}
	store, err := postgres.OpenAgent(w.t.Context(), w.url, "agent_test")
	w.check(err)
	line, err := postgres.NewLine(w.url, "agent_test")
	w.check(err)
	bus, err := broadcast.Open(w.t.Context(), func(ctx context.Context) (broadcast.Wire, error) { return line.Connect(ctx) }, name, log)
	w.check(err)
	return store, bus
}

func (w *world) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) start(name string, slots int, graphs map[string]fake.Graph, change ...func(*engine.Config)) *server {
	w.t.Helper()
	log := slog.New(slog.DiscardHandler)
	store, bus := w.open(name, log)
	cfg := engine.Config{Instance: name, Graphs: map[string]engine.Graph{}, DrainGrace: 20 * time.Second}
	for id := range graphs {
		cfg.Graphs[id] = engine.Graph{Language: slipway.Node}
	}
	for _, c := range change {
		c(&cfg)
	}
	pool := &fake.Pool{Store: store, OnStart: func(p *fake.Pool) {
		if slots > 0 {
			p.Add(slots, graphs)
		}
	}}
	ids := func() string { return uuid.Must(uuid.NewV7()).String() }
	s := &server{
		t: w.t, store: store, pool: pool, closers: []io.Closer{bus, store},
		Engine: engine.New(cfg, store, w.through(bus), pool, time.Now, ids, log),
	}
	if err := s.Start(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(s.stop)
	return s
}

// through lays what the test wants between engine and bus.
func (w *world) through(b agent.Bus) agent.Bus {
	if w.bus != nil {
		return w.bus(b)
	}
	return b
}

func (s *server) stop() {
	s.once.Do(func() {
		if err := s.Drain(context.Background()); err != nil {
			s.t.Errorf("drain: %v", err)
		}
		for _, c := range s.closers {
			if err := c.Close(); err != nil {
				s.t.Errorf("close: %v", err)
			}
		}
	})
}

func (s *server) thread() string {
	s.t.Helper()
	th, err := s.CreateThread(s.t.Context(), agent.Thread{}, false)
	if err != nil {
		s.t.Fatal(err)
	}
	return th.ID
}

func (s *server) create(r engine.RunRequest) agent.Run {
	s.t.Helper()
	run, err := s.CreateRun(s.t.Context(), r)
	if err != nil {
		s.t.Fatal(err)
	}
	return run
}

func (s *server) wait(r agent.Run) engine.Result {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	res, err := s.Wait(ctx, r.ThreadID, r.ID)
	if err != nil {
		s.t.Fatalf("wait: %v", err)
	}
	return res
}

// frames reads a subscription to its end.
func frames(t *testing.T, s *engine.Subscription) []agent.Frame {
	t.Helper()
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var all []agent.Frame
	for {
		f, err := s.Next(ctx)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("after %d frames: %v", len(all), err)
		}
		all = append(all, f)
	}
}

func tell(frames []agent.Frame) string {
	var b strings.Builder
	for _, f := range frames {
		fmt.Fprintf(&b, "%s %s\n", f.Event, f.Data)
	}
	return b.String()
}

func checkpointID(n int) string { return fmt.Sprintf("1f000000-0000-6000-8000-%012d", n) }

// echo streams its input and ends with it.
func echo(_ context.Context, r *fake.Run) agent.Done {
	input := string(r.Job.Run.Kwargs.Input)
	r.Checkpoint(checkpointID(1), input)
	r.Chunk("values", input)
	return r.Success(checkpointID(1), input)
}

// gate is a graph that says when it runs and ends when it is let go or cancelled.
type gate struct {
	entered chan *fake.Run
	let     chan struct{}
}

func newGate() *gate { return &gate{entered: make(chan *fake.Run, 100), let: make(chan struct{})} }

func (g *gate) graph(ctx context.Context, r *fake.Run) agent.Done {
	g.entered <- r
	select {
	case <-g.let:
		return r.Success(checkpointID(9), `{"let":true}`)
	case <-ctx.Done():
		return fake.Cancelled()
	}
}

func (g *gate) await(t *testing.T) *fake.Run {
	t.Helper()
	select {
	case r := <-g.entered:
		return r
	case <-time.After(time.Minute):
		t.Fatal("no run has entered the graph")
		return nil
	}
}

func request(thread, graph, input string) engine.RunRequest {
	return engine.RunRequest{AssistantID: graph, ThreadID: thread, Input: json.RawMessage(input)}
}

func TestAssistantIDs(t *testing.T) {
	t.Parallel()
	if got, want := engine.AssistantID("agent"), "fe096781-5601-53d2-b2f6-0d3403f7e9ca"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	s := newWorld(t).start("a", 1, map[string]fake.Graph{"agent": echo})
	a, err := s.Assistant(t.Context(), "agent")
	if err != nil || a.ID != engine.AssistantID("agent") || a.GraphID != "agent" {
		t.Errorf("got %+v, %v", a, err)
	}
	if _, err := s.Assistant(t.Context(), "nobody"); slipway.ErrorCode(err) != slipway.CodeNotFound {
		t.Errorf("unknown assistant: got %v, want not_found", err)
	}
}

func TestRejectLetsExactlyOneWin(t *testing.T) {
	t.Parallel()
	g := newGate()
	s := newWorld(t).start("a", 10, map[string]fake.Graph{"agent": g.graph})
	thread := s.thread()
	var won, refused int
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			r := request(thread, "agent", `{}`)
			r.Multitask = agent.MultitaskReject
			_, err := s.CreateRun(t.Context(), r)
			mu.Lock()
			defer mu.Unlock()
			switch slipway.ErrorCode(err) {
			case "":
				won++
			case slipway.CodeConflict:
				refused++
			default:
				t.Errorf("got %v", err)
			}
		})
	}
	all.Wait()
	close(g.let)
	if won != 1 || refused != 15 {
		t.Errorf("got %d winners and %d refused, want 1 and 15", won, refused)
	}
}

func TestEnqueuedRunsOfAThreadGoInOrderOneAtATime(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var order []string
	inside := 0
	s := newWorld(t).start("a", 8, map[string]fake.Graph{"agent": func(_ context.Context, r *fake.Run) agent.Done {
		mu.Lock()
		inside++
		if inside > 1 {
			t.Error("two runs of one thread at once")
		}
		order = append(order, r.Job.Run.ID)
		mu.Unlock()
		defer func() { mu.Lock(); inside--; mu.Unlock() }()
		return r.Success(checkpointID(1), `{}`)
	}})
	thread := s.thread()
	var want []string
	var last agent.Run
	for range 8 {
		last = s.create(request(thread, "agent", `{}`))
		want = append(want, last.ID)
	}
	s.wait(last)
	mu.Lock()
	defer mu.Unlock()
	if fmt.Sprint(order) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", order, want)
	}
}

func TestInterruptAndRollbackReplaceTheRunningRun(t *testing.T) {
	t.Parallel()
	for strategy, outcome := range map[agent.Multitask]agent.RunStatus{
		agent.MultitaskInterrupt: agent.RunInterrupted, agent.MultitaskRollback: agent.RunRollback,
	} {
		t.Run(string(strategy), func(t *testing.T) {
			t.Parallel()
			g := newGate()
			s := newWorld(t).start("a", 4, map[string]fake.Graph{"slow": g.graph, "agent": echo})
			thread := s.thread()
			_, sub, err := s.StreamRun(t.Context(), request(thread, "slow", `{}`))
			if err != nil {
				t.Fatal(err)
			}
			g.await(t)
			r := request(thread, "agent", `{"second":true}`)
			r.Multitask = strategy
			second := s.create(r)
			all := frames(t, sub)
			if got := all[len(all)-1]; !strings.Contains(string(got.Data), string(outcome)) {
				t.Errorf("end of the first run: got %s, want %s", got.Data, outcome)
			}
			if res := s.wait(second); res.Outcome != agent.RunSuccess || string(res.Body) != `{"second":true}` {
				t.Errorf("second run: got %s %s", res.Outcome, res.Body)
			}
		})
	}
}

func TestCancelWaitsUntilTheGraphHasStopped(t *testing.T) {
	t.Parallel()
	g := newGate()
	s := newWorld(t).start("a", 1, map[string]fake.Graph{"agent": g.graph})
	run := s.create(request(s.thread(), "agent", `{}`))
	g.await(t)
	if err := s.Cancel(t.Context(), run.ThreadID, run.ID, agent.CancelInterrupt, "enough", true); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Run(t.Context(), run.ThreadID, run.ID); err != nil || got.Status != agent.RunInterrupted {
		t.Errorf("got %s, %v, want interrupted", got.Status, err)
	}
	err := s.Cancel(t.Context(), run.ThreadID, run.ID, agent.CancelInterrupt, "again", false)
	if got, want := fmt.Sprint(err), "No runs found to cancel"; got != want {
		t.Errorf("second cancel: got %q, want %q", got, want)
	}
}

func TestARunThatDoesNotStopLosesItsWorker(t *testing.T) {
	t.Parallel()
	entered, never := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(never) })
	s := newWorld(t).start("a", 1, map[string]fake.Graph{"agent": func(context.Context, *fake.Run) agent.Done {
		close(entered)
		<-never
		return fake.Cancelled()
	}}, func(c *engine.Config) { c.CancelGrace = time.Millisecond })
	run := s.create(request(s.thread(), "agent", `{}`))
	<-entered
	if err := s.Cancel(t.Context(), run.ThreadID, run.ID, agent.CancelInterrupt, "enough", true); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Run(t.Context(), run.ThreadID, run.ID); err != nil || got.Status != agent.RunInterrupted {
		t.Errorf("got %s, %v, want interrupted", got.Status, err)
	}
}

func TestALostWorkersRunGoesOnFromItsCheckpoint(t *testing.T) {
	t.Parallel()
	graphs := map[string]fake.Graph{}
	stored := make(chan *fake.Run, 1)
	graphs["agent"] = func(ctx context.Context, r *fake.Run) agent.Done {
		if r.Job.Run.Attempt == 1 {
			r.Checkpoint(checkpointID(1), `{}`)
			stored <- r
			<-ctx.Done()
			return fake.Cancelled()
		}
		return r.Success(checkpointID(2), fmt.Sprintf(`{"attempt":%d,"resume":%v}`, r.Job.Run.Attempt, r.Job.Resume))
	}
	s := newWorld(t).start("a", 1, graphs)
	run, sub, err := s.StreamRun(t.Context(), request(s.thread(), "agent", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	<-stored
	first := s.pool.Workers()[0]
	s.pool.Add(1, graphs)
	first.Kill("crash")
	want := `metadata {"run_id":"` + run.ID + `","attempt":1}` + "\n" + `metadata {"run_id":"` + run.ID + `","attempt":2}` + "\n" +
		`end {"run_id":"` + run.ID + `","status":"success"}` + "\n"
	if got := tell(frames(t, sub)); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got, want := string(s.wait(run).Body), `{"attempt":2,"resume":true}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAttemptsRunOut(t *testing.T) {
	t.Parallel()
	s := newWorld(t).start("a", 1, map[string]fake.Graph{"agent": func(_ context.Context, r *fake.Run) agent.Done {
		return agent.Done{Status: "error", Retriable: true, Failure: &agent.Failure{Error: "LinkError", Message: "gone"}}
	}})
	run := s.create(request(s.thread(), "agent", `{}`))
	if res := s.wait(run); res.Outcome != agent.RunError || res.Run.Attempt != 3 {
		t.Errorf("got %s after attempt %d, want error after 3", res.Outcome, res.Run.Attempt)
	}
}

func TestRunTimeout(t *testing.T) {
	t.Parallel()
	g := newGate()
	s := newWorld(t).start("a", 1, map[string]fake.Graph{"agent": g.graph}, func(c *engine.Config) { c.RunTimeout = time.Millisecond })
	run := s.create(request(s.thread(), "agent", `{}`))
	want := `{"__error__":{"error":"TimeoutError","message":"Run exceeded maximum execution time"}}`
	if res := s.wait(run); res.Outcome != agent.RunTimeout || string(res.Body) != want {
		t.Errorf("got %s %s, want timeout %s", res.Outcome, res.Body, want)
	}
}

func TestTemporaryRunLeavesNothingAndItsWaiterHearsIt(t *testing.T) {
	t.Parallel()
	s := newWorld(t).start("a", 1, map[string]fake.Graph{"agent": func(_ context.Context, r *fake.Run) agent.Done {
		return r.Success("", `{"y":2}`)
	}})
	run, w, err := s.WaitRun(t.Context(), engine.RunRequest{AssistantID: "agent", Stateless: true, Input: json.RawMessage(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	res, err := w.Result(t.Context())
	if err != nil || string(res.Body) != `{"y":2}` {
		t.Errorf("got %s, %v", res.Body, err)
	}
	if _, err := s.Thread(t.Context(), run.ThreadID); slipway.ErrorCode(err) != slipway.CodeNotFound {
		t.Errorf("thread: got %v, want not_found", err)
	}
}

func TestInterruptsAreAddedToTheAnswer(t *testing.T) {
	t.Parallel()
	s := newWorld(t).start("a", 1, map[string]fake.Graph{"agent": func(_ context.Context, r *fake.Run) agent.Done {
		r.Checkpoint(checkpointID(1), `{}`)
		snap := r.Snapshot(checkpointID(1), `{"a":1}`)
		snap.Next = json.RawMessage(`["n"]`)
		snap.Interrupts = json.RawMessage(`[{"id":"i","value":"?"}]`)
		snap.Tasks = json.RawMessage(`[{"id":"t","name":"n","path":[],"error":null,"interrupts":[{"id":"i","value":"?"}],"checkpoint":null,"state":null,"result":null}]`)
		return agent.Done{Status: "success", Snapshot: snap}
	}})
	thread := s.thread()
	want := `{"a":1,"__interrupt__":[{"id":"i","value":"?"}]}`
	run, w, err := s.WaitRun(t.Context(), request(thread, "agent", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	if res, err := w.Result(t.Context()); err != nil || string(res.Body) != want {
		t.Errorf("live: got %s, %v, want %s", res.Body, err, want)
	}
	if res := s.wait(run); string(res.Body) != want {
		t.Errorf("later: got %s, want %s", res.Body, want)
	}
	if th, err := s.Thread(t.Context(), thread); err != nil || th.Status != agent.ThreadInterrupted {
		t.Errorf("thread: got %s, %v, want interrupted", th.Status, err)
	}
}

func TestDrainHandsRunsToTheNextServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := newGate()
	first := w.start("first", 1, map[string]fake.Graph{"agent": g.graph}, func(c *engine.Config) { c.DrainGrace = time.Millisecond })
	run := first.create(request(first.thread(), "agent", `{}`))
	g.await(t)
	second := w.start("second", 1, map[string]fake.Graph{"agent": echo})
	_, sub, err := second.StreamRun(t.Context(), request(second.thread(), "agent", `{"own":1}`))
	if err != nil {
		t.Fatal(err)
	}
	frames(t, sub)
	ended := make(chan engine.Result, 1)
	go func() {
		res, err := second.Wait(t.Context(), run.ThreadID, run.ID)
		if err != nil {
			t.Errorf("wait at the second server: %v", err)
		}
		ended <- res
	}()
	first.stop()
	res := <-ended
	if res.Outcome != agent.RunSuccess || res.Run.Attempt != 1 || string(res.Body) != `{}` {
		t.Errorf("got %s attempt %d body %s, want success, attempt 1", res.Outcome, res.Run.Attempt, res.Body)
	}
}

func TestAnotherServersRunCanBeJoinedAndCancelled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := newGate()
	first := w.start("first", 1, map[string]fake.Graph{"agent": g.graph})
	second := w.start("second", 0, map[string]fake.Graph{"agent": g.graph})
	r := request(first.thread(), "agent", `{}`)
	r.StreamResumable = true
	run := first.create(r)
	inside := g.await(t)
	inside.Chunk("values", `1`)
	sub, err := second.JoinStream(t.Context(), run.ThreadID, run.ID, engine.From{LastEventID: "-1"})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := sub.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	inside.Chunk("values", `2`)
	if err := second.Cancel(t.Context(), run.ThreadID, run.ID, agent.CancelInterrupt, "enough", true); err != nil {
		t.Fatal(err)
	}
	want := "values 2\n" + `end {"run_id":"` + run.ID + `","status":"interrupted"}` + "\n"
	if got := tell(frames(t, sub)); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestRunsWaitForAWorkerAndDelayedRunsForTheirTime(t *testing.T) {
	t.Parallel()
	s := newWorld(t).start("a", 0, map[string]fake.Graph{"agent": echo})
	if h := s.Health(t.Context()); h.Database != "ok" || h.Workers != "starting" {
		t.Errorf("health without a worker: got %+v", h)
	}
	run := s.create(request(s.thread(), "agent", `{}`))
	delayed := request(s.thread(), "agent", `{}`)
	delayed.After = 50 * time.Millisecond
	later := s.create(delayed)
	s.pool.Add(1, map[string]fake.Graph{"agent": echo})
	if h := s.Health(t.Context()); h.Workers != "ok" {
		t.Errorf("health with a worker: got %+v", h)
	}
	for _, r := range []agent.Run{run, later} {
		if res := s.wait(r); res.Outcome != agent.RunSuccess {
			t.Errorf("got %s, want success", res.Outcome)
		}
	}
}

func TestConfigIsMergedAndForced(t *testing.T) {
	t.Parallel()
	s := newWorld(t).start("a", 1, map[string]fake.Graph{"agent": echo})
	r := request(s.thread(), "agent", `{}`)
	r.Config = json.RawMessage(`{"tags":["x"],"configurable":{"user_id":"u","run_id":"forged","__pregel_x":1},"metadata":{"a":1,"b":1}}`)
	r.Metadata = json.RawMessage(`{"b":2,"__c":3,"langgraph_plan":"x"}`)
	run := s.create(r)
	var got struct {
		Tags         []string
		Configurable map[string]any
		Metadata     map[string]any
	}
	if err := json.Unmarshal(run.Kwargs.Config, &got); err != nil {
		t.Fatal(err)
	}
	wantConfigurable := map[string]any{
		"user_id": "u", "run_id": run.ID, "thread_id": run.ThreadID, "graph_id": "agent", "assistant_id": engine.AssistantID("agent"),
	}
	if fmt.Sprint(got.Configurable) != fmt.Sprint(wantConfigurable) {
		t.Errorf("configurable: got %v, want %v", got.Configurable, wantConfigurable)
	}
	wantMetadata := map[string]any{"a": 1, "b": 2, "created_by": "system", "assistant_id": engine.AssistantID("agent")}
	if fmt.Sprint(got.Metadata) != fmt.Sprint(wantMetadata) {
		t.Errorf("metadata: got %v, want %v", got.Metadata, wantMetadata)
	}
	s.wait(run)
}

func TestDeleteThreadCancelsFirst(t *testing.T) {
	t.Parallel()
	g := newGate()
	s := newWorld(t).start("a", 1, map[string]fake.Graph{"agent": g.graph})
	run := s.create(request(s.thread(), "agent", `{}`))
	s.create(request(run.ThreadID, "agent", `{}`))
	g.await(t)
	if err := s.DeleteThread(t.Context(), run.ThreadID); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Thread(t.Context(), run.ThreadID); slipway.ErrorCode(err) != slipway.CodeNotFound {
		t.Errorf("got %v, want not_found", err)
	}
}
