package supervise_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/keeper"
	"github.com/slipway-dev/slipway/worker/supervise"
	"github.com/slipway-dev/slipway/worker/wire"
)

const role = "SLIPWAY_TEST_ROLE"

// The test binary plays the worker and the server that is killed, so that real processes are supervised.
func TestMain(m *testing.M) {
	if keeper.Is(os.Args) {
		os.Exit(keeper.Run())
	}
	switch os.Getenv(role) {
	case "worker":
		work()
		return
	case "server":
		serve()
		return
	}
	os.Exit(m.Run())
}

// work is a worker whose graph does what its input says.
func work() {
	link := os.NewFile(3, "link")
	send := func(kind wire.Kind, stream uint32, envelope, payload string) {
		b, err := wire.Frame{Kind: kind, Stream: stream, Envelope: json.RawMessage(envelope), Payload: []byte(payload)}.Append(nil)
		if err == nil {
			_, err = link.Write(b)
		}
		if err != nil {
			os.Exit(3)
		}
	}
	send(wire.Hello, 0, fmt.Sprintf(`{"protocol":1,"language":"node","pid":%d,"versions":{"node":"20","langgraph":null}}`, os.Getpid()), "")
	in := bufio.NewReader(link)
	var asked uint32
	for {
		f, err := wire.Read(in)
		if err != nil {
			os.Exit(0)
		}
		switch f.Kind {
		case wire.Load:
			send(wire.Loaded, 0, `{"graphs":{"agent":{"ok":true},"bad":{"ok":false,"error":{"error":"ImportError","message":"no module","trace":""}}},`+toldParts+`}`, "")
		case wire.Call:
			send(wire.Return, f.Stream, answerTo(f), string(f.Envelope)+string(f.Payload))
		case wire.Cancel:
			send(wire.Done, f.Stream, `{"status":"cancelled"}`, "")
		case wire.Answer: // only "ask" asks
			send(wire.Done, asked, `{"status":"success"}`, `{"values":`+string(f.Envelope)+`}`)
		case wire.Run:
			var m wire.RunMessage
			_ = json.Unmarshal(f.Envelope, &m)
			asked = f.Stream
			act(string(m.Input), f.Stream, send)
		}
	}
}

// stray starts a process that has left group and session, has an empty environment and has lost its parent.
func stray() string {
	pid, err := exec.Command("sh", "-c", "env -i setsid sh -c 'echo $$; exec sleep 600 >/dev/null 2>&1' &").Output()
	if len(pid) == 0 {
		fmt.Fprintln(os.Stderr, "no stray:", err)
		os.Exit(4)
	}
	return strings.TrimSpace(string(pid))
}

func act(input string, stream uint32, send func(wire.Kind, uint32, string, string)) {
	var asks struct{ Ask json.RawMessage }
	if json.Unmarshal([]byte(input), &asks) == nil && asks.Ask != nil {
		send(wire.Ask, stream, string(asks.Ask), "")
		return
	}
	switch input {
	case `"crash"`:
		fmt.Fprintln(os.Stderr, "last words")
		os.Exit(7)
	case `"print"`:
		fmt.Println("hello from user code")
	case `"hang"`:
		return
	case `"ask"`, `"tell"`: // a client's checkpoint id that is no string
		kind := map[string]wire.Kind{`"ask"`: wire.Ask, `"tell"`: wire.Tell}[input]
		send(kind, stream, fmt.Sprintf(`{"op":"checkpoint.put","run":%d,"thread_id":"t","checkpoint_id":5}`, stream), "")
		return
	case `"exit"`:
		os.Exit(0)
	case `"flood"`:
		line := strings.Repeat("x", 1023) + "\n"
		for range 50 << 10 {
			_, _ = os.Stdout.WriteString(line)
		}
	case `"garbage"`:
		_, _ = os.NewFile(3, "link").Write([]byte("\x00\x00\x00\x0fthis is no frame"))
		select {}
	case `"huge"`:
		header := binary.BigEndian.AppendUint32(nil, 65<<20)
		_, _ = os.NewFile(3, "link").Write(append(header, make([]byte, 1<<20)...))
		select {}
	case `"heir"`: // leaves its link to a child
		cmd := exec.Command("sleep", "600")
		cmd.ExtraFiles = []*os.File{os.NewFile(3, "link")}
		if err := cmd.Start(); err != nil {
			os.Exit(4)
		}
		os.Exit(7)
	case `"child"`:
		cmd := exec.Command("sleep", "600")
		if err := cmd.Start(); err != nil {
			os.Exit(4)
		}
		send(wire.Chunk, stream, `{"event":"child"}`, strconv.Itoa(cmd.Process.Pid))
		return
	case `"stray"`:
		send(wire.Chunk, stream, `{"event":"child"}`, stray())
		return
	}
	for i := range 3 {
		send(wire.Chunk, stream, `{"event":"values"}`, strconv.Itoa(i))
	}
	send(wire.Done, stream, `{"status":"success"}`, `{"values":{"a":1},"next":[]}`)
}

