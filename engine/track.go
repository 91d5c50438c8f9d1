package engine

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/slipway-dev/slipway/agent"
)

// track is everything this process knows of a run that it executes or that somebody here watches: the hub of its stream
// and of its waiters. It lives in Engine.tracks while it is executed or held, and is settled once.
type track struct {
	e        *Engine
	runID    string
	exec     *execution // guarded by Engine.mu; nil = not executed here
	holds    int        // guarded by Engine.mu
	asked    *cancelAsk // guarded by Engine.mu: a cancel that came before the execution
	done     chan struct{}
	unremote func() // guarded by mu; non-nil while frames come over the bus

	mu       sync.Mutex
	threadID string
	subs     map[*Subscription]struct{}
	seq      int64
	keep     bool // resumable: frames have ids and are stored
	shared   bool // another instance watches
	ending   bool // the run has ended elsewhere; only its last frames are still to come
	joined   chan struct{}
	ended    bool   // the end frame has passed
	result   Result // valid once done is closed
	err      error  // why nobody will learn the result here
	settled  bool
	heardSeq int64 // of the last frame that came over the bus
	missed   int   // how often its row was not found

	batch    []agent.Frame // resumable frames not yet handed to the store
	flushing chan struct{} // non-nil while a batch is on its way; closed when it has arrived
}

type cancelAsk struct{ action, reason string }

// maxBatch bounds resumable frames that wait for the disk; beyond it the graph waits.
const maxBatch = 2048

// hold returns the run's track, made if needed, and keeps it until drop.
func (e *Engine) hold(runID, threadID string) *track {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.tracks[runID]
	if t == nil {
		t = &track{
			e: e, runID: runID, threadID: threadID, done: make(chan struct{}), joined: make(chan struct{}),
			subs: map[*Subscription]struct{}{},
		}
		if _, ok := e.wanted[runID]; ok {
			t.shared = true
			delete(e.wanted, runID)
		}
		if e.left {
			t.err = errLeaving()
			close(t.done)
		}
		e.tracks[runID] = t
	}
	t.holds++
	return t
}

func (t *track) drop() {
	e := t.e
	e.mu.Lock()
	t.holds--
	idle := t.holds == 0 && t.exec == nil && e.tracks[t.runID] == t
	if idle {
		delete(e.tracks, t.runID)
	}
	e.mu.Unlock()
	if idle {
		t.detach()
	}
}

// publish sends one frame of the run to everybody who listens, and to the store if the run is resumable.
func (t *track) publish(event string, data json.RawMessage) {
	t.mu.Lock()
	t.seq++
	f := agent.Frame{RunID: t.runID, ThreadID: t.threadID, Seq: t.seq, Event: event, Data: data}
	if t.keep {
		f.ID = t.e.frameID.next(t.e.clock())
		t.batch = append(t.batch, f)
		t.flushLocked()
	}
	t.fanOut(f)
	shared := t.shared
	full := t.flushing
	if len(t.batch) < maxBatch {
		full = nil
	}
	t.mu.Unlock()
	if shared {
		t.e.publishFrame(f)
	}
	if full != nil {
		<-full
	}
}

// fanOut is called with mu held.
func (t *track) fanOut(f agent.Frame) {
	t.ended = t.ended || f.Event == "end"
	for s := range t.subs {
		if !s.push(f) {
			delete(t.subs, s)
		}
	}
}

// flushLocked hands waiting frames to the store unless a batch is under way; called with mu held.
func (t *track) flushLocked() {
	if t.flushing != nil || len(t.batch) == 0 {
		return
	}
	commit := t.e.store.AppendFrames(context.Background(), t.batch)
	t.batch = nil
	done := make(chan struct{})
	t.flushing = done
	go func() {
		if err := commit.Watch(context.Background()); err != nil {
			t.e.log.Error("keeping stream frames failed", "run_id", t.runID, "error", err)
		}
		t.mu.Lock()
		t.flushing = nil
		t.flushLocked()
		t.mu.Unlock()
		close(done)
	}()
}

// flushed hands every frame so far to the store, so that a read made after it sees them.
func (t *track) flushed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.batch) == 0 {
		return
	}
	t.e.store.AppendFrames(context.Background(), t.batch)
	t.batch = nil
}

// subscribe adds a reader of the frames from now on.
func (t *track) subscribe() *Subscription {
	s := newSubscription(t)
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.err != nil:
		s.fail(t.err)
	case t.settled:
		s.push(endFrame(t.runID, t.threadID, t.result.Outcome))
	default:
		t.subs[s] = struct{}{}
	}
	return s
}

// settle ends the run for everybody here: error and end frames, waiters. It happens once.
func (t *track) settle(res Result) {
	t.mu.Lock()
	if t.settled || t.err != nil {
		t.mu.Unlock()
		return
	}
	t.settled = true
	t.result = res
	ended := t.ended
	t.mu.Unlock()
	if !ended {
		if f := res.Run.Failure; f != nil && (res.Outcome == agent.RunError || res.Outcome == agent.RunTimeout) {
			t.publish("error", marshal(f))
		}
		t.publish("end", endData(t.runID, res.Outcome))
	}
	t.close()
}

// abandon ends subscriptions and waiters without a result, with the reason: this process goes and another one carries on,
// or nobody knows the result any more.
func (t *track) abandon(reason error) {
	t.mu.Lock()
	if !t.settled && t.err == nil {
		t.err = reason
		for s := range t.subs {
			s.fail(t.err)
		}
		clear(t.subs)
		close(t.done)
	}
	t.mu.Unlock()
	t.forget()
}

func (t *track) close() {
	t.mu.Lock()
	clear(t.subs)
	close(t.done)
	t.mu.Unlock()
	t.forget()
}

func (t *track) forget() {
	t.e.mu.Lock()
	if t.e.tracks[t.runID] == t {
		delete(t.e.tracks, t.runID)
	}
	t.e.mu.Unlock()
	t.detach()
}

func (t *track) wait(ctx context.Context) (Result, error) {
	select {
	case <-t.done:
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.result, t.err
}

func marshal(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return b
}

func endData(runID string, outcome agent.RunStatus) json.RawMessage {
	return json.RawMessage(`{"run_id":"` + runID + `","status":"` + string(outcome) + `"}`)
}

func endFrame(runID, threadID string, outcome agent.RunStatus) agent.Frame {
	return agent.Frame{RunID: runID, ThreadID: threadID, Seq: maxSeq, Event: "end", Data: endData(runID, outcome)}
}
