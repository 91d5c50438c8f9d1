package robust_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/store/sqlite"
	"github.com/slipway-dev/slipway/worker/supervise"
)

// ends hears how runs end.
type ends chan agent.Done

func (e ends) Chunk(string, json.RawMessage) {}
func (e ends) Done(d agent.Done)             { e <- d }
func (e ends) Lost(err error) {
	e <- agent.Done{Status: "lost", Failure: &agent.Failure{Message: err.Error()}}
}
func (e ends) Failed(error) {}

// arrivals hears of workers.
type arrivals chan agent.Worker

func (a arrivals) WorkerUp(w agent.Worker)          { a <- w }
func (a arrivals) WorkerDown(agent.Worker, error)   {}
func (a arrivals) WorkerFailed(_ string, err error) { close(a) }
func (a arrivals) StoreBatch(context.Context, []agent.StoreOp) ([]agent.StoreResult, error) {
	return nil, nil
}

// An attempt that did everything but say so leaves nothing to do for the next one, which tells the thread's state all the same.
func TestARetryWithNothingLeftToDoTellsTheState(t *testing.T) {
	t.Parallel()
	for _, language := range both {
		t.Run(string(language), func(t *testing.T) {
			t.Parallel()
			store, err := sqlite.OpenAgent(filepath.Join(t.TempDir(), "agent.db"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = store.Close() })
			p := supervise.New(supervise.Config{Programs: []supervise.Program{program(t, language)}}, store, time.Now, slog.New(slog.DiscardHandler), func(supervise.Line) {})
			t.Cleanup(p.Stop)
			up := make(arrivals, 1)
			if err := p.Start(up); err != nil {
				t.Fatal(err)
			}
			worker, ok := <-up
			if !ok {
				t.Fatal("the worker did not start")
			}
			r := agent.Run{ID: "run", ThreadID: "thread", GraphID: "echo", CreatedAt: time.Now()}
			r.Kwargs.Input, r.Kwargs.Config = json.RawMessage(`{"x":7}`), json.RawMessage(`{"configurable":{"thread_id":"thread","run_id":"run","graph_id":"echo"}}`)
			admitted, err := store.Admit(t.Context(), agent.Admission{Run: r, CreateThread: true, ClaimFor: "me", Now: time.Now()})
			if err != nil {
				t.Fatal(err)
			}
			for _, resume := range []bool{false, true} {
				heard := make(ends, 1)
				worker.Run(agent.Job{Run: admitted.Run, Resume: resume}, heard)
				if d := <-heard; d.Status != "success" || d.Snapshot == nil || !strings.Contains(string(d.Snapshot.Values), "7") {
					t.Errorf("with resume %v: got %+v", resume, d)
				}
			}
		})
	}
}