// serve is a server that supervises a worker, prints its pid and that of a stray, and waits to be killed.
func serve() {
	h := newHandler()
	pool := newPool(h)
	if err := pool.Start(h); err != nil {
		os.Exit(5)
	}
	w, s := <-h.up, newSink()
	w.Run(job("stray"), s)
	fmt.Println(w.Info().PID, <-s.chunk)
	select {}
}

func newPool(h *handler) *supervise.Pool { return newPoolOver(h, nil) }

func newPoolOver(h *handler, store agent.Store) *supervise.Pool {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return supervise.New(supervise.Config{MinPause: time.Millisecond, Keep: keeper.Self, Programs: []supervise.Program{{
		Language: slipway.Node, Argv: []string{self}, Env: []string{role + "=worker", "PATH=" + os.Getenv("PATH")}, Slots: 4,
		Graphs: map[string]string{"agent": "./a.mjs:graph", "bad": "./b.mjs:graph"},
		Parts: agent.Parts{
			Auth: &agent.CodePart{Path: "./auth.mjs:auth"}, App: &agent.AppPart{Path: "./app.py:app"}, Embed: &agent.EmbedPart{Spec: "a:b"},
		},
	}}}, store, time.Now, slog.New(slog.DiscardHandler), h.line)
}

// handler records what the pool tells.
type handler struct {
	up     chan agent.Worker
	down   chan error
	failed chan error
	lines  chan supervise.Line
}

func newHandler() *handler {
	return &handler{
		up: make(chan agent.Worker, 100), down: make(chan error, 100), failed: make(chan error, 1000),
		lines: make(chan supervise.Line, 1000),
	}
}

func (h *handler) WorkerUp(w agent.Worker)              { h.up <- w }
func (h *handler) WorkerDown(_ agent.Worker, err error) { h.down <- err }
func (h *handler) StoreBatch(context.Context, []agent.StoreOp) ([]agent.StoreResult, error) {
	return nil, nil
}
func (h *handler) WorkerFailed(_ string, err error) { h.failed <- err }
func (h *handler) line(l supervise.Line)            { h.lines <- l }

// sink records what becomes of a run.
type sink struct {
	mu     sync.Mutex
	chunks []string
	chunk  chan string
	done   chan agent.Done
	failed chan error
	lost   chan error
}

func newSink() *sink {
	return &sink{chunk: make(chan string, 100), failed: make(chan error, 10), done: make(chan agent.Done, 1), lost: make(chan error, 1)}
}

func (s *sink) Chunk(event string, data json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chunks = append(s.chunks, event+" "+string(data))
	s.chunk <- string(data)
}
func (s *sink) Done(d agent.Done) { s.done <- d }
func (s *sink) Lost(err error)    { s.lost <- err }
func (s *sink) Failed(err error)  { s.failed <- err }

func job(input string) agent.Job {
	return agent.Job{Run: agent.Run{ID: input, GraphID: "agent", Kwargs: agent.Kwargs{Input: json.RawMessage(strconv.Quote(input)), Config: json.RawMessage(`{}`)}}}
}

func receive[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(time.Minute):
		t.Fatalf("no %s", what)
		panic("unreachable")
	}
}

func start(t *testing.T) (*handler, *supervise.Pool, agent.Worker) {
	t.Helper()
	return startOver(t, nil)
}

func startOver(t *testing.T, store agent.Store) (*handler, *supervise.Pool, agent.Worker) {
	t.Helper()
	h := newHandler()
	pool := newPoolOver(h, store)
	if err := pool.Start(h); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Stop)
	return h, pool, receive(t, h.up, "worker")
}

func TestAWorkerLoadsRunsAndAnswers(t *testing.T) {
	t.Parallel()
	h, _, w := start(t)
	info := w.Info()
	if info.Graphs["agent"] != nil || info.Graphs["bad"] == nil || info.Graphs["bad"].Message != "no module" || info.Slots != 4 {
		t.Errorf("got %+v", info)
	}
	s := newSink()
	w.Run(job("print"), s)
	d := receive(t, s.done, "end")
	if got, want := strings.Join(s.chunks, ","), "values 0,values 1,values 2"; got != want {
		t.Errorf("chunks: got %s, want %s", got, want)
	}
	if d.Status != "success" || d.Snapshot == nil || string(d.Snapshot.Values) != `{"a":1}` {
		t.Errorf("got %+v", d)
	}
	if l := receive(t, h.lines, "line"); l.Logger == "stdout" && l.Text != "hello from user code" {
		t.Errorf("got line %+v", l)
	}
	got, err := w.Call(t.Context(), json.RawMessage(`{"verb":"state.get"}`), nil)
	if err != nil || string(got) != `{"verb":"state.get"}` {
		t.Errorf("call: got %s, %v", got, err)
	}
	hang := newSink()
	w.Run(job("hang"), hang)
	w.Cancel("hang", "interrupt", "enough")
	if d := receive(t, hang.done, "end"); d.Status != "cancelled" {
		t.Errorf("cancelled run: got %+v", d)
	}
}

