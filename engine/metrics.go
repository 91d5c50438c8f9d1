package engine

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipway-dev/slipway/agent"
)

// Metrics is what GET /metrics tells of an engine (agent-server reference 9). Counters and histograms are those of this
// process since its start; Queue is the deployment's.
type Metrics struct {
	Queue agent.Queue
	// Slots of this process's workers: how many runs they take, and how many they have.
	SlotsMax, SlotsActive int
	// Tracked is how many runs this process executes or follows for somebody.
	Tracked int

	AttemptsStarted     int64
	Succeeded           int64
	Cancelled           int64 // by request, by a strategy or by a disconnect
	FailedRetriable     int64 // attempts that failed and will be repeated
	FailedAfterRetry    int64 // runs that failed for good in a later attempt
	ExceededAtStart     int64 // runs of dead instances whose attempts were used up
	AbandonedByShutdown int64
	StatusErrors        int64 // ends that could not be recorded
	StreamingDataLoss   int64 // readers that were too slow for a stream that is not kept
	RecursionErrors     int64
	Started, Stopped    int64 // of the server

	FirstWait Histogram // from when a run was due to its first attempt
	RetryWait Histogram // from when an attempt was given up to the next one
	Execution Histogram // of attempts
	Publish   Histogram // of frames, from the worker's word to every reader's queue
}

// meter counts what happens in an engine.
type meter struct {
	attempts, succeeded, cancelled, retriable, afterRetry, exceeded, abandoned, unrecorded, lost, recursion, started, stopped atomic.Int64

	firstWait, retryWait, execution, publish *histogram

	mu      sync.Mutex
	waiting map[string]time.Time // runs that wait for another attempt, since when

	asking sync.Mutex // held while the store is asked
	queue  agent.Queue
	asked  time.Time // when queue was read
}

// maxWaitingAttempts bounds the runs whose wait for another attempt is measured.
const maxWaitingAttempts = 10000

// queuePause is how long the measured queue is told again without asking the store.
const queuePause = time.Second

func newMeter() *meter {
	return &meter{
		firstWait: newHistogram(), retryWait: newHistogram(), execution: newHistogram(), publish: newHistogram(), waiting: map[string]time.Time{},
	}
}

// launched counts an attempt that begins.
func (m *meter) launched(r agent.Run, now time.Time) {
	m.attempts.Add(1)
	if r.Attempt <= 1 {
		m.firstWait.observe(now.Sub(r.CreatedAt))
		return
	}
	m.mu.Lock()
	since, known := m.waiting[r.ID]
	delete(m.waiting, r.ID)
	m.mu.Unlock()
	if known {
		m.retryWait.observe(now.Sub(since))
	}
}

// requeued counts a run that goes back to the queue; a drain is no failure.
func (m *meter) requeued(runID string, drain bool, now time.Time) {
	if !drain {
		m.retriable.Add(1)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.waiting) < maxWaitingAttempts {
		m.waiting[runID] = now
	}
}

// rescued counts a run of a dead instance whose attempts were used up.
func (m *meter) rescued(f agent.Finished) {
	if f.Outcome == agent.RunError {
		m.exceeded.Add(1)
	}
}

// concluded counts a run that has ended.
func (m *meter) concluded(f agent.Finished, attempt int) {
	switch f.Outcome {
	case agent.RunSuccess:
		m.succeeded.Add(1)
	case agent.RunInterrupted, agent.RunRollback:
		m.cancelled.Add(1)
	case agent.RunError, agent.RunTimeout:
		if attempt > 1 {
			m.afterRetry.Add(1)
		}
		if f.Run.Failure != nil && f.Run.Failure.Error == "GraphRecursionError" {
			m.recursion.Add(1)
		}
	}
}

// Metrics measures the engine. The store is asked for its queue once in a second at most, and while it does not answer
// the last known figures are told with the error.
func (e *Engine) Metrics(ctx context.Context) (Metrics, error) {
	m := e.meter
	queue, err := e.queueNow(ctx)
	all := Metrics{
		Queue: queue, AttemptsStarted: m.attempts.Load(), Succeeded: m.succeeded.Load(), Cancelled: m.cancelled.Load(),
		FailedRetriable: m.retriable.Load(), FailedAfterRetry: m.afterRetry.Load(), ExceededAtStart: m.exceeded.Load(),
		AbandonedByShutdown: m.abandoned.Load(), StatusErrors: m.unrecorded.Load(), StreamingDataLoss: m.lost.Load(),
		RecursionErrors: m.recursion.Load(), Started: m.started.Load(), Stopped: m.stopped.Load(),
		FirstWait: m.firstWait.snapshot(), RetryWait: m.retryWait.snapshot(), Execution: m.execution.snapshot(), Publish: m.publish.snapshot(),
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	all.Tracked = len(e.tracks)
	for _, s := range e.pool {
		slots := max(s.info.Slots, 1)
		all.SlotsMax += slots
		all.SlotsActive += slots - s.free
	}
	return all, err
}

func (e *Engine) queueNow(ctx context.Context) (agent.Queue, error) {
	m := e.meter
	m.asking.Lock()
	defer m.asking.Unlock() // whoever else asks meanwhile gets the same answer
	now := e.clock()
	if !m.asked.IsZero() && now.Sub(m.asked) < queuePause && !now.Before(m.asked) {
		return m.queue, nil
	}
	q, err := e.store.Queue(ctx)
	if err == nil {
		m.queue, m.asked = q, now
	}
	return m.queue, err
}
