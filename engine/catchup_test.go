package engine_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/engine"
	"github.com/slipway-dev/slipway/worker/fake"
)

// deaf is a bus that can lose what it publishes, as a broken connection does.
type deaf struct {
	agent.Bus
	mu   sync.Mutex
	lose func(topic string) bool
}

func (d *deaf) Publish(topic string, payload []byte) {
	d.mu.Lock()
	lost := d.lose != nil && d.lose(topic)
	d.mu.Unlock()
	if !lost {
		d.Bus.Publish(topic, payload)
	}
}

func (d *deaf) loses(lose func(topic string) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lose = lose
}

func all(string) bool { return true }

// deafWorld has two servers, of which the first executes, and their buses.
func deafWorld(t *testing.T, g *gate) (first, second *server, buses []*deaf) {
	t.Helper()
	w := newWorld(t)
	w.bus = func(b agent.Bus) agent.Bus {
		d := &deaf{Bus: b}
		buses = append(buses, d)
		return d
	}
	graphs := map[string]fake.Graph{"agent": g.graph}
	first, second = w.start("first", 1, graphs), w.start("second", 0, graphs)
	return first, second, buses
}

func TestAnEndThatWasLostBetweenServersIsFoundInTheStore(t *testing.T) {
	t.Parallel()
	g := newGate()
	first, second, buses := deafWorld(t, g)
	run := first.create(request(first.thread(), "agent", `{}`))
	g.await(t)
	ended := make(chan engine.Result, 1)
	go func() {
		res, err := second.Wait(t.Context(), run.ThreadID, run.ID)
		if err != nil {
			t.Error(err)
		}
		ended <- res
	}()
	stream, err := second.JoinStream(t.Context(), run.ThreadID, run.ID, engine.From{})
	if err != nil {
		t.Fatal(err)
	}
	buses[0].loses(all)
	close(g.let)
	first.wait(run)
	buses[0].loses(nil)
	buses[1].Publish(agent.TopicMissed, nil)
	if res := <-ended; res.Outcome != agent.RunSuccess {
		t.Errorf("got %s, want success", res.Outcome)
	}
	if _, err := stream.Next(t.Context()); slipway.ErrorCode(err) != slipway.CodeUnavailable {
		t.Errorf("the stream, whose last frames are lost: got %v, want it broken off", err)
	}
}

func TestACancelThatWasLostBetweenServersIsFoundInTheStore(t *testing.T) {
	t.Parallel()
	g := newGate()
	first, second, buses := deafWorld(t, g)
	run := first.create(request(first.thread(), "agent", `{}`))
	g.await(t)
	buses[1].loses(all)
	if err := second.Cancel(t.Context(), run.ThreadID, run.ID, agent.CancelInterrupt, "", false); err != nil {
		t.Fatal(err)
	}
	buses[1].loses(nil)
	buses[0].Publish(agent.TopicMissed, nil)
	if res := first.wait(run); res.Outcome != agent.RunInterrupted {
		t.Errorf("got %s, want interrupted", res.Outcome)
	}
}

func TestAStreamWithAGapIsBrokenOff(t *testing.T) {
	t.Parallel()
	g := newGate()
	first, second, buses := deafWorld(t, g)
	r := request(first.thread(), "agent", `{}`)
	r.StreamResumable = true
	run := first.create(r)
	inside := g.await(t)
	stream, err := second.JoinStream(t.Context(), run.ThreadID, run.ID, engine.From{LastEventID: "-1"}) // returns when frames come here
	if err != nil {
		t.Fatal(err)
	}
	inside.Chunk("values", `"before"`)
	expect := func(want string) error {
		for {
			f, err := stream.Next(t.Context())
			if err != nil || string(f.Data) == want {
				return err
			}
		}
	}
	if err := expect(`"before"`); err != nil {
		t.Fatal(err)
	}
	inside.Chunk("values", `"heard"`)
	if err := expect(`"heard"`); err != nil {
		t.Fatal(err)
	}
	buses[0].loses(func(topic string) bool { return strings.HasPrefix(topic, "frames/") })
	inside.Chunk("values", `"lost"`)
	buses[0].loses(nil)
	inside.Chunk("values", `"after"`)
	if err := expect(`"lost"`); err != nil && slipway.ErrorCode(err) != slipway.CodeUnavailable {
		t.Errorf("got %v, want the frame, or the stream broken off", err)
	}
	close(g.let)
}

func TestAFollowerOfAThreadFindsLostFramesInTheStore(t *testing.T) {
	t.Parallel()
	g := newGate()
	first, second, buses := deafWorld(t, g)
	thread := first.thread()
	f := second.follow(thread, "")
	buses[0].loses(func(topic string) bool { return strings.HasPrefix(topic, "thread/") })
	run := first.create(request(thread, "agent", `{}`))
	g.await(t).Chunk("values", `1`)
	close(g.let)
	first.wait(run)
	buses[0].loses(nil)
	buses[1].Publish(agent.TopicMissed, nil)
	if got, want := tell(f.runs(1)), of(run, "success", "1"); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	buses[0].loses(func(topic string) bool { return strings.HasPrefix(topic, "thread/") })
	lost := first.create(request(thread, "agent", `{}`))
	g.await(t)
	first.wait(lost)
	buses[0].loses(nil)
	next := first.create(request(thread, "agent", `{}`))
	if got, want := tell(f.runs(2)), of(lost, "success")+of(next, "success"); got != want {
		t.Errorf("whose loss only the next run shows: got\n%swant\n%s", got, want)
	}
}

func TestAFollowerThatMissesAFrameIsBrokenOff(t *testing.T) {
	t.Parallel()
	g := newGate()
	first, second, buses := deafWorld(t, g)
	thread := first.thread()
	f := second.follow(thread, "")
	first.create(request(thread, "agent", `{}`))
	run := g.await(t)
	last := f.next()
	buses[0].loses(func(topic string) bool { return strings.HasPrefix(topic, "thread/") })
	run.Chunk("values", `1`)
	buses[0].loses(nil)
	run.Chunk("values", `2`)
	if _, err := f.s.Next(t.Context()); slipway.ErrorCode(err) != slipway.CodeUnavailable {
		t.Errorf("got %v, want it broken off", err)
	}
	close(g.let)
	if got := tell(second.follow(thread, last.ID).runs(1)); !strings.HasPrefix(got, "values 1\nvalues 2\nend ") {
		t.Errorf("connected again: got\n%s", got)
	}
}
