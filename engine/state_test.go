package engine_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/engine"
	"github.com/slipway-dev/slipway/worker/fake"
)

// The state of a thread at work is what its run has reached, and that of its last run where no worker can tell.
func TestStateOfAThreadAtWork(t *testing.T) {
	t.Parallel()
	s, started, goOn := stepping(t)
	live := func(context.Context, json.RawMessage) (json.RawMessage, error) { return json.RawMessage(`"live"`), nil }
	gone := func(context.Context, json.RawMessage) (json.RawMessage, error) {
		return nil, slipway.Errorf(slipway.CodeUnavailable, "no worker")
	}
	thread := s.thread()
	for run, last := range []string{`{}`, `{"n":1}`} {
		r := s.create(request(thread, "agent", `{}`))
		<-started
		s.pool.Answer = live
		if got := s.state(thread); got != `"live"` {
			t.Errorf("run %d: got %s while it goes on, want what the worker tells", run, got)
		}
		s.pool.Answer = gone
		var told struct{ Values json.RawMessage }
		if err := json.Unmarshal([]byte(s.state(thread)), &told); err != nil {
			t.Fatal(err)
		}
		if got := string(told.Values); got != last {
			t.Errorf("run %d: got values %s without a worker, want those of the last run, %q", run, got, last)
		}
		goOn <- struct{}{}
		s.wait(r)
		if err := json.Unmarshal([]byte(s.state(thread)), &told); err != nil || string(told.Values) != `{"n":1}` {
			t.Errorf("run %d: got values %s (%v) after its end", run, told.Values, err)
		}
	}
}

// stepping is a server with a graph that tells when it has started and ends when it is told to.
func stepping(t *testing.T) (s *server, started, goOn chan struct{}) {
	started, goOn = make(chan struct{}), make(chan struct{})
	n := 0
	s = newWorld(t).start("a", 1, map[string]fake.Graph{"agent": func(_ context.Context, r *fake.Run) agent.Done {
		n++
		started <- struct{}{}
		<-goOn
		return r.Success(checkpointID(n), `{"n":1}`)
	}})
	return s, started, goOn
}

func (s *server) state(thread string) string {
	s.t.Helper()
	got, err := s.State(s.t.Context(), engine.StateRequest{ThreadID: thread})
	if err != nil {
		s.t.Fatal(err)
	}
	return string(got)
}

// A thread whose last run is deleted shows the state that the others left, and none without any.
func TestDeletingAnEndedRunTakesItsState(t *testing.T) {
	t.Parallel()
	n := 0
	s := newWorld(t).start("a", 1, map[string]fake.Graph{"agent": func(_ context.Context, r *fake.Run) agent.Done {
		n++
		r.Checkpoint(checkpointID(n), `{"n":1}`)
		return r.Success(checkpointID(n), `{"n":1}`)
	}})
	s.pool.Answer = func(context.Context, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(`{"values":{"n":"before"},"next":["x"],"tasks":[],"checkpoint":{"checkpoint_id":"` + checkpointID(1) + `"}}`), nil
	}
	thread := s.thread()
	first, second := s.create(request(thread, "agent", `{}`)), s.create(request(thread, "agent", `{}`))
	s.wait(first)
	s.wait(second)
	for _, c := range []struct {
		run    agent.Run
		values string
		status agent.ThreadStatus
	}{{second, `{"n":"before"}`, agent.ThreadInterrupted}, {first, "", agent.ThreadIdle}} {
		if err := s.DeleteRun(t.Context(), thread, c.run.ID); err != nil {
			t.Fatal(err)
		}
		th, err := s.Thread(t.Context(), thread)
		if err != nil || string(th.Values) != c.values || th.Status != c.status {
			t.Errorf("got %s with the values %s (%v), want %s with %s", th.Status, th.Values, err, c.status, c.values)
		}
	}
}

// A checkpoint that the thread does not have is not taken for an empty state to begin with.
func TestUpdatingAnUnknownCheckpointIsRefused(t *testing.T) {
	t.Parallel()
	s, started, goOn := stepping(t)
	thread := s.thread()
	r := s.create(request(thread, "agent", `{}`))
	<-started
	goOn <- struct{}{}
	s.wait(r)
	s.pool.Answer = func(context.Context, json.RawMessage) (json.RawMessage, error) {
		t.Error("a worker was asked")
		return json.RawMessage(`{}`), nil
	}
	_, err := s.UpdateState(t.Context(), engine.StateUpdate{ThreadID: thread, Values: json.RawMessage(`{}`), Checkpoint: agent.CheckpointKey{ID: checkpointID(9)}})
	if slipway.ErrorCode(err) != slipway.CodeNotFound {
		t.Errorf("got %v, want not_found", err)
	}
}

// A run from a checkpoint that the thread does not have is refused: its graph would begin anew and hide the conversation.
func TestARunFromAnUnknownCheckpointIsRefused(t *testing.T) {
	t.Parallel()
	s := newWorld(t).start("a", 1, map[string]fake.Graph{"agent": func(_ context.Context, r *fake.Run) agent.Done {
		r.Checkpoint(checkpointID(1), `{}`)
		return r.Success(checkpointID(1), string(r.Job.Run.Kwargs.Config))
	}})
	thread := s.thread()
	s.wait(s.create(request(thread, "agent", `{"n":1}`)))
	known := request(thread, "agent", `{}`)
	known.CheckpointID = checkpointID(1)
	if got := string(s.wait(s.create(known)).Body); !strings.Contains(got, `"checkpoint_id":"`+checkpointID(1)+`"`) {
		t.Errorf("a run from a checkpoint has the config %s", got)
	}
	before := s.state(thread)
	for name, r := range map[string]engine.RunRequest{
		"checkpoint":    {Checkpoint: json.RawMessage(`{"checkpoint_id":"1f000000-0000-6000-8000-000000000000"}`)},
		"checkpoint_id": {CheckpointID: "1f000000-0000-6000-8000-000000000000"},
	} {
		r.ThreadID, r.AssistantID, r.Input = thread, "agent", json.RawMessage(`{"n":2}`)
		if _, err := s.CreateRun(t.Context(), r); slipway.ErrorCode(err) != slipway.CodeNotFound {
			t.Errorf("%s: got %v, want a refusal", name, err)
		}
	}
	if got := s.state(thread); got != before {
		t.Errorf("the state is %s, want %s", got, before)
	}
}
