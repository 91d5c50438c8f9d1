package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

// Topics of the bus. Messages only hurry things up or carry frames; the store decides.
const (
	topicWake      = "wake"      // a pending run may be claimable
	topicCancel    = "cancel"    // a cancel was recorded for a run that another instance executes
	topicJoin      = "join"      // an instance watches a run
	topicEnd       = "end"       // a run has ended
	topicHello     = "hello"     // an instance has come: tell it what is watched, and watch it
	topicHere      = "here"      // an instance that was there before answers a hello
	topicAssistant = "assistant" // a system assistant was changed
	topicCrons     = "crons"     // the dates of crons have changed
	topicFollow    = "follow"    // somebody follows threads
	topicFrames    = "frames/"   // of a run that another instance watches
	topicThread    = "thread/"   // frames of a thread that somebody follows
)

// maxWanted bounds how many watched runs of other instances are remembered.
const maxWanted = 10000

type note struct {
	From        string          `json:"from"`
	RunID       string          `json:"run_id,omitempty"`
	AssistantID string          `json:"assistant_id,omitempty"`
	Thread      string          `json:"thread_id,omitempty"`
	Action      string          `json:"action,omitempty"`
	Reason      string          `json:"reason,omitempty"`
	Outcome     agent.RunStatus `json:"outcome,omitempty"`
	Failure     *agent.Failure  `json:"failure,omitempty"`
	Body        json.RawMessage `json:"body,omitempty"`
	Framed      bool            `json:"framed,omitempty"` // the run's frames go over the bus, its end frame last
	Frame       *agent.Frame    `json:"frame,omitempty"`  // nil in a topic of frames = joined
	Threads     []string        `json:"threads,omitempty"`
	Graphs      []string        `json:"graphs,omitzero"` // what the instance that introduces itself serves
	Index       string          `json:"index,omitempty"` // agent.Index.Name
	Gone        bool            `json:"gone,omitempty"`  // the thread is no more
}

func (e *Engine) say(topic string, n note) {
	n.From = e.cfg.Instance
	e.bus.Publish(topic, marshal(n))
}

func (e *Engine) listen() {
	on := func(topic string, fn func(note)) {
		e.unhook = append(e.unhook, e.bus.Subscribe(topic, e.others(fn)))
	}
	on(topicWake, func(note) { e.wake() })
	on(topicCancel, e.heardCancel)
	on(topicJoin, e.heardJoin)
	on(topicEnd, e.heardEnd)
	on(topicFollow, e.heardFollow)
	on(topicAssistant, func(n note) { e.system.drop(n.AssistantID) })
	on(topicCrons, func(note) { e.wakeCrons() })
	on(topicHello, func(n note) {
		e.introduce(topicHere)
		e.repeatJoins()
		e.met(n)
	})
	on(topicHere, func(n note) { e.met(n) })
	e.unhook = append(e.unhook, e.bus.Subscribe(agent.TopicMissed, func([]byte) { wakeLoop(e.missedKick) }))
	e.introduce(topicHello)
}

// watch rescues the runs of another instance as soon as it dies.
func (e *Engine) watch(instance string, graphs []string) {
	e.mu.Lock()
	_, known := e.peers[instance]
	known = known || e.draining
	if !known {
		e.peers[instance] = nil
		e.loops.Add(1)
	}
	if _, met := e.peers[instance]; met && graphs != nil {
		e.peers[instance] = graphs
	}
	e.mu.Unlock()
	if known {
		wakeLoop(e.hopelessKick)
		return
	}
	go func() {
		defer e.loops.Done()
		err := e.store.AwaitEnd(e.life, instance)
		e.mu.Lock()
		delete(e.peers, instance)
		delete(e.indexes, instance)
		e.mu.Unlock()
		wakeLoop(e.hopelessKick)
		wakeLoop(e.indexKick)
		if err == nil {
			err = e.rescue(e.life)
		}
		if err != nil && e.life.Err() == nil {
			e.log.Error("looking after another instance failed", "instance", instance, "error", err)
		}
	}()
}

// watchHolders watches the instances that hold running runs now. Those that take runs later answer the hello.
func (e *Engine) watchHolders(ctx context.Context) error {
	runs, err := e.store.InFlight(ctx, "")
	if err != nil {
		return fmt.Errorf("look for runs of other instances: %w", err)
	}
	for _, r := range runs {
		if r.Status == agent.RunRunning && r.Instance != e.cfg.Instance {
			e.watch(r.Instance, nil)
		}
	}
	return nil
}

