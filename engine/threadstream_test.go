package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/engine"
	"github.com/slipway-dev/slipway/worker/fake"
)

// follower reads a thread's stream.
type follower struct {
	t *testing.T
	s *engine.Subscription
}

func (s *server) follow(thread, from string) follower {
	s.t.Helper()
	sub, err := s.FollowThread(s.t.Context(), thread, from)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(sub.Close)
	return follower{s.t, sub}
}

func (f follower) next() agent.Frame {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 20*time.Second)
	defer cancel()
	frame, err := f.s.Next(ctx)
	if err != nil {
		f.t.Fatalf("next frame of the thread: %v", err)
	}
	return frame
}

// runs reads until n runs are done.
func (f follower) runs(n int) (all []agent.Frame) {
	f.t.Helper()
	for n > 0 {
		frame := f.next()
		all = append(all, frame)
		if done(frame) {
			n--
		}
	}
	return all
}

func done(f agent.Frame) bool {
	return f.Event == "metadata" && strings.Contains(string(f.Data), `"run_done"`)
}

// of is how a run without incident looks in its thread's stream.
func of(r agent.Run, outcome string, chunks ...string) string {
	text := `metadata {"run_id":"` + r.ID + `","attempt":1}` + "\n"
	for _, c := range chunks {
		text += "values " + c + "\n"
	}
	return text + `end {"run_id":"` + r.ID + `","status":"` + outcome + `"}` + "\n" + `metadata {"status":"run_done","run_id":"` + r.ID + `"}` + "\n"
}

func rising(t *testing.T, frames []agent.Frame) {
	t.Helper()
	for i, f := range frames {
		if f.ID == "" || i > 0 && agent.FramePosition(f.ID) <= agent.FramePosition(frames[i-1].ID) {
			t.Fatalf("frame %d %s has id %q after %q", i, f.Event, f.ID, frames[max(i-1, 0)].ID)
		}
	}
}

func TestThreadStreamTellsAllRunsOneAfterAnother(t *testing.T) {
	t.Parallel()
	s := newWorld(t).start("a", 4, map[string]fake.Graph{"agent": echo})
	thread := s.thread()
	f := s.follow(thread, "")
	var want string
	var runs []agent.Run
	for i := range 20 {
		runs = append(runs, s.create(request(thread, "agent", fmt.Sprint(i))))
		want += of(runs[i], "success", fmt.Sprint(i))
	}
	got := f.runs(len(runs))
	if tell(got) != want {
		t.Errorf("got\n%s\nwant\n%s", tell(got), want)
	}
	rising(t, got)
	again := s.follow(thread, "-").runs(len(runs))
	if tell(again) != want {
		t.Errorf("from the start got\n%s\nwant\n%s", tell(again), want)
	}
	if got[7].ID != again[7].ID {
		t.Errorf("replayed id: got %s, want %s", again[7].ID, got[7].ID)
	}
}

func TestThreadStreamGoesOnWhereAReaderLeftIt(t *testing.T) {
	t.Parallel()
	const chunks = 60
	graph := func(_ context.Context, r *fake.Run) agent.Done {
		for i := range chunks {
			r.Chunk("values", fmt.Sprint(i))
		}
		return r.Success("", `{}`)
	}
	w := newWorld(t)
	s := w.start("a", 1, map[string]fake.Graph{"agent": graph})
	thread := s.thread()
	whole := s.follow(thread, "")
	for range 4 {
		s.create(request(thread, "agent", `{}`))
	}
	want := whole.runs(4)
	var got []agent.Frame
	for last := "-"; len(got) < len(want); {
		f := s.follow(thread, last)
		for range 13 {
			if len(got) < len(want) {
				got = append(got, f.next())
			}
		}
		f.s.Close()
		last = got[len(got)-1].ID
	}
	if tell(got) != tell(want) {
		t.Errorf("got %d frames\n%.300s\nwant %d frames\n%.300s", len(got), tell(got), len(want), tell(want))
	}
	s.stop()
	again := w.start("b", 1, map[string]fake.Graph{"agent": graph})
	f := again.follow(thread, want[100].ID)
	next := again.create(request(thread, "agent", `{}`))
	got = f.runs(4)
	if len(got) != len(want)-101+chunks+3 || tell(got[:len(want)-101]) != tell(want[101:]) || !strings.Contains(tell(got), next.ID) {
		t.Errorf("after a restart got %d frames\n%.500s", len(got), tell(got))
	}
	rising(t, append(want[:101:101], got...))
}

