package engine

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

// execution is one attempt of a run on a worker of this process; it is the worker's sink.
type execution struct {
	e    *Engine
	run  agent.Run
	t    *track
	seat *seat

	mu       sync.Mutex
	began    time.Time
	timeout  *time.Timer
	grace    *time.Timer // runs out when a cancelled run does not stop
	timedOut bool
	action   string // of the cancel it was told; "" = none
	over     bool   // Done, Lost or handed back: nothing the worker says counts any more

	feedback <-chan map[string]string // the run's feedback addresses, soon after its start; nil = it asks for none
	urls     map[string]string        // that were told to its readers

	told chan struct{} // closed when the end of this attempt has been told, or another attempt is to follow
}

// launch starts a claimed run on a reserved slot, which Engine.running counts already; fresh as in agent.Job.
func (e *Engine) launch(r agent.Run, s *seat, fresh bool) {
	t := e.hold(r.ID, r.ThreadID)
	x := &execution{e: e, run: r, t: t, seat: s, told: make(chan struct{}), began: e.clock()}
	e.meter.launched(r, x.began)
	x.askFeedback()
	t.prepare(r)
	e.mu.Lock()
	t.exec = x
	asked := t.asked
	before := e.latest[r.ThreadID]
	e.latest[r.ThreadID] = x
	e.mu.Unlock()
	before.awaitTold()
	if h := e.hub(r.ThreadID); h != nil {
		t.attachHub(h)
	}
	t.detach()
	t.publish("metadata", json.RawMessage(`{"run_id":"`+r.ID+`","attempt":`+strconv.Itoa(r.Attempt)+`}`))
	x.mu.Lock()
	x.timeout = time.AfterFunc(e.cfg.RunTimeout, x.expire)
	x.mu.Unlock()
	begin := func() {
		s.w.Run(agent.Job{Run: r, Resume: x.wrote(), Fresh: fresh}, x)
		if asked != nil {
			x.cancel(asked.action, asked.reason)
		}
	}
	if r.Epoch > 1 && e.savesElsewhere(r.GraphID) { // asks user code, which the dispatcher does not wait for
		go begin()
		return
	}
	begin()
}

// launchClaimed starts a run from the queue. Whoever watches it may be another instance that has not been heard of yet, so
// where there are others its frames go to them from the first one on.
func (e *Engine) launchClaimed(r agent.Run, s *seat) {
	if e.hasPeers() {
		t := e.hold(r.ID, r.ThreadID)
		t.mu.Lock()
		t.shared = true
		t.mu.Unlock()
		defer t.drop()
	}
	e.launch(r, s, false)
}

// awaitTold waits until an attempt that has ended has told its end: streams of threads tell one run after another. It may
// be nil.
func (x *execution) awaitTold() {
	if x == nil {
		return
	}
	x.mu.Lock()
	over := x.over
	x.mu.Unlock()
	if over {
		<-x.told
	}
}

// forgetAttempt lets the next run of the thread tell its frames.
func (x *execution) forgetAttempt() {
	x.e.mu.Lock()
	if x.e.latest[x.run.ThreadID] == x {
		delete(x.e.latest, x.run.ThreadID)
	}
	x.e.mu.Unlock()
	close(x.told)
}

// prepare sets the track up for an attempt; a later one goes on after the frames kept by earlier ones.
func (t *track) prepare(r agent.Run) {
	if r.Followed {
		t.e.keepHub(r.ThreadID)
	}
	hub := t.e.hub(r.ThreadID)
	t.mu.Lock()
	t.threadID, t.tail = r.ThreadID, nil
	t.resume = r.Kwargs.Resumable
	t.keep = t.resume || hub != nil
	fresh := t.seq == 0
	t.mu.Unlock()
	if !t.keep {
		return
	}
	if hub != nil || t.e.hasPeers() { // whose frames may have come before on this thread
		t.goAfter(t.e.lastFrame(r.ThreadID))
	}
	if fresh && r.Epoch > 1 { // the epoch: an attempt handed back by a drain does not count
		t.continueSeq(r)
	}
}

// goAfter makes the next frame come after one of the thread.
func (t *track) goAfter(id string) {
	t.mu.Lock()
	t.after = agent.FramePosition(id)
	t.mu.Unlock()
}

