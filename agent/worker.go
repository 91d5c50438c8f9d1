package agent

import (
	"context"
	"encoding/json"
)

// Workers is the pool of graph workers of one agent server. Implementations pass worker/workertest.
type Workers interface {
	// Start begins to bring the workers up and returns at once. Everything that happens is told to h until Stop returns;
	// a worker that goes is replaced. It is called once.
	Start(h WorkerHandler) error
	// Stop ends every worker with all its processes and returns when none is left. Runs that have not ended are lost
	// (RunSink.Lost). It is idempotent.
	Stop()
}

// WorkerHandler hears of workers. Its methods but StoreBatch must return soon, and all may be called concurrently.
type WorkerHandler interface {
	// WorkerUp tells that a worker has loaded its graphs and takes runs.
	WorkerUp(w Worker)
	// WorkerDown tells that a worker that was up is gone; all its runs have been told Lost before.
	WorkerDown(w Worker, err error)
	// StoreBatch answers a worker's operations on the key-value store, of the library's BaseStore.
	StoreBatch(ctx context.Context, ops []StoreOp) ([]StoreResult, error)
	// WorkerFailed tells that a worker of the language ("python", "node") could not be brought up; it is tried again.
	WorkerFailed(language string, err error)
}

// WorkerInfo is what a worker told of itself.
type WorkerInfo struct {
	ID       string // unique within the pool, also over restarts
	Language string // "python" or "node"
	PID      int
	Slots    int               // how many runs it takes at once
	Versions map[string]string // package -> version; unknown ones are missing
	// Graphs holds every graph it was asked to load; nil = loaded, else why it cannot be.
	Graphs map[string]*Failure
	// Compiled are the graphs that are the same for every assistant; all others are made per operation by a factory, or the
	// worker does not tell.
	Compiled map[string]bool
	// Parts holds every part it was asked to load.
	Parts map[PartName]*PartInfo
}

// Worker is one live worker. Methods may be called concurrently and do nothing once it is gone.
type Worker interface {
	Info() WorkerInfo
	// Run starts a run and returns without waiting for it. Exactly one of sink's Done and Lost follows, as its last call;
	// it may come before Run returns. The caller minds the slots.
	Run(job Job, sink RunSink)
	// Cancel asks a run of this worker to stop; it still ends with Done. A run that has ended is ignored.
	Cancel(runID string, action, reason string)
	// Call asks a question (worker/wire/DESIGN.md, Calls). envelope is the call's JSON object with its verb, payload bytes
	// that go with it. Refusals by the graph are CodeInvalid, missing things CodeNotFound, a lost worker is
	// CodeUnavailable, an answer that user code has chosen for the client is an *HTTPRefusal.
	Call(ctx context.Context, envelope json.RawMessage, payload []byte) (json.RawMessage, error)
	// Exchange begins a request for the application's HTTP app, which the worker has loaded (PartApp). CodeUnavailable when
	// it has too many at once.
	Exchange(r HTTPRequest) (Exchange, error)
	// Kill ends the worker's processes at once; its runs are Lost.
	Kill(reason string)
}

// CancelFenced is the action told to a worker whose run is no longer its own; nothing it writes counts any more.
const CancelFenced = "fenced"

// Job is a claimed run handed to a worker. Run.Kwargs.Config is complete (reference 4.2).
type Job struct {
	Run Run
	// Resume: go on from the thread's last checkpoint instead of input and command (reference 17.4).
	Resume bool
	// Fresh: the thread had no checkpoint when the run was admitted, so that reading one before the run has written its
	// own finds nothing and need not be asked for.
	Fresh bool
}

// RunSink hears of one run, one call at a time and in the order of the worker's words.
type RunSink interface {
	// Chunk is one frame of the run's stream. data is the callee's to keep. Until it returns the worker gets no credit
	// for further frames.
	Chunk(event string, data json.RawMessage)
	// Done is the worker's word on how the run ended; everything the run wrote has been handed to the Store before.
	Done(d Done)
	// Lost tells that the worker went, or never had the run.
	Lost(err error)
	// Failed tells that a write of the run could not be applied (CodeStale: the claim is over). It may be called
	// concurrently with the others and does not end the run.
	Failed(err error)
}

// Done is how a run ended in its worker.
type Done struct {
	Status    string // "success", "error" or "cancelled"
	Failure   *Failure
	Retriable bool      // a failure of storage or link, never of user code
	Snapshot  *Snapshot // nil = the run left no checkpoint
}
