package engine

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

// Config holds the settings of an engine.
type Config struct {
	Instance    string // unique per server process
	RevisionID  string
	Version     string        // of slipway
	MaxAttempts int           // BG_JOB_MAX_RETRIES (3)
	RunTimeout  time.Duration // BG_JOB_TIMEOUT_SECS (24 h)
	DrainGrace  time.Duration // BG_JOB_SHUTDOWN_GRACE_PERIOD_SECS (180 s)
	CancelGrace time.Duration // how long a cancelled run may take to stop before its worker is killed (30 s)
	StreamTTL   time.Duration // RESUMABLE_STREAM_TTL_SECONDS (120 s)
	Graphs      map[string]Graph
}

// Graph is a graph of the deployment.
type Graph struct {
	Language    slipway.Language
	Description string
}

var errTODO = errors.New("not there yet")

// Engine is the heart of one agent server process.
type Engine struct{}

// New makes an engine; Start brings it to life.
func New(cfg Config, store agent.Store, bus agent.Bus, workers agent.Workers, clock slipway.Clock, ids slipway.IDs, log *slog.Logger) *Engine {
	return &Engine{}
}

// Start syncs system assistants, gives runs of dead instances back to the queue and starts workers and loops. The first
// request may be served when it has returned.
func (e *Engine) Start(ctx context.Context) error { return errTODO }

// Drain claims nothing more, lets running runs finish within the grace period, hands the rest back, ends subscriptions.
func (e *Engine) Drain(ctx context.Context) error { return errTODO }

// Health looks at database and workers.
func (e *Engine) Health(ctx context.Context) Health { return Health{} }

// Info describes the server.
func (e *Engine) Info() Info { return Info{} }

// Assistant returns an assistant by uuid or graph id.
func (e *Engine) Assistant(ctx context.Context, id string) (agent.Assistant, error) {
	return agent.Assistant{}, errTODO
}

// Assistants lists assistants.
func (e *Engine) Assistants(ctx context.Context, q agent.AssistantQuery) ([]agent.Assistant, error) {
	return nil, errTODO
}

// CountAssistants counts assistants.
func (e *Engine) CountAssistants(ctx context.Context, q agent.AssistantQuery) (int, error) { return 0, errTODO }

// CreateThread makes a thread; an empty ID gets a new one.
func (e *Engine) CreateThread(ctx context.Context, t agent.Thread, reuse bool) (agent.Thread, error) {
	return t, errTODO
}

// Thread returns a thread.
func (e *Engine) Thread(ctx context.Context, id string) (agent.Thread, error) { return agent.Thread{}, errTODO }

// Threads lists threads.
func (e *Engine) Threads(ctx context.Context, q agent.ThreadQuery) ([]agent.Thread, error) {
	return nil, errTODO
}

// CountThreads counts threads.
func (e *Engine) CountThreads(ctx context.Context, q agent.ThreadQuery) (int, error) { return 0, errTODO }

// PatchThread merges metadata.
func (e *Engine) PatchThread(ctx context.Context, id string, metadata json.RawMessage) (agent.Thread, error) {
	return agent.Thread{}, errTODO
}

// DeleteThread cancels what is in flight, then removes the thread.
func (e *Engine) DeleteThread(ctx context.Context, id string) error { return errTODO }

// CopyThread copies a thread to a new id.
func (e *Engine) CopyThread(ctx context.Context, id string) (agent.Thread, error) {
	return agent.Thread{}, errTODO
}

// State returns a ThreadState (reference 3).
func (e *Engine) State(ctx context.Context, q StateRequest) (json.RawMessage, error) { return nil, errTODO }

// History returns an array of ThreadState, newest first.
func (e *Engine) History(ctx context.Context, q HistoryRequest) (json.RawMessage, error) {
	return nil, errTODO
}

// UpdateState changes a thread's state; the result is {checkpoint, configurable, checkpoint_id}.
func (e *Engine) UpdateState(ctx context.Context, u StateUpdate) (json.RawMessage, error) {
	return nil, errTODO
}

// CreateRun admits a background run; it is durable when this returns.
func (e *Engine) CreateRun(ctx context.Context, r RunRequest) (agent.Run, error) { return agent.Run{}, errTODO }

// StreamRun admits a run with a subscription from its first frame on.
func (e *Engine) StreamRun(ctx context.Context, r RunRequest) (agent.Run, *Subscription, error) {
	return agent.Run{}, nil, errTODO
}

// WaitRun admits a run and returns a waiter that cannot miss its end, also if the run's row goes with it (temporary runs).
// It is what POST .../runs/wait uses; Wait is for runs that exist already.
func (e *Engine) WaitRun(ctx context.Context, r RunRequest) (agent.Run, *Waiter, error) {
	return agent.Run{}, nil, errTODO
}

// JoinStream subscribes to a run. lastEventID "" = live only; "-1" or "-" = from the start; else exclusive. With threadID ""
// the run is looked up on whichever thread.
func (e *Engine) JoinStream(ctx context.Context, threadID, runID, lastEventID string) (*Subscription, error) {
	return nil, errTODO
}

// Wait blocks until the run has ended.
func (e *Engine) Wait(ctx context.Context, threadID, runID string) (Result, error) { return Result{}, errTODO }

// Run returns a run.
func (e *Engine) Run(ctx context.Context, threadID, runID string) (agent.Run, error) {
	return agent.Run{}, errTODO
}

// Runs lists runs of a thread.
func (e *Engine) Runs(ctx context.Context, q agent.RunQuery) ([]agent.Run, error) { return nil, errTODO }

// DeleteRun cancels the run if it is in flight, then removes it.
func (e *Engine) DeleteRun(ctx context.Context, threadID, runID string) error { return errTODO }

// Cancel cancels a run; with wait it returns when the run has stopped.
func (e *Engine) Cancel(ctx context.Context, threadID, runID string, action agent.CancelAction, reason string, wait bool) error {
	return errTODO
}

// CancelMany cancels several runs (POST /runs/cancel).
func (e *Engine) CancelMany(ctx context.Context, s CancelSelection, action agent.CancelAction, reason string) error {
	return errTODO
}

// CancelSelection says which runs to cancel: those of a thread by id, or all in flight with a status ("pending", "running"
// or "all"), or all in flight of an assistant.
type CancelSelection struct {
	ThreadID    string
	RunIDs      []string
	Status      string
	AssistantID string
}

// StoreBatch runs operations of the key-value store.
func (e *Engine) StoreBatch(ctx context.Context, ops []agent.StoreOp) ([]agent.StoreResult, error) {
	return nil, errTODO
}

// Subscription is a reader of a run's stream.
type Subscription struct{}

// Next returns the next frame; io.EOF after the `end` frame; another error when the stream ended early (the client reconnects).
func (s *Subscription) Next(ctx context.Context) (agent.Frame, error) { return agent.Frame{}, errTODO }

// Close ends the subscription. It is idempotent.
func (s *Subscription) Close() {}

// Waiter waits for the end of a run.
type Waiter struct{}

// Result blocks until the run has ended.
func (w *Waiter) Result(ctx context.Context) (Result, error) { return Result{}, errTODO }