// lastFrame returns the id of a thread's last kept frame; the next ids made here are greater.
func (e *Engine) lastFrame(threadID string) string {
	last, err := e.store.LastFrame(context.Background(), threadID)
	if err != nil {
		e.log.Error("looking for the last frame of a thread failed", "thread_id", threadID, "error", err)
	}
	e.frameID.after(last)
	return last
}

// continueSeq makes frames count on from those that earlier attempts elsewhere have kept. Of a run that is not resumable
// some may have been told without being kept: an attempt then begins far behind.
func (t *track) continueSeq(r agent.Run) {
	var last agent.Frame
	for {
		page, err := t.e.store.Frames(context.Background(), r.ID, last.Seq, 1000)
		if err != nil || len(page) == 0 {
			break
		}
		last = page[len(page)-1]
	}
	t.e.frameID.after(last.ID)
	t.mu.Lock()
	t.seq = max(t.seq, last.Seq)
	if !t.resume {
		t.seq = max(t.seq, (r.Epoch-1)<<32)
	}
	t.mu.Unlock()
}

// Chunk passes a frame on.
func (x *execution) Chunk(event string, data json.RawMessage) {
	x.mu.Lock()
	over := x.over
	x.mu.Unlock()
	if !over {
		began := x.e.clock()
		x.t.publish(event, data)
		x.e.meter.publish.observe(x.e.clock().Sub(began))
	}
}

// Done ends the attempt. The slot is free at once; the rest waits for the disk on its own.
func (x *execution) Done(d agent.Done) {
	if !x.finish() {
		return
	}
	x.e.giveBack(x.seat)
	go x.conclude(d)
}

// Lost ends the attempt without the worker's word.
func (x *execution) Lost(err error) {
	if !x.finish() {
		return
	}
	go func() {
		defer x.e.running.Done()
		if x.expired() {
			x.store(agent.Done{Status: "cancelled"})
			return
		}
		x.e.log.Warn("run lost its worker", "run_id", x.run.ID, "attempt", x.run.Attempt, "error", err)
		x.requeue(false)
	}()
}

// Failed hears that a write was refused: the claim is over, or storage is out of order.
func (x *execution) Failed(err error) {
	if slipway.ErrorCode(err) == slipway.CodeStale {
		x.cancel(agent.CancelFenced, "the run is no longer held by this server")
		return
	}
	x.e.log.Error("storing what a run wrote failed", "run_id", x.run.ID, "error", err)
	if !x.finish() {
		return
	}
	x.seat.w.Cancel(x.run.ID, agent.CancelFenced, "storage failed")
	x.e.giveBack(x.seat)
	go func() {
		defer x.e.running.Done()
		x.requeue(false)
	}()
}

// finish claims the right to end this attempt.
func (x *execution) finish() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over {
		return false
	}
	x.over = true
	x.e.meter.execution.observe(x.e.clock().Sub(x.began))
	for _, timer := range []*time.Timer{x.timeout, x.grace} {
		if timer != nil {
			timer.Stop()
		}
	}
	return true
}

func (x *execution) expired() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.timedOut
}

func (x *execution) conclude(d agent.Done) {
	defer x.e.running.Done()
	if d.Status == "error" && d.Retriable {
		x.requeue(false)
		return
	}
	x.store(d)
}

// store makes the end durable and then tells everybody.
func (x *execution) store(d agent.Done) {
	x.undo()
	f := agent.Finish{Fence: fenceOf(x.run), Snapshot: d.Snapshot}
	f.Status, f.Failure = x.verdict(d)
	if f.Status == agent.RunSuccess {
		x.urls = x.tellFeedback()
	}
	f.Tail = x.t.reserveTail()
	finished, err := retry(x, func() (agent.Finished, error) {
		f.Now = x.e.clock()
		return x.e.store.Finish(context.Background(), f)
	})
	x.settle(finished, err, d.Snapshot)
}

func (x *execution) verdict(d agent.Done) (agent.RunStatus, *agent.Failure) {
	switch {
	case d.Status == "success":
		return agent.RunSuccess, nil
	case x.expired():
		return agent.RunTimeout, &agent.Failure{Error: "TimeoutError", Message: "Run exceeded maximum execution time"}
	case d.Status == "cancelled":
		return agent.RunInterrupted, d.Failure
	case d.Failure == nil:
		return agent.RunError, &agent.Failure{Error: "Error", Message: "the graph failed without saying why"}
	}
	return agent.RunError, d.Failure
}

