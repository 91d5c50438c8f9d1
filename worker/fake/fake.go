// Package fake is a scripted agent.Workers: graphs are Go functions that run in the test's process and write to the real
// Store with the fence of their run, as a real worker's link does.
package fake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

// Graph is a scripted graph. It returns how the run ended; ctx ends when the run is cancelled or its worker killed.
type Graph func(ctx context.Context, r *Run) agent.Done

// Pool is a pool of scripted workers. Workers come with Add and go with Kill.
type Pool struct {
	Store agent.Store
	// Answer answers calls; nil refuses them.
	Answer func(ctx context.Context, envelope json.RawMessage) (json.RawMessage, error)
	// AnswerCall, where set, answers in place of Answer and sees what goes with the call.
	AnswerCall func(ctx context.Context, envelope json.RawMessage, payload []byte) (json.RawMessage, error)
	// App answers requests for the application's HTTP app, each on a goroutine; nil knows no path. It is reached once
	// Parts has an app.
	App func(x agent.Exchange)
	// Parts are what workers added from now on say of their parts.
	Parts map[agent.PartName]*agent.PartInfo
	// Compiled are the graphs that workers added from now on call compiled.
	Compiled map[string]bool
	// OnStart is called by Start, usually to Add the first workers.
	OnStart func(p *Pool)

	mu      sync.Mutex
	handler agent.WorkerHandler
	serial  int
	workers map[string]*Worker
}

var _ agent.Workers = (*Pool)(nil)

// Start remembers the handler.
func (p *Pool) Start(h agent.WorkerHandler) error {
	p.mu.Lock()
	p.handler = h
	p.workers = map[string]*Worker{}
	p.mu.Unlock()
	if p.OnStart != nil {
		p.OnStart(p)
	}
	return nil
}

// Stop kills every worker and waits until its runs have been told.
func (p *Pool) Stop() {
	for _, w := range p.Workers() {
		w.Kill("the pool stops")
	}
}

// Workers returns the live workers.
func (p *Pool) Workers() []*Worker {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []*Worker
	for _, w := range p.workers {
		all = append(all, w)
	}
	return all
}

// Add brings a worker with these graphs up.
func (p *Pool) Add(slots int, graphs map[string]Graph) *Worker {
	p.mu.Lock()
	p.serial++
	info := agent.WorkerInfo{
		ID: fmt.Sprintf("fake-%d", p.serial), Language: string(slipway.Node), Slots: slots, Graphs: map[string]*agent.Failure{},
		Parts: maps.Clone(p.Parts), Compiled: maps.Clone(p.Compiled),
	}
	for id := range graphs {
		info.Graphs[id] = nil
	}
	w := &Worker{pool: p, info: info, graphs: graphs, runs: map[string]*Run{}, streams: map[uint32]string{}}
	w.web = newWeb(w)
	p.workers[info.ID] = w
	p.mu.Unlock()
	p.handler.WorkerUp(w)
	return w
}

// Worker is one scripted worker.
type Worker struct {
	pool   *Pool
	info   agent.WorkerInfo
	graphs map[string]Graph
	web    *web

	mu      sync.Mutex
	gone    error
	runs    map[string]*Run
	streams map[uint32]string // run ids by the number they have on a link
}

// Info describes the worker.
func (w *Worker) Info() agent.WorkerInfo { return w.info }

// Run runs the graph's function on a goroutine.
func (w *Worker) Run(job agent.Job, sink agent.RunSink) {
	ctx, cancel := context.WithCancelCause(context.Background())
	r := &Run{Job: job, worker: w, sink: sink, cancel: cancel}
	w.mu.Lock()
	gone := w.gone
	if gone == nil {
		w.runs[job.Run.ID] = r
		w.streams[uint32(len(w.streams)+1)] = job.Run.ID
	}
	w.mu.Unlock()
	if gone != nil {
		cancel(gone)
		sink.Lost(gone)
		return
	}
	go func() {
		d := w.graphs[job.Run.GraphID](ctx, r)
		if w.remove(r) {
			r.end(func() { sink.Done(d) })
		}
		cancel(nil)
	}()
}

func (w *Worker) remove(r *Run) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	mine := w.runs[r.Job.Run.ID] == r
	if mine {
		delete(w.runs, r.Job.Run.ID)
	}
	return mine
}