func TestACrashedWorkerLosesItsRunsAndIsReplaced(t *testing.T) {
	t.Parallel()
	h, _, w := start(t)
	hanging, crashing := newSink(), newSink()
	w.Run(job("hang"), hanging)
	w.Run(job("crash"), crashing)
	for _, s := range []*sink{hanging, crashing} {
		if err := receive(t, s.lost, "loss"); !strings.Contains(err.Error(), "exit status 7") {
			t.Errorf("got %v, want the exit status", err)
		}
	}
	receive(t, h.down, "farewell")
	next := receive(t, h.up, "replacement")
	s := newSink()
	next.Run(job("ok"), s)
	if d := receive(t, s.done, "end"); d.Status != "success" {
		t.Errorf("got %+v", d)
	}
	late := newSink()
	w.Run(job("late"), late)
	receive(t, late.lost, "loss of a run given to a dead worker")
	if _, err := w.Call(context.Background(), json.RawMessage(`{}`), nil); slipway.ErrorCode(err) != slipway.CodeUnavailable {
		t.Errorf("call of a dead worker: got %v, want unavailable", err)
	}
}

func TestAWorkersDeathIsSeenAlthoughItsChildHoldsTheLink(t *testing.T) {
	t.Parallel()
	h, _, w := start(t)
	s := newSink()
	w.Run(job("heir"), s)
	if err := receive(t, s.lost, "loss"); !strings.Contains(err.Error(), "exit status 7") {
		t.Errorf("got %v, want the exit status", err)
	}
	receive(t, h.up, "replacement")
}

func TestStopEndsWhatAWorkerStarted(t *testing.T) {
	t.Parallel()
	for _, input := range []string{"child", "stray"} {
		t.Run(input, func(t *testing.T) {
			t.Parallel()
			_, pool, w := start(t)
			s := newSink()
			w.Run(job(input), s)
			child, err := strconv.Atoi(receive(t, s.chunk, "child's pid"))
			if err != nil {
				t.Fatal(err)
			}
			pool.Stop()
			receive(t, s.lost, "loss")
			for _, pid := range []int{child, w.Info().PID} {
				if syscall.Kill(pid, 0) == nil {
					t.Errorf("process %d is still there", pid)
				}
			}
		})
	}
}

func TestAWorkersEndEndsItsStraysAlone(t *testing.T) {
	t.Parallel()
	h, _, w := start(t)
	s, crash := newSink(), newSink()
	w.Run(job("stray"), s)
	child, err := strconv.Atoi(receive(t, s.chunk, "child's pid"))
	if err != nil {
		t.Fatal(err)
	}
	w.Run(job("crash"), crash)
	receive(t, crash.lost, "loss")
	next := receive(t, h.up, "replacement")
	if syscall.Kill(child, 0) == nil {
		t.Errorf("process %d is still there", child)
	}
	if syscall.Kill(next.Info().PID, 0) != nil {
		t.Error("the replacement was killed too")
	}
}

func TestAKilledServerLeavesNothing(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	server := exec.Command(self)
	server.Env = append(os.Environ(), role+"=server")
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	var worker, child int
	if _, err := fmt.Fscan(out, &worker, &child); err != nil {
		t.Fatal(err)
	}
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = server.Wait()
	awaitDeath(t, worker)
	awaitDeath(t, child)
}

func TestAProgramThatCannotStartIsToldWithItsReason(t *testing.T) {
	t.Parallel()
	h := newHandler()
	pool := supervise.New(supervise.Config{MinPause: time.Millisecond, Keep: keeper.Self, Programs: []supervise.Program{
		{Language: slipway.Node, Argv: []string{"sh", "-c", "echo no such module >&2; exit 1"}},
	}}, nil, time.Now, slog.New(slog.DiscardHandler), h.line)
	if err := pool.Start(h); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Stop)
	err := receive(t, h.failed, "failure")
	for _, want := range []string{"exit status 1", "no such module"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %q, want %q in it", err, want)
		}
	}
}

// awaitDeath waits until a process is gone or only its exit code is left.
func awaitDeath(t *testing.T, pid int) {
	t.Helper()
	end := time.Now().Add(time.Minute)
	for time.Now().Before(end) {
		if syscall.Kill(pid, 0) != nil {
			return
		}
		if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err != nil || strings.Contains(string(b), ") Z ") {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("process %d is still alive", pid)
}