// others decodes messages and leaves out this instance's own.
func (e *Engine) others(fn func(note)) func([]byte) {
	return func(payload []byte) {
		var n note
		if err := json.Unmarshal(payload, &n); err != nil {
			e.log.Error("message on the bus is not readable", "error", err)
			return
		}
		if n.From != e.cfg.Instance {
			fn(n)
		}
	}
}

// met is what follows from having a line to another instance.
func (e *Engine) met(n note) {
	e.noteIndex(n)
	e.system.clear()
	e.watch(n.From, n.Graphs)
	e.readHubsAgain() // what it said before there was a line is in the store
}

// wakeAll runs every instance's dispatcher.
func (e *Engine) wakeAll() {
	e.wake()
	e.say(topicWake, note{})
}

func (e *Engine) publishCancel(r agent.Run) {
	e.say(topicCancel, note{RunID: r.ID, Thread: r.ThreadID, Action: string(r.CancelAction), Reason: r.CancelReason})
}

func (e *Engine) publishFrame(f agent.Frame) {
	e.say(topicFrames+f.RunID, note{RunID: f.RunID, Frame: &f})
}

// publishEnd tells other instances that a run has ended, with its result if one of them watches it.
func (e *Engine) publishEnd(t *track, r Result) {
	n := note{RunID: t.runID, Thread: t.threadID, Outcome: r.Outcome, Failure: r.Run.Failure}
	t.mu.Lock()
	if t.shared {
		n.Body, n.Framed = r.Body, true
	}
	t.mu.Unlock()
	e.say(topicEnd, n)
}

func (e *Engine) heardCancel(n note) {
	e.mu.Lock()
	var x *execution
	if t := e.tracks[n.RunID]; t != nil {
		x = t.exec
	}
	e.mu.Unlock()
	if x != nil {
		x.cancel(n.Action, n.Reason)
		return
	}
	go e.catchUpCancel(n)
}

// catchUpCancel handles a cancel for a run that this instance may be about to launch.
func (e *Engine) catchUpCancel(n note) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	r, err := e.store.Run(ctx, n.Thread, n.RunID)
	if err == nil && r.Status == agent.RunRunning && r.Instance == e.cfg.Instance {
		e.pushCancel(r)
	}
}

func (e *Engine) heardJoin(n note) {
	e.mu.Lock()
	t := e.tracks[n.RunID]
	here := t != nil && t.exec != nil
	if !here {
		e.want(n.RunID)
	}
	e.mu.Unlock()
	if here {
		t.share()
	}
}

// want remembers a watched run; where too many are, any older one makes room. Called with mu held.
func (e *Engine) want(runID string) {
	if len(e.wanted) >= maxWanted {
		for old := range e.wanted {
			delete(e.wanted, old)
			break
		}
	}
	e.wanted[runID] = struct{}{}
}

// share makes the run's frames go over the bus, after everything before them is in the store.
func (t *track) share() {
	t.mu.Lock()
	t.shared = true
	t.mu.Unlock()
	go func() {
		t.awaitFlush() // the batch that is under way
		t.awaitFlush() // and the one that held what waited behind it
		t.e.say(topicFrames+t.runID, note{RunID: t.runID})
	}()
}

// awaitFlush waits for the batch of frames that is under way, starting one if some are waiting.
func (t *track) awaitFlush() {
	t.mu.Lock()
	t.flushLocked()
	last, stored := t.flushing, t.stored
	t.mu.Unlock()
	if last != nil {
		<-last
	}
	if stored != nil {
		_ = stored.Wait(context.Background()) // an error has been told where it matters: the end of the run fails too
	}
}

func (e *Engine) heardEnd(n note) {
	e.mu.Lock()
	delete(e.wanted, n.RunID)
	t := e.tracks[n.RunID]
	here := t != nil && t.exec != nil
	e.mu.Unlock()
	if t == nil || here {
		return
	}
	if n.Body == nil {
		go e.settleFromStore(t, n)
		return
	}
	r := agent.Run{ID: n.RunID, ThreadID: n.Thread, Status: n.Outcome, Failure: n.Failure}
	t.settleBehindFrames(Result{Run: r, Outcome: n.Outcome, Body: n.Body}, n.Framed)
}

// lateFrames is how long the end of a run waits for its last frames, which come by another topic than the word of its end.
const lateFrames = 2 * time.Second

