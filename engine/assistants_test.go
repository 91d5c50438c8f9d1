package engine_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/engine"
	"github.com/slipway-dev/slipway/worker/fake"
)

func raw(s string) json.RawMessage { return json.RawMessage(s) }

func TestAssistantSharesConfigurableAndContext(t *testing.T) {
	t.Parallel()
	s := newWorld(t).start("a", 0, map[string]fake.Graph{"agent": echo})
	for _, c := range []struct{ config, context, wantConfig, wantContext string }{
		{`{"configurable":{"m":1},"tags":["x"]}`, ``, `{"configurable":{"m":1},"tags":["x"]}`, `{"m":1}`},
		{``, `{"m":1}`, `{"configurable":{"m":1}}`, `{"m":1}`},
		{`{"configurable":{"a":1,"b":2}}`, `{"b":2,"a":1.0}`, `{"configurable":{"a":1,"b":2}}`, `{"a":1.0,"b":2}`},
		{``, ``, `{}`, `{}`},
	} {
		a, err := s.CreateAssistant(t.Context(), agent.Assistant{GraphID: "agent", Config: raw(c.config), Context: raw(c.context)}, false)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := string(a.Config)+string(a.Context), c.wantConfig+c.wantContext; got != want {
			t.Errorf("config %s, context %s: got %s, want %s", c.config, c.context, got, want)
		}
	}
	_, err := s.CreateAssistant(t.Context(), agent.Assistant{GraphID: "agent", Config: raw(`{"configurable":{"a":1}}`), Context: raw(`{"a":2}`)}, false)
	if slipway.ErrorCode(err) != slipway.CodeBadRequest {
		t.Errorf("different: got %v, want bad_request", err)
	}
	_, err = s.CreateAssistant(t.Context(), agent.Assistant{GraphID: "nope"}, false)
	if slipway.ErrorCode(err) != slipway.CodeNotFound || err.Error() != `Graph "nope" not found` {
		t.Errorf("unknown graph: got %v", err)
	}
}

// A change of a system assistant reaches every instance, whatever it has in memory.
func TestAssistantChangeReachesOtherInstances(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	graphs := map[string]fake.Graph{"agent": echo}
	one, two := w.start("one", 0, graphs), w.start("two", 0, graphs)
	if _, err := two.Assistant(t.Context(), "agent"); err != nil { // now it is in memory there
		t.Fatal(err)
	}
	name := "renamed"
	if _, err := one.PatchAssistant(t.Context(), "agent", agent.AssistantPatch{Name: &name}); err != nil {
		t.Fatal(err)
	}
	if a, err := one.Assistant(t.Context(), "agent"); err != nil || a.Name != name || a.Version != 2 {
		t.Fatalf("here: got %+v, %v", a, err)
	}
	deadline := time.Now().Add(time.Minute)
	for {
		a, err := two.Assistant(t.Context(), "agent")
		if err != nil {
			t.Fatal(err)
		}
		if a.Name == name {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the other instance still has the old assistant")
		}
		time.Sleep(time.Millisecond)
	}
}

func TestDeleteAssistantCancelsItsRunsAndTakesItsThreads(t *testing.T) {
	t.Parallel()
	g := newGate()
	s := newWorld(t).start("a", 2, map[string]fake.Graph{"agent": g.graph})
	a, err := s.CreateAssistant(t.Context(), agent.Assistant{GraphID: "agent", Name: "x"}, false)
	if err != nil {
		t.Fatal(err)
	}
	mine, other := s.thread(), s.thread()
	run := s.create(engine.RunRequest{AssistantID: a.ID, ThreadID: mine})
	kept := s.create(request(other, "agent", `{}`))
	g.await(t)
	g.await(t)
	if err := s.DeleteAssistant(t.Context(), a.ID, true); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Run(t.Context(), mine, run.ID); slipway.ErrorCode(err) != slipway.CodeNotFound {
		t.Errorf("its run: got %v, want not_found", err)
	}
	if _, err := s.Thread(t.Context(), mine); slipway.ErrorCode(err) != slipway.CodeNotFound {
		t.Errorf("its thread: got %v, want not_found", err)
	}
	close(g.let)
	s.wait(kept)
	if r, err := s.Run(t.Context(), other, kept.ID); err != nil || r.Status != agent.RunSuccess {
		t.Errorf("another assistant's run: got %+v, %v", r, err)
	}
	if err := s.DeleteAssistant(t.Context(), "agent", false); slipway.ErrorCode(err) != slipway.CodeInvalid {
		t.Errorf("system assistant: got %v, want invalid", err)
	}
}