// requeue gives the run back, or ends it where its attempts are used up or a cancel is recorded. Frames that are kept go
// before it: whoever claims the run next numbers his own after them.
func (x *execution) requeue(free bool) {
	x.undo()
	x.t.flushed()
	finished, err := retry(x, func() (agent.Finished, error) {
		return x.e.store.Requeue(context.Background(), fenceOf(x.run), free, x.e.cfg.MaxAttempts, x.e.clock())
	})
	if err == nil && finished.Outcome == "" {
		x.e.meter.requeued(x.run.ID, free, x.e.clock())
		x.leave()
		x.e.wakeAll()
		return
	}
	x.settle(finished, err, nil)
}

// retry repeats a write that storage could not take; a claim that is over is final.
func retry(x *execution, write func() (agent.Finished, error)) (agent.Finished, error) {
	pause := 50 * time.Millisecond
	for attempt := 0; ; attempt++ {
		f, err := write()
		code := slipway.ErrorCode(err)
		if err == nil || code == slipway.CodeStale || code == slipway.CodeNotFound || attempt == 8 {
			return f, err
		}
		x.e.log.Error("recording the end of a run failed", "run_id", x.run.ID, "error", err)
		time.Sleep(pause)
		pause *= 2
	}
}

func (x *execution) settle(f agent.Finished, err error, s *agent.Snapshot) {
	if err != nil {
		x.e.meter.unrecorded.Add(1)
		x.e.log.Warn("run is no longer held by this server", "run_id", x.run.ID, "error", err)
		x.leave()
		return
	}
	x.e.meter.concluded(f, x.run.Attempt)
	res := Result{Run: f.Run, Outcome: f.Outcome, Body: withFeedback(body(f, s), f.Outcome, x.urls)}
	if res.Run.ID == "" {
		res.Run = x.run
	}
	x.e.noticeWritten(res.Run)
	x.e.mu.Lock()
	x.t.exec = nil
	x.e.mu.Unlock()
	x.t.settle(res)
	x.forgetAttempt()
	x.t.drop()
	x.e.publishEnd(x.t, res)
	if res.Run.Temporary {
		x.e.closeHub(res.Run.ThreadID)
	}
	if f.Thread != nil && f.Thread.Status == agent.ThreadBusy {
		x.e.wakeAll()
	}
}

// leave takes the execution off its track, which then follows whoever claims the run next.
func (x *execution) leave() {
	x.t.unhub()
	x.forgetAttempt()
	x.e.mu.Lock()
	x.t.exec = nil
	x.t.asked = nil
	x.e.mu.Unlock()
	x.t.drop()
	if x.e.watched(x.t) {
		x.t.attach()
	}
}

// handBack returns a run that did not finish within the grace period of a drain.
func (x *execution) handBack() {
	if !x.finish() {
		return
	}
	x.e.meter.abandoned.Add(1)
	x.e.log.Info("run handed back", "run_id", x.run.ID, "attempt", x.run.Attempt)
	x.requeue(true)
	x.e.running.Done()
}

// expire ends a run that takes longer than it may.
func (x *execution) expire() {
	x.mu.Lock()
	x.timedOut = true
	x.mu.Unlock()
	x.cancel(string(agent.CancelInterrupt), "Run exceeded maximum execution time")
}

// cancel tells the worker to stop the run and kills the worker if it does not within the grace period.
func (x *execution) cancel(action, reason string) {
	x.mu.Lock()
	if x.over {
		x.mu.Unlock()
		return
	}
	x.action = action
	if x.grace == nil {
		x.grace = time.AfterFunc(x.e.cfg.CancelGrace, func() {
			x.e.log.Warn("run did not stop, its worker is killed", "run_id", x.run.ID, "worker", x.seat.info.ID)
			x.seat.w.Kill("run " + x.run.ID + " did not stop when it was cancelled")
		})
	}
	x.mu.Unlock()
	x.seat.w.Cancel(x.run.ID, action, reason)
}