// TestThreadStreamKeepsWhatComesWhileNobodyReads: a follower of a thread comes back after a restart and finds the run that
// began while there was no server it could have told.
func TestThreadStreamKeepsWhatComesWhileNobodyReads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.start("a", 0, map[string]fake.Graph{"agent": echo})
	thread := s.thread()
	f := s.follow(thread, "")
	run := s.create(request(thread, "agent", `1`))
	f.s.Close()
	s.stop()
	again := w.start("b", 1, map[string]fake.Graph{"agent": echo})
	again.wait(run)
	got := again.follow(thread, "1-0").runs(1)
	if tell(got) != of(run, "success", "1") {
		t.Errorf("got\n%s", tell(got))
	}
}

func TestThreadStreamAcrossInstances(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.start("a", 4, map[string]fake.Graph{"agent": echo})
	b := w.start("b", 4, map[string]fake.Graph{"agent": echo})
	thread := a.thread()
	at, bt := a.follow(thread, ""), b.follow(thread, "")
	var want string
	const runs = 10
	for i := range runs {
		s := []*server{a, b}[i%2]
		r := s.create(request(thread, "agent", fmt.Sprint(i)))
		s.wait(r)
		want += of(r, "success", fmt.Sprint(i))
	}
	for name, f := range map[string]follower{"a": at, "b": bt, "a again": a.follow(thread, "-"), "b again": b.follow(thread, "-1")} {
		got := f.runs(runs)
		if tell(got) != want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, tell(got), want)
		}
		rising(t, got)
	}
}

func TestThreadStreamIsJoinedAmidARunElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	steps := make(chan string)
	graph := func(_ context.Context, r *fake.Run) agent.Done {
		for v := range steps {
			r.Chunk("values", v)
			r.Chunk("values", v+v)
		}
		return r.Success("", `{}`)
	}
	a := w.start("a", 1, map[string]fake.Graph{"agent": graph})
	thread := a.thread()
	request := request(thread, "agent", `{}`)
	request.StreamResumable = true
	run := a.create(request)
	steps <- "1"
	b := w.start("b", 0, map[string]fake.Graph{"agent": graph})
	steps <- "2" // the chunks of 1 are told
	live, whole := b.follow(thread, ""), b.follow(thread, "-")
	steps <- "3"
	steps <- "4"
	close(steps)
	if got, want := tell(whole.runs(1)), of(run, "success", "1", "11", "2", "22", "3", "33", "4", "44"); got != want {
		t.Errorf("from the start got\n%s\nwant\n%s", got, want)
	}
	if got, want := tell(live.runs(1)), of(run, "success", "3", "33", "4", "44"); !strings.HasSuffix(got, want[strings.Index(want, "values"):]) {
		t.Errorf("live got\n%s\nwant it to end with\n%s", got, want)
	}
}

