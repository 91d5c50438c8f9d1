package engine

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

// threadHub is the meeting point of those who follow a thread's stream (reference 10.4) with the runs of the thread. It
// stays for a while after the last of them has gone, so that everything is kept for their coming back. The store knows of
// followers too: whoever claims a run of the thread learns it with the claim.
type threadHub struct {
	e        *Engine
	threadID string
	until    time.Time // guarded by Engine.mu: how long it stays without followers

	mu       sync.Mutex
	subs     map[*Subscription]struct{}
	unremote func()                   // non-nil while frames of other instances come over the bus
	asked    map[string]chan struct{} // closed when another instance answers that its frames come here
}

// lease is how long a thread counts as followed: it is renewed at half of the time for which streams are kept, and whoever
// goes finds everything for that time at least.
func (e *Engine) lease() time.Time { return e.clock().Add(e.cfg.StreamTTL + e.cfg.StreamTTL/2) }

// keepHub returns the hub of a thread, made if needed, which stays for a lease.
func (e *Engine) keepHub(threadID string) *threadHub {
	e.mu.Lock()
	defer e.mu.Unlock()
	h := e.hubs[threadID]
	if h == nil {
		h = &threadHub{e: e, threadID: threadID, subs: map[*Subscription]struct{}{}, asked: map[string]chan struct{}{}}
		e.hubs[threadID] = h
	}
	h.until = e.lease()
	return h
}

func (e *Engine) hub(threadID string) *threadHub {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.hubs[threadID]
}

// attachHub makes the frames of a run that is executed here reach those who follow its thread.
func (t *track) attachHub(h *threadHub) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.settled && t.tail == nil {
		t.hub, t.keep = h, true
	}
}

// executedOn returns the tracks of the runs of a thread that are executed here.
func (e *Engine) executedOn(threadID string) []*track {
	e.mu.Lock()
	defer e.mu.Unlock()
	var found []*track
	for _, t := range e.tracks {
		if t.exec != nil && t.exec.run.ThreadID == threadID {
			found = append(found, t)
		}
	}
	return found
}

// FollowThread subscribes to all runs of a thread and to the changes of its state (reference 10.4). lastEventID is as in
// From: "" = from now on, "-" or "-1" = from the start of what is kept. The stream ends with io.EOF when the thread goes.
func (e *Engine) FollowThread(ctx context.Context, threadID, lastEventID string) (*Subscription, error) {
	if _, err := e.Thread(ctx, threadID); err != nil {
		return nil, err
	}
	h := e.keepHub(threadID)
	s := h.subscribe()
	if err := e.startFollowing(ctx, h, s, lastEventID); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (e *Engine) startFollowing(ctx context.Context, h *threadHub, s *Subscription, lastEventID string) error {
	tracks := e.executedOn(h.threadID)
	for _, t := range tracks {
		t.attachHub(h)
	}
	gone, err := e.store.FollowThreads(ctx, []string{h.threadID}, e.lease())
	if err != nil {
		return fmt.Errorf("follow thread %s: %w", h.threadID, err)
	}
	if len(gone) > 0 {
		return slipway.Errorf(slipway.CodeNotFound, "Thread with ID %s not found", h.threadID)
	}
	if err := e.joinElsewhere(ctx, h); err != nil {
		return err
	}
	for _, t := range tracks {
		t.flushed()
	}
	s.place = func(f agent.Frame) int64 { return agent.FramePosition(f.ID) }
	s.fetch = func(ctx context.Context, after int64) ([]agent.Frame, error) {
		return e.store.ThreadFrames(ctx, h.threadID, after, 256)
	}
	if lastEventID == "" {
		s.told = agent.FramePosition(e.lastFrame(h.threadID))
		return nil
	}
	s.replay, s.position = true, followFrom(lastEventID)
	s.told = s.position
	return nil
}

// followFrom is the position behind which a replay begins.
func followFrom(lastEventID string) int64 {
	if strings.HasPrefix(lastEventID, "-") {
		return 0
	}
	return agent.FramePosition(lastEventID)
}

// joinElsewhere waits until another instance that executes a run of the thread sends its frames here.
func (e *Engine) joinElsewhere(ctx context.Context, h *threadHub) error {
	if !e.hasPeers() {
		return nil
	}
	question, answered := h.ask()
	defer h.forgetQuestion(question)
	runs, err := e.store.InFlight(ctx, h.threadID)
	if err != nil {
		return err
	}
	for _, r := range runs {
		if r.Status == agent.RunRunning && r.Instance != e.cfg.Instance {
			awaitAnswer(ctx, answered)
		}
	}
	return nil
}

// ask makes other instances send the thread's frames here and say when the earlier ones are in the store.
func (h *threadHub) ask() (question string, answered chan struct{}) {
	question, answered = h.e.ids(), make(chan struct{})
	h.mu.Lock()
	h.asked[question] = answered
	h.mu.Unlock()
	h.e.say(topicFollow, note{Threads: []string{h.threadID}, Thread: h.threadID, Reason: question})
	return question, answered
}

func (h *threadHub) forgetQuestion(question string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.asked, question)
}

