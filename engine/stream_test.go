package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/engine"
	"github.com/slipway-dev/slipway/worker/fake"
)

func TestStreamTellsARunFromFirstToLastAndTheEndIsCommitted(t *testing.T) {
	t.Parallel()
	s := newWorld(t).start("a", 1, map[string]fake.Graph{"agent": echo})
	thread := s.thread()
	run, sub, err := s.StreamRun(t.Context(), request(thread, "agent", `{"x":1}`))
	if err != nil {
		t.Fatal(err)
	}
	for {
		f, err := sub.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if f.Event == "end" {
			break
		}
	}
	got, err := s.Run(t.Context(), thread, run.ID)
	if err != nil || got.Status != agent.RunSuccess {
		t.Errorf("run when end arrived: got %s, %v, want success", got.Status, err)
	}
	th, err := s.Thread(t.Context(), thread)
	if err != nil || th.Status != agent.ThreadIdle || string(th.Values) != `{"x":1}` {
		t.Errorf("thread when end arrived: got %s %s, %v", th.Status, th.Values, err)
	}
}

func TestStreamOrder(t *testing.T) {
	t.Parallel()
	s := newWorld(t).start("a", 1, map[string]fake.Graph{"agent": func(_ context.Context, r *fake.Run) agent.Done {
		r.Chunk("values", `1`)
		r.Chunk("values", `2`)
		return fake.Failed("ValueError", "no")
	}})
	run, sub, err := s.StreamRun(t.Context(), request(s.thread(), "agent", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	want := `metadata {"run_id":"` + run.ID + `","attempt":1}` + "\nvalues 1\nvalues 2\n" +
		`error {"error":"ValueError","message":"no"}` + "\n" + `end {"run_id":"` + run.ID + `","status":"error"}` + "\n"
	if got := tell(frames(t, sub)); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got, want := string(s.wait(run).Body), `{"__error__":{"error":"ValueError","message":"no"}}`; got != want {
		t.Errorf("wait: got %s, want %s", got, want)
	}
}

func TestResumableStreamIsReplayedWithoutGapOrDuplicate(t *testing.T) {
	t.Parallel()
	const chunks = 300
	step := make(chan struct{})
	graph := func(_ context.Context, r *fake.Run) agent.Done {
		for i := range chunks {
			if i%50 == 0 {
				<-step
			}
			r.Chunk("values", fmt.Sprint(i))
		}
		return r.Success("", `{}`)
	}
	w := newWorld(t)
	s := w.start("a", 1, map[string]fake.Graph{"agent": graph})
	r := request(s.thread(), "agent", `{}`)
	r.StreamResumable = true
	run, whole, err := s.StreamRun(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	var got []agent.Frame
	last := "-1"
	for len(got) == 0 || got[len(got)-1].Event != "end" {
		select {
		case step <- struct{}{}:
		default:
		}
		sub, err := s.JoinStream(t.Context(), run.ThreadID, run.ID, engine.From{LastEventID: last})
		if err != nil {
			t.Fatal(err)
		}
		for range 7 { // then the connection is cut
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			f, err := sub.Next(ctx)
			cancel()
			if err != nil {
				break
			}
			got = append(got, f)
			last = f.ID
		}
		sub.Close()
	}
	want := frames(t, whole)
	if len(want) != chunks+2 || tell(got) != tell(want) {
		t.Errorf("got %d frames\n%.300s\nwant %d frames\n%.300s", len(got), tell(got), len(want), tell(want))
	}
	s.stop()
	again := w.start("b", 1, map[string]fake.Graph{"agent": graph})
	sub, err := again.JoinStream(t.Context(), run.ThreadID, run.ID, engine.From{LastEventID: want[10].ID})
	if err != nil {
		t.Fatal(err)
	}
	if got := tell(frames(t, sub)); got != tell(want[11:]) {
		t.Errorf("after a restart got\n%.300s\nwant\n%.300s", got, tell(want[11:]))
	}
}

func TestSlowReaderLosesOnlyItsOwnStream(t *testing.T) {
	t.Parallel()
	s := newWorld(t).start("a", 1, map[string]fake.Graph{"agent": func(_ context.Context, r *fake.Run) agent.Done {
		for i := range 100 {
			r.Chunk("values", fmt.Sprint(i))
		}
		return r.Success("", `{}`)
	}}, func(c *engine.Config) { c.Buffer = 10 })
	run, sub, err := s.StreamRun(t.Context(), request(s.thread(), "agent", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	if res := s.wait(run); res.Outcome != agent.RunSuccess {
		t.Errorf("run: got %s, want success", res.Outcome)
	}
	if _, err := sub.Next(t.Context()); slipway.ErrorCode(err) != slipway.CodeUnavailable {
		t.Errorf("slow reader: got %v, want unavailable", err)
	}
}