func TestThreadStreamShowsIDsOfPlainRunsToFollowersOnly(t *testing.T) {
	t.Parallel()
	s := newWorld(t).start("a", 1, map[string]fake.Graph{"agent": echo})
	thread := s.thread()
	f := s.follow(thread, "")
	_, sub, err := s.StreamRun(t.Context(), request(thread, "agent", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, frame := range frames(t, sub) {
		if frame.ID != "" {
			t.Errorf("frame %s of a run that is not resumable has id %s", frame.Event, frame.ID)
		}
	}
	rising(t, f.runs(1))
}

func TestThreadStreamTellsRunsThatNeverStarted(t *testing.T) {
	t.Parallel()
	s := newWorld(t).start("a", 0, map[string]fake.Graph{"agent": echo})
	thread := s.thread()
	f := s.follow(thread, "")
	run := s.create(request(thread, "agent", `{}`))
	if err := s.Cancel(t.Context(), thread, run.ID, agent.CancelInterrupt, "enough", true); err != nil {
		t.Fatal(err)
	}
	want := of(run, "interrupted")
	want = want[strings.Index(want, "end"):]
	if got := tell(f.runs(1)); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestThreadStreamTellsStateUpdates(t *testing.T) {
	t.Parallel()
	s := newWorld(t).start("a", 1, map[string]fake.Graph{"agent": echo})
	s.pool.Answer = func(context.Context, json.RawMessage) (json.RawMessage, error) {
		r := fake.Run{Job: agent.Job{}}
		return json.Marshal(map[string]any{"config": json.RawMessage(`{}`), "snapshot": r.Snapshot("c", `{"x":2}`)})
	}
	thread := s.thread()
	s.wait(s.create(request(thread, "agent", `{}`)))
	f := s.follow(thread, "")
	if _, err := s.UpdateState(t.Context(), engine.StateUpdate{ThreadID: thread, Values: json.RawMessage(`{"x":2}`)}); err != nil {
		t.Fatal(err)
	}
	frame := f.next()
	var got struct {
		ThreadID string `json:"thread_id"`
		State    struct{ Values map[string]int }
	}
	if err := json.Unmarshal(frame.Data, &got); err != nil || frame.Event != "state_update" || got.ThreadID != thread || got.State.Values["x"] != 2 {
		t.Errorf("got %s %s, %v", frame.Event, frame.Data, err)
	}
	if again := s.follow(thread, "-").next(); again.ID != frame.ID {
		t.Errorf("replayed: got id %s, want %s", again.ID, frame.ID)
	}
}

func TestThreadStreamEndsWithItsThread(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.start("a", 1, map[string]fake.Graph{"agent": echo})
	b := w.start("b", 1, map[string]fake.Graph{"agent": echo})
	thread := a.thread()
	here, there := a.follow(thread, ""), b.follow(thread, "")
	a.create(request(thread, "agent", `1`))
	here.runs(1)
	there.runs(1) // so they have met
	if err := a.DeleteThread(t.Context(), thread); err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]follower{"here": here, "there": there} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if _, err := f.s.Next(ctx); !errors.Is(err, io.EOF) {
			t.Errorf("%s: got %v, want EOF", name, err)
		}
	}
	if _, err := a.FollowThread(t.Context(), thread, ""); slipway.ErrorCode(err) != slipway.CodeNotFound {
		t.Errorf("following a thread that is gone: got %v", err)
	}
}

func TestThreadStreamAfterARollbackShowsNothingOfTheRun(t *testing.T) {
	t.Parallel()
	g := newGate()
	s := newWorld(t).start("a", 1, map[string]fake.Graph{"agent": g.graph})
	thread := s.thread()
	f := s.follow(thread, "")
	run := s.create(request(thread, "agent", `{}`))
	g.await(t).Chunk("values", `1`)
	if err := s.Cancel(t.Context(), thread, run.ID, agent.CancelRollback, "no", true); err != nil {
		t.Fatal(err)
	}
	if got, want := tell(f.runs(1)), of(run, "rollback", "1"); got != want {
		t.Errorf("live: got\n%swant\n%s", got, want)
	}
	kept, err := s.store.ThreadFrames(t.Context(), thread, 0, 0)
	if err != nil || len(kept) != 0 {
		t.Errorf("kept: got %d frames, %v, want none", len(kept), err)
	}
}

func TestSlowFollowerComesBackAndLosesNothing(t *testing.T) {
	t.Parallel()
	const chunks = 200
	read := make(chan struct{})
	s := newWorld(t).start("a", 1, map[string]fake.Graph{"agent": func(_ context.Context, r *fake.Run) agent.Done {
		<-read
		for i := range chunks {
			r.Chunk("values", fmt.Sprint(i))
		}
		return r.Success("", `{}`)
	}}, func(c *engine.Config) { c.Buffer = 10 })
	thread := s.thread()
	f := s.follow(thread, "")
	run := s.create(request(thread, "agent", `{}`))
	first := f.next()
	close(read)
	s.wait(run)
	for {
		if _, err := f.s.Next(t.Context()); err != nil {
			if slipway.ErrorCode(err) != slipway.CodeUnavailable {
				t.Errorf("slow reader: got %v, want unavailable", err)
			}
			break
		}
	}
	if got := s.follow(thread, first.ID).runs(1); len(got) != chunks+2 {
		t.Errorf("after coming back: got %d frames, want %d", len(got), chunks+2)
	}
}