// Cancel ends the context of the run's function.
func (w *Worker) Cancel(runID, action, reason string) {
	w.mu.Lock()
	r := w.runs[runID]
	w.mu.Unlock()
	if r != nil {
		r.cancel(errors.New(action + ": " + reason))
	}
}

// Call asks the pool's AnswerCall or Answer.
func (w *Worker) Call(ctx context.Context, envelope json.RawMessage, payload []byte) (json.RawMessage, error) {
	if w.pool.AnswerCall != nil {
		return w.pool.AnswerCall(ctx, envelope, payload)
	}
	if w.pool.Answer == nil {
		return nil, slipway.Errorf(slipway.CodeInvalid, "nobody answers")
	}
	return w.pool.Answer(ctx, envelope)
}

// Kill makes the worker go: its runs are lost, whatever their functions still do.
func (w *Worker) Kill(reason string) {
	w.mu.Lock()
	if w.gone != nil {
		w.mu.Unlock()
		return
	}
	w.gone = errors.New(reason)
	lost := w.runs
	w.runs = map[string]*Run{}
	w.mu.Unlock()
	w.web.close()
	for _, r := range lost {
		r.cancel(w.gone)
		r.end(func() { r.sink.Lost(w.gone) })
	}
	w.pool.mu.Lock()
	delete(w.pool.workers, w.info.ID)
	w.pool.mu.Unlock()
	w.pool.handler.WorkerDown(w, w.gone)
}

// Run is a run as its scripted graph sees it.
type Run struct {
	Job    agent.Job
	worker *Worker
	sink   agent.RunSink
	cancel context.CancelCauseFunc

	mu   sync.Mutex
	over bool
}

// Chunk sends a frame of the run's stream.
func (r *Run) Chunk(event, data string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over {
		r.sink.Chunk(event, json.RawMessage(data))
	}
}

func (r *Run) end(last func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	last()
}

// Checkpoint stores a checkpoint of the run as a TELL does: in order, a refusal goes to the sink.
func (r *Run) Checkpoint(id string, values string) {
	run := r.Job.Run
	cp := agent.Checkpoint{
		CheckpointKey: agent.CheckpointKey{ThreadID: run.ThreadID, ID: id}, RunID: run.ID, Language: string(slipway.Node),
		Header:   json.RawMessage(`{"v":4,"id":"` + id + `","channel_versions":{"values":"` + id + `"}}`),
		Metadata: json.RawMessage(`{"source":"loop","run_id":"` + run.ID + `"}`),
	}
	blob := agent.ChannelBlob{Channel: "values", Version: `"` + id + `"`, Typed: agent.Typed{Type: "json", Bytes: []byte(values)}}
	commit := r.worker.pool.Store.PutCheckpoint(context.Background(), agent.Fence{RunID: run.ID, Epoch: run.Epoch}, cp, []agent.ChannelBlob{blob})
	go func() {
		if err := commit.Wait(context.Background()); err != nil {
			r.sink.Failed(err)
		}
	}()
}

// Success is the end of a run with these values, {next} being empty.
func (r *Run) Success(checkpointID, values string) agent.Done {
	return agent.Done{Status: "success", Snapshot: r.Snapshot(checkpointID, values)}
}

// Snapshot is a thread state with these values.
func (r *Run) Snapshot(checkpointID, values string) *agent.Snapshot {
	checkpoint := `{"thread_id":"` + r.Job.Run.ThreadID + `","checkpoint_ns":"","checkpoint_id":"` + checkpointID + `","checkpoint_map":null}`
	return &agent.Snapshot{
		Values: json.RawMessage(values), Next: json.RawMessage(`[]`), Tasks: json.RawMessage(`[]`),
		Interrupts: json.RawMessage(`[]`), Metadata: json.RawMessage(`{}`), Checkpoint: json.RawMessage(checkpoint),
		ParentCheckpoint: json.RawMessage(`null`), CreatedAt: json.RawMessage(`"2026-01-01T00:00:00.000000+00:00"`),
	}
}

// Cancelled is the end of a run that was told to stop.
func Cancelled() agent.Done { return agent.Done{Status: "cancelled"} }

// Failed is the end of a run whose code threw.
func Failed(kind, message string) agent.Done {
	return agent.Done{Status: "error", Failure: &agent.Failure{Error: kind, Message: message}}
}
