// Package workertest is the conformance suite of agent.Workers. A pool under test serves these graphs, each with a state
// of plain JSON objects:
//
//	echo   streams its input as one `values` frame and ends with it as its values
//	fail   throws an error with the message "no"
//	hang   runs until it is cancelled
package workertest

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/agent"
)

// deadline is only there to end a test that hangs; a real worker may take long to load its packages.
const deadline = 2 * time.Minute

// Run checks an implementation. open returns a pool that has not been started, with one worker of at least four slots;
// it is stopped by the suite.
func Run(t *testing.T, open func(t *testing.T) agent.Workers) {
	cases := map[string]func(*testing.T, *ear, agent.Workers, agent.Worker){
		"a run streams and ends with its snapshot": streamsAndEnds,
		"a failing graph ends its run only":        failsAlone,
		"a cancelled run stops":                    cancelStops,
		"a killed worker loses its runs":           killLoses,
		"stop loses what runs":                     stopLoses,
	}
	for name, check := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, h := open(t), &ear{up: make(chan agent.Worker, 100), down: make(chan error, 100)}
			if err := pool.Start(h); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(pool.Stop)
			w := receive(t, h.up, "worker")
			if info := w.Info(); info.ID == "" || info.Slots < 4 || info.Graphs["echo"] != nil {
				t.Fatalf("worker: got %+v", info)
			}
			check(t, h, pool, w)
		})
	}
}

func streamsAndEnds(t *testing.T, _ *ear, _ agent.Workers, w agent.Worker) {
	s := start(w, "echo", `{"x":1}`)
	d := receive(t, s.done, "end")
	if d.Status != "success" || d.Snapshot == nil || !strings.Contains(compact(d.Snapshot.Values), `"x":1`) {
		t.Errorf("end: got %+v", d)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.frames) == 0 || !strings.HasPrefix(s.frames[len(s.frames)-1], "values ") || s.afterEnd {
		t.Errorf("frames: got %q, after the end: %v", s.frames, s.afterEnd)
	}
}

func failsAlone(t *testing.T, _ *ear, _ agent.Workers, w agent.Worker) {
	hanging := start(w, "hang", `{}`)
	d := receive(t, start(w, "fail", `{}`).done, "end")
	if d.Status != "error" || d.Retriable || d.Failure == nil || d.Failure.Message != "no" {
		t.Errorf("end: got %+v", d)
	}
	w.Cancel(hanging.id, string(agent.CancelInterrupt), "enough")
	if d := receive(t, hanging.done, "end of the other run"); d.Status != "cancelled" {
		t.Errorf("other run: got %+v", d)
	}
}

func cancelStops(t *testing.T, _ *ear, _ agent.Workers, w agent.Worker) {
	s := start(w, "hang", `{}`)
	w.Cancel(s.id, string(agent.CancelInterrupt), "enough")
	if d := receive(t, s.done, "end"); d.Status != "cancelled" {
		t.Errorf("got %+v, want cancelled", d)
	}
	w.Cancel(s.id, string(agent.CancelInterrupt), "again") // ignored
}

func killLoses(t *testing.T, h *ear, _ agent.Workers, w agent.Worker) {
	s := start(w, "hang", `{}`)
	w.Kill("test")
	_ = receive(t, s.lost, "loss")
	_ = receive(t, h.down, "farewell")
	_ = receive(t, start(w, "echo", `{}`).lost, "loss of a run given to a dead worker")
}

func stopLoses(t *testing.T, _ *ear, pool agent.Workers, w agent.Worker) {
	s := start(w, "hang", `{}`)
	pool.Stop()
	_ = receive(t, s.lost, "loss")
	pool.Stop()
}

func start(w agent.Worker, graph, input string) *sink {
	s := &sink{id: "run-" + graph, done: make(chan agent.Done, 1), lost: make(chan error, 1)}
	run := agent.Run{ID: s.id, ThreadID: "thread-" + graph, GraphID: graph, Attempt: 1, Epoch: 1, Temporary: true}
	run.Kwargs = agent.Kwargs{
		Input: json.RawMessage(input), StreamMode: []string{"values"}, Temporary: true,
		Config: json.RawMessage(`{"configurable":{"thread_id":"thread-` + graph + `"},"metadata":{}}`),
	}
	w.Run(agent.Job{Run: run}, s)
	return s
}

func compact(raw json.RawMessage) string { return strings.ReplaceAll(string(raw), " ", "") }

// ear hears of workers.
type ear struct {
	up   chan agent.Worker
	down chan error
}

// WorkerUp notes the worker.
func (e *ear) WorkerUp(w agent.Worker) { e.up <- w }

// WorkerDown notes why the worker went.
func (e *ear) WorkerDown(_ agent.Worker, err error) { e.down <- err }

// StoreBatch is not asked for: the graphs store nothing.
func (e *ear) StoreBatch(context.Context, []agent.StoreOp) ([]agent.StoreResult, error) {
	return nil, nil
}

// WorkerFailed is seen by the worker that never comes up.
func (e *ear) WorkerFailed(string, error) {}

// sink records what becomes of a run.
type sink struct {
	id   string
	done chan agent.Done
	lost chan error

	mu       sync.Mutex
	frames   []string
	over     bool
	afterEnd bool
}

// Chunk notes a frame.
func (s *sink) Chunk(event string, data json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frames = append(s.frames, event+" "+string(data))
	s.afterEnd = s.afterEnd || s.over
}

// Done notes the end; a second end blocks the pool, which the suite sees as a hang.
func (s *sink) Done(d agent.Done) {
	s.end()
	s.done <- d
}

// Lost notes the loss.
func (s *sink) Lost(err error) {
	s.end()
	s.lost <- err
}

// Failed is not expected of runs that store nothing.
func (s *sink) Failed(error) {}

func (s *sink) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
}

func receive[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	select {
	case v := <-c:
		return v
	case <-ctx.Done():
		t.Fatalf("no %s", what)
		panic("unreachable")
	}
}
