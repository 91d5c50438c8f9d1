package engine_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/engine"
	"github.com/slipway-dev/slipway/worker/fake"
)

func TestSuperstepsMakeTheFirstState(t *testing.T) {
	t.Parallel()
	s := newWorld(t).start("a", 1, map[string]fake.Graph{"agent": echo})
	var asked struct {
		Verb       string
		Supersteps json.RawMessage
	}
	s.pool.Answer = func(_ context.Context, envelope json.RawMessage) (json.RawMessage, error) {
		return raw(`{"config":{"configurable":{"checkpoint_id":"c"}},"snapshot":{"values":{"n":2},"next":[],"tasks":[]}}`), json.Unmarshal(envelope, &asked)
	}
	steps := [][]engine.NodeUpdate{{{Values: raw(`{"n":1}`), AsNode: "__start__"}}, {{Command: raw(`{"update":{"n":2}}`), AsNode: "b"}}}
	th, err := s.CreateThreadWith(t.Context(), agent.Thread{Metadata: raw(`{"graph_id":"agent"}`)}, false, steps)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(th.Values), `{"n":2}`; got != want {
		t.Errorf("values: got %s, want %s", got, want)
	}
	want := `[[{"values":{"n":1},"as_node":"__start__"}],[{"values":null,"command":{"update":{"n":2}},"as_node":"b"}]]`
	if asked.Verb != "state.update" || string(asked.Supersteps) != want {
		t.Errorf("asked: got %s %s, want %s", asked.Verb, asked.Supersteps, want)
	}
}

func TestAThreadWhoseSuperstepsFailIsNotMade(t *testing.T) {
	t.Parallel()
	s := newWorld(t).start("a", 1, map[string]fake.Graph{"agent": echo})
	s.pool.Answer = func(context.Context, json.RawMessage) (json.RawMessage, error) {
		return nil, slipway.Errorf(slipway.CodeInvalid, "node x does not exist")
	}
	steps := [][]engine.NodeUpdate{{{AsNode: "x"}}}
	_, err := s.CreateThreadWith(t.Context(), agent.Thread{ID: "t", Metadata: raw(`{"graph_id":"agent"}`)}, false, steps)
	if slipway.ErrorCode(err) != slipway.CodeInvalid {
		t.Errorf("got %v, want the graph's refusal", err)
	}
	if _, err := s.Thread(t.Context(), "t"); slipway.ErrorCode(err) != slipway.CodeNotFound {
		t.Errorf("the thread: got %v, want not_found", err)
	}
	if _, err := s.CreateThreadWith(t.Context(), agent.Thread{}, false, steps); slipway.ErrorCode(err) != slipway.CodeInvalid {
		t.Errorf("without graph_id: got %v, want invalid", err)
	}
}

// An expired thread is invisible at once; the sweeper stops its run and removes it.
func TestExpiredThreadsAreSwept(t *testing.T) {
	t.Parallel()
	g := newGate()
	s := newWorld(t).start("a", 1, map[string]fake.Graph{"agent": g.graph}, func(c *engine.Config) { c.SweepEvery = 5 * time.Millisecond })
	th, err := s.CreateThread(t.Context(), agent.Thread{}, false)
	if err != nil {
		t.Fatal(err)
	}
	run := s.create(request(th.ID, "agent", `{}`))
	g.await(t)
	if _, err := s.PatchThread(t.Context(), th.ID, nil, &agent.TTL{Strategy: agent.TTLDelete, Minutes: 1e-9}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Thread(t.Context(), th.ID); slipway.ErrorCode(err) != slipway.CodeNotFound {
		t.Errorf("at once: got %v, want not_found", err)
	}
	deadline := time.Now().Add(time.Minute)
	for {
		_, err := s.store.Run(t.Context(), th.ID, run.ID)
		if slipway.ErrorCode(err) == slipway.CodeNotFound {
			break
		}
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("the run is still there: %v", err)
		}
		time.Sleep(time.Millisecond)
	}
	if _, err := s.store.Thread(t.Context(), th.ID); slipway.ErrorCode(err) != slipway.CodeNotFound {
		t.Errorf("swept: got %v, want not_found", err)
	}
}

func TestThreadsGetTheConfiguredTTL(t *testing.T) {
	t.Parallel()
	rule := &agent.TTL{Strategy: agent.TTLKeepLatest, Minutes: 30}
	s := newWorld(t).start("a", 1, map[string]fake.Graph{"agent": echo}, func(c *engine.Config) { c.ThreadTTL = rule })
	implicit := request("0199f0a0-0000-7000-8000-000000000001", "agent", `{"x":1}`)
	implicit.CreateThread = true
	s.wait(s.create(implicit))
	for _, id := range []string{s.thread(), implicit.ThreadID} {
		th, err := s.Thread(t.Context(), id)
		if err != nil || th.TTL == nil || th.TTL.Strategy != agent.TTLKeepLatest || th.TTL.ExpiresAt.Before(th.UpdatedAt.Add(29*time.Minute)) {
			t.Errorf("thread %s: got %+v, %v", id, th.TTL, err)
		}
	}
}

func TestACopyOfAThreadAtWorkHasItsState(t *testing.T) {
	t.Parallel()
	s, started, goOn := stepping(t)
	thread := s.thread()
	r := s.create(request(thread, "agent", `{}`))
	<-started
	s.pool.Answer = func(context.Context, json.RawMessage) (json.RawMessage, error) {
		return raw(`{"values":{"n":7},"next":["b"],"tasks":[],"created_at":"2026-01-01T00:00:00Z","checkpoint":{}}`), nil
	}
	c, err := s.CopyThread(t.Context(), thread)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(c.Values); got != `{"n":7}` || c.Status != agent.ThreadInterrupted {
		t.Errorf("got values %s and status %s, want those of the last checkpoint", got, c.Status)
	}
	s.pool.Answer = func(context.Context, json.RawMessage) (json.RawMessage, error) {
		return nil, slipway.Errorf(slipway.CodeUnavailable, "no worker")
	}
	if _, err := s.CopyThread(t.Context(), thread); err != nil {
		t.Errorf("without a worker: %v", err)
	}
	goOn <- struct{}{}
	s.wait(r)
}