func awaitAnswer(ctx context.Context, answered chan struct{}) {
	late := time.NewTimer(2 * time.Second) // whoever does not answer by then is dead; its frames are in the store
	defer late.Stop()
	select {
	case <-answered:
	case <-late.C:
	case <-ctx.Done():
	}
}

// answered takes the answer to a question. Without one, everybody looks into the store for what may have been lost.
func (h *threadHub) answered(question string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.asked[question]; c != nil {
		delete(h.asked, question)
		close(c)
		return
	}
	for s := range h.subs {
		s.readAgain()
	}
}

// subscribe adds a reader and, with the first one, the frames of other instances.
func (h *threadHub) subscribe() *Subscription {
	s := newSubscription(h.e.cfg.Buffer, h.unsubscribe)
	s.ends = false
	heard := newHeard()
	s.fresh = func(f agent.Frame) bool {
		fresh, gap := heard.note(f)
		s.lost = s.lost || gap
		return fresh
	}
	if h.e.hasLeft() {
		s.fail(errLeaving())
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.subs[s] = struct{}{}
	if h.unremote == nil {
		h.unremote = h.e.bus.Subscribe(topicThread+h.threadID, h.e.others(h.heard))
	}
	return s
}

func (e *Engine) hasLeft() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.left
}

func (h *threadHub) unsubscribe(s *Subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.subs, s)
	if len(h.subs) == 0 && h.unremote != nil {
		go h.unremote() // never from within a delivery
		h.unremote = nil
	}
}

func (h *threadHub) fanOut(f agent.Frame) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.subs {
		if !s.push(f) {
			delete(h.subs, s)
		}
	}
}

// heard takes what another instance says of the thread.
func (h *threadHub) heard(n note) {
	switch {
	case n.Gone:
		h.fail(io.EOF)
	case n.Frame != nil:
		h.e.frameID.after(n.Frame.ID)
		h.fanOut(*n.Frame)
	default:
		h.answered(n.Reason)
	}
}

func (h *threadHub) fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.subs {
		s.fail(err)
	}
}

func (h *threadHub) followed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.subs) > 0
}

func (e *Engine) publishThreadFrame(f agent.Frame) {
	e.say(topicThread+f.ThreadID, note{Thread: f.ThreadID, Frame: &f})
}

// heardFollow attaches the runs that are executed here to those who follow their threads elsewhere. A note that names one
// thread is answered when everything before is in the store.
func (e *Engine) heardFollow(n note) {
	for _, id := range n.Threads {
		tracks := e.executedOn(id)
		if len(tracks) > 0 {
			h := e.keepHub(id)
			for _, t := range tracks {
				t.attachHub(h)
			}
		}
		if n.Thread == id {
			go e.answerFollow(n, tracks)
		}
	}
}

func (e *Engine) answerFollow(n note, tracks []*track) {
	for _, t := range tracks {
		t.awaitFlush() // the batch that is under way
		t.awaitFlush() // and the one that held what waited behind it
	}
	e.say(topicThread+n.Thread, note{Thread: n.Thread, Reason: n.Reason})
}

// renewHubs says that threads are still followed, and forgets those that nobody has come back to.
func (e *Engine) renewHubs(ctx context.Context) error {
	followed := e.sortHubs()
	if len(followed) == 0 {
		return nil
	}
	for _, id := range followed {
		e.keepHub(id)
	}
	if e.hasPeers() {
		e.say(topicFollow, note{Threads: followed})
	}
	gone, err := e.store.FollowThreads(ctx, followed, e.lease())
	for _, id := range gone { // deleted by another instance, whose word of it was lost
		e.closeHub(id)
	}
	return err
}

