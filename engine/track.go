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
	keep     bool       // frames have ids and are stored: the run is resumable or its thread is followed
	resume   bool       // resumable: the ids are shown to those who watch the run
	hub      *threadHub // of the followed thread; nil = nobody follows it
	tail     *agent.Tail
	after    int64 // agent.Frame.After of the next frame
	shared   bool  // another instance watches
	ending   bool  // the run has ended elsewhere; only its last frames are still to come
	joined   chan struct{}
	ended    bool   // the end frame has passed
	result   Result // valid once done is closed
	err      error  // why nobody will learn the result here
	settled  bool
	heardSeq int64 // of the last frame that came over the bus
	missed   int   // how often its row was not found

	batch    []agent.Frame // resumable frames not yet handed to the store
	stored   agent.Commit  // of the newest batch that went without waiting for the one before
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
	f := agent.Frame{RunID: t.runID, ThreadID: t.threadID, Seq: t.seq, Event: event, Data: data, After: t.after}
	t.after = 0
	if t.keep {
		f.ID = t.e.frameID.next(t.e.clock())
		t.batch = append(t.batch, f)
		t.flushLocked()
	}
	hub, shared := t.tellLocked(f)
	full := t.flushing
	if len(t.batch) < maxBatch {
		full = nil
	}
	t.mu.Unlock()
	t.tellOthers(f, hub, shared)
	if full != nil {
		<-full
	}
}

// tellLocked sends a frame to everybody in this process; called with mu held. tellOthers goes with it.
func (t *track) tellLocked(f agent.Frame) (hub *threadHub, shared bool) {
	if t.hub != nil {
		t.hub.fanOut(f)
	}
	t.fanOut(t.shown(f))
	return t.hub, t.shared
}

// tellOthers sends a frame to the other instances that listen.
func (t *track) tellOthers(f agent.Frame, hub *threadHub, shared bool) {
	if hub != nil {
		t.e.publishThreadFrame(f)
	}
	if shared {
		t.e.publishFrame(t.shown(f))
	}
}

// shown is a frame as those who watch the run see it: only a resumable run's have ids (reference 10.1).
func (t *track) shown(f agent.Frame) agent.Frame {
	if !t.resume {
		f.ID = ""
	}
	return f
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
	t.storeLocked()
}

func (t *track) storeLocked() {
	if len(t.batch) == 0 {
		return
	}
	t.stored = t.e.store.AppendFrames(context.Background(), t.batch)
	t.batch = nil
}

// subscribe adds a reader of the frames from now on.
func (t *track) subscribe() *Subscription {
	s := newSubscription(t.e.cfg.Buffer, t.unsubscribe)
	s.lose = func() { t.e.meter.lost.Add(1) }
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

func (t *track) unsubscribe(s *Subscription) {
	t.mu.Lock()
	delete(t.subs, s)
	t.mu.Unlock()
	t.drop()
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
	switch {
	case ended:
	case t.tail != nil:
		t.tellTail(*t.tail, res)
	default:
		t.publishTail(res)
	}
	t.flushed()
	t.close()
}

// tellTail tells the last frames, which the end of the run has stored.
func (t *track) tellTail(tail agent.Tail, res Result) {
	for _, f := range tail.Frames(res.Run, res.Outcome) {
		if f.Event == "metadata" {
			t.tellFollowers(f)
			continue
		}
		t.mu.Lock()
		hub, shared := t.tellLocked(f)
		t.mu.Unlock()
		t.tellOthers(f, hub, shared)
	}
}

// publishTail tells the last frames of a run whose end was not stored with them. A rollback leaves no trace.
func (t *track) publishTail(res Result) {
	t.mu.Lock()
	t.keep = t.keep && res.Outcome != agent.RunRollback
	t.mu.Unlock()
	for _, f := range (agent.Tail{}).Frames(res.Run, res.Outcome) {
		if f.Event == "metadata" {
			t.publishDone(f)
			continue
		}
		t.publish(f.Event, f.Data)
	}
}

// publishDone tells followers of the thread that the run is done.
func (t *track) publishDone(f agent.Frame) {
	t.mu.Lock()
	t.seq++
	f.Seq = t.seq
	f.ID = t.e.frameID.next(t.e.clock())
	if t.hub != nil && t.keep {
		t.batch = append(t.batch, f)
	}
	t.mu.Unlock()
	t.tellFollowers(f)
}

func (t *track) tellFollowers(f agent.Frame) {
	t.mu.Lock()
	hub := t.hub
	t.mu.Unlock()
	if hub == nil {
		return
	}
	hub.fanOut(f)
	t.e.publishThreadFrame(f)
}

// reserveTail sets aside the ids of the last frames before the run's end is written, so that whatever comes after the end
// on the thread has greater ones, and hands every frame so far to the store. It is nil where no frames are kept.
func (t *track) reserveTail() *agent.Tail {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.keep {
		return nil
	}
	t.storeLocked()
	tail := &agent.Tail{Seq: t.seq}
	for i := range tail.IDs {
		tail.IDs[i] = t.e.frameID.next(t.e.clock())
	}
	t.tail = tail
	return tail
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