// settleBehindFrames settles a run that another instance ended, after its end frame where its frames come here.
func (t *track) settleBehindFrames(res Result, framed bool) {
	t.mu.Lock()
	wait := framed && !t.ended && t.unremote != nil && len(t.subs) > 0
	if wait {
		t.result = res
		t.ending = true
	}
	t.mu.Unlock()
	if !wait {
		t.settle(res)
		return
	}
	time.AfterFunc(lateFrames, func() { t.settle(res) })
}

// settleFromStore ends a track whose run another instance ended without telling its result.
func (e *Engine) settleFromStore(t *track, n note) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	f := agent.Finished{Run: agent.Run{ID: n.RunID, ThreadID: n.Thread, Status: n.Outcome, Failure: n.Failure}, Outcome: n.Outcome}
	if r, err := e.store.Run(ctx, "", n.RunID); err == nil {
		f.Run = r
	}
	e.settleWatched(ctx, t, f)
}

// settleRemote ends a run that nobody executes: cancelled while pending, or out of attempts after a crash.
func (e *Engine) settleRemote(f agent.Finished, r agent.Run) {
	e.meter.concluded(f, r.Attempt)
	if f.Run.ID == "" {
		f.Run = r
	}
	e.noticeWritten(f.Run)
	e.tellEnded(f)
	e.say(topicEnd, note{RunID: r.ID, Thread: r.ThreadID, Outcome: f.Outcome, Failure: f.Run.Failure})
	if t := e.lookup(r.ID); t != nil {
		e.settleWatched(context.Background(), t, f)
	}
}

func (e *Engine) settleWatched(ctx context.Context, t *track, f agent.Finished) {
	if f.Thread == nil && !failed(f.Outcome) {
		if thread, err := e.store.Thread(ctx, f.Run.ThreadID); err == nil {
			f.Thread = &thread
		} else if slipway.ErrorCode(err) != slipway.CodeNotFound {
			e.log.Error("reading a thread for its waiters failed", "thread_id", f.Run.ThreadID, "error", err)
		}
	}
	t.settle(Result{Run: f.Run, Outcome: f.Outcome, Body: body(f, nil)})
}

func (e *Engine) repeatJoins() {
	e.mu.Lock()
	var runs []string
	for id, t := range e.tracks {
		if t.exec == nil {
			runs = append(runs, id)
		}
	}
	e.mu.Unlock()
	for _, id := range runs {
		e.say(topicJoin, note{RunID: id})
	}
}

func (e *Engine) lookup(runID string) *track {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.tracks[runID]
}

func (e *Engine) watched(t *track) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return t.holds > 0
}

func (t *track) executedHere() bool {
	t.e.mu.Lock()
	defer t.e.mu.Unlock()
	return t.exec != nil
}

func (t *track) isSettled() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// dropLater drops a hold that only has to outlive a launch under way.
func (t *track) dropLater() { time.AfterFunc(10*time.Second, t.drop) }

// attach makes the frames and the end of a run that another instance executes arrive here.
func (t *track) attach() {
	t.mu.Lock()
	if t.unremote != nil || t.settled || t.err != nil {
		t.mu.Unlock()
		return
	}
	t.heardSeq = 0
	t.unremote = t.e.bus.Subscribe(topicFrames+t.runID, t.e.others(t.heard))
	t.mu.Unlock()
	t.e.say(topicJoin, note{RunID: t.runID})
}

func (t *track) detach() {
	t.mu.Lock()
	cancel := t.unremote
	t.unremote = nil
	t.mu.Unlock()
	if cancel != nil {
		go cancel() // never from within a delivery
	}
}

func (t *track) heard(n note) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n.Frame == nil {
		select {
		case <-t.joined:
		default:
			close(t.joined)
		}
		return
	}
	if t.gap(n.Frame.Seq) {
		t.breakOff()
	}
	if !t.settled {
		t.fanOut(*n.Frame)
	}
	if t.ended && t.ending {
		t.ending = false
		go t.settle(t.result)
	}
}

// awaitJoined waits until whoever executes the run has put its earlier frames into the store and sends later ones here.
func (t *track) awaitJoined(ctx context.Context) {
	late := time.NewTimer(2 * time.Second) // whoever does not answer by then is dead; its frames are in the store
	defer late.Stop()
	select {
	case <-t.joined:
	case <-t.done:
	case <-late.C:
	case <-ctx.Done():
	}
}