// sortHubs returns the threads that are followed here and drops the hubs whose time is over.
func (e *Engine) sortHubs() (followed []string) {
	now := e.clock()
	var over []*threadHub
	e.mu.Lock()
	for id, h := range e.hubs {
		switch {
		case h.followed():
			followed = append(followed, id)
		case now.After(h.until):
			delete(e.hubs, id)
			over = append(over, h)
		}
	}
	e.mu.Unlock()
	for _, h := range over {
		for _, t := range e.executedOn(h.threadID) {
			t.detachHub(h)
		}
	}
	return followed
}

func (t *track) detachHub(h *threadHub) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.hub == h {
		t.hub, t.keep = nil, t.resume
	}
}

// unhub takes the track of a run that is not executed here any more out of its thread's stream.
func (t *track) unhub() {
	t.flushed()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hub, t.tail, t.keep = nil, nil, false
}

// closeHub ends the streams of a thread that is no more.
func (e *Engine) closeHub(threadID string) {
	e.mu.Lock()
	h := e.hubs[threadID]
	delete(e.hubs, threadID)
	e.mu.Unlock()
	if h != nil {
		h.fail(io.EOF)
	}
	e.say(topicThread+threadID, note{Thread: threadID, Gone: true})
}

// failHubs makes those who follow threads connect again, to another instance: all of them, or those whose threads have no
// run that is executed here.
func (e *Engine) failHubs(all bool) {
	e.mu.Lock()
	hubs := make([]*threadHub, 0, len(e.hubs))
	for _, h := range e.hubs {
		hubs = append(hubs, h)
	}
	e.mu.Unlock()
	for _, h := range hubs {
		if all || len(e.executedOn(h.threadID)) == 0 {
			h.fail(errLeaving())
		}
	}
}

// endedSeq is the place before the last frames of a run that nobody executed at its end.
const endedSeq = maxSeq - 8

// tellEnded tells those who follow a thread that a run has ended which nobody executes.
func (e *Engine) tellEnded(f agent.Finished) {
	tail := agent.Tail{Seq: endedSeq}
	for i := range tail.IDs {
		tail.IDs[i] = e.frameID.next(e.clock())
	}
	frames := tail.Frames(f.Run, f.Outcome)
	if f.Outcome != agent.RunRollback {
		e.store.AppendFrames(context.Background(), frames)
	}
	e.tellThread(frames...)
}

// tellState tells those who follow a thread that its state was changed from outside.
func (e *Engine) tellState(t agent.Thread) {
	if absent(t.State) {
		return
	}
	data := fields{"state": t.State}
	data.set("thread_id", t.ID)
	after := agent.FramePosition(e.lastFrame(t.ID))
	f := agent.Frame{RunID: e.ids(), ThreadID: t.ID, Seq: 1, After: after, ID: e.frameID.next(e.clock()), Event: "state_update", Data: data.json()}
	e.store.AppendFrames(context.Background(), []agent.Frame{f})
	e.tellThread(f)
}

// tellThread sends frames to those who follow their thread, here and elsewhere.
func (e *Engine) tellThread(frames ...agent.Frame) {
	for _, f := range frames {
		if h := e.hub(f.ThreadID); h != nil {
			h.fanOut(f)
		}
		e.publishThreadFrame(f)
	}
}

// maxHeard bounds the runs of a thread whose places a reader remembers.
const maxHeard = 256

// heard tells frames that come a second time, from the store and live, from those that do not: by their places within their
// runs, as the frames of two instances may arrive in either order.
type heard struct {
	seq   map[string]int64
	order []string
}

func newHeard() *heard { return &heard{seq: map[string]int64{}} }

// note says whether a frame is new, and whether frames of its attempt before it are missing.
func (h *heard) note(f agent.Frame) (fresh, gap bool) {
	last, known := h.seq[f.RunID]
	if known && f.Seq <= last {
		return false, false
	}
	if !known {
		h.order = append(h.order, f.RunID)
		if len(h.order) > maxHeard {
			delete(h.seq, h.order[0])
			h.order = h.order[1:]
		}
	}
	h.seq[f.RunID] = f.Seq
	return true, known && f.Seq > last+1 && f.Event != "metadata" && f.Seq < endedSeq
}

// readHubsAgain makes those who follow threads look into the store, now and when the other instances have put there what
// they have said already: it may have been lost on its way here.
func (e *Engine) readHubsAgain() {
	e.mu.Lock()
	hubs := slices.Collect(maps.Values(e.hubs))
	e.mu.Unlock()
	for _, h := range hubs {
		if h.followed() {
			h.answered("")
			e.say(topicFollow, note{Threads: []string{h.threadID}, Thread: h.threadID})
		}
	}
}
