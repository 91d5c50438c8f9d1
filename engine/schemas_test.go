package engine_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/engine"
	"github.com/slipway-dev/slipway/worker/fake"
)

// describer answers graph.* calls with what it was asked and counts them.
type describer struct {
	mu    sync.Mutex
	calls []string
	hold  chan struct{} // nil = answers at once
	heard chan struct{} // with hold: gets one for every call
}

func (d *describer) answer(ctx context.Context, envelope json.RawMessage) (json.RawMessage, error) {
	d.mu.Lock()
	d.calls = append(d.calls, string(envelope))
	d.mu.Unlock()
	if d.hold != nil {
		d.heard <- struct{}{}
		select {
		case <-d.hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	switch {
	case strings.Contains(string(envelope), "graph.schemas"):
		return json.RawMessage(`{"state_schema":null,"input_schema":{"title":"<I>"},"own":1}`), nil
	case strings.Contains(string(envelope), "graph.draw"):
		return json.RawMessage(`{"nodes":[],"edges":[]}`), nil
	}
	return json.RawMessage(`{"child":{"output_schema":{}}}`), nil
}

func (d *describer) asked() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.calls...)
}

func startDescribed(t *testing.T, d *describer, compiled bool) *server {
	t.Helper()
	graphs := map[string]fake.Graph{"g": echo}
	s := newWorld(t).start("a", 0, graphs)
	s.pool.Answer, s.pool.Compiled = d.answer, map[string]bool{"g": compiled}
	s.pool.Add(1, graphs)
	return s
}

func TestACompiledGraphIsDescribedOnce(t *testing.T) {
	t.Parallel()
	d := &describer{}
	s := startDescribed(t, d, true)
	other, err := s.CreateAssistant(t.Context(), agent.Assistant{GraphID: "g", Config: json.RawMessage(`{"configurable":{"k":1}}`)}, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"g", engine.AssistantID("g"), other.ID} {
		got, err := s.Schemas(t.Context(), id)
		if want := `{"graph_id":"g","input_schema":{"title":"\u003cI\u003e"},"state_schema":{}}`; err != nil || string(got) != want {
			t.Errorf("schemas: got %s, %v, want %s", got, err, want)
		}
	}
	if got := d.asked(); len(got) != 1 {
		t.Errorf("asked %d times: %s", len(got), got)
	}
	for xray, want := range map[engine.Xray]string{0: `"xray":false`, engine.XrayAll: `"xray":true`, 2: `"xray":2`} {
		if _, err := s.Drawing(t.Context(), "g", xray); err != nil {
			t.Fatal(err)
		}
		if got := d.asked(); !strings.Contains(got[len(got)-1], want) {
			t.Errorf("drawing %d: asked %s, want %s", xray, got[len(got)-1], want)
		}
	}
	for _, namespace := range []string{"", "child|grandchild"} {
		got, err := s.Subgraphs(t.Context(), "g", namespace, true)
		if want := `{"child":{"output_schema":{},"state_schema":{}}}`; err != nil || string(got) != want {
			t.Errorf("subgraphs: got %s, %v, want %s", got, err, want)
		}
	}
	if got := d.asked(); len(got) != 6 || !strings.Contains(got[5], `"namespace":"child|grandchild"`) || !strings.Contains(got[4], `"namespace":null`) {
		t.Errorf("asked %q", got)
	}
}

func TestAFactorysGraphIsDescribedPerConfiguration(t *testing.T) {
	t.Parallel()
	d := &describer{}
	s := startDescribed(t, d, false)
	other, err := s.CreateAssistant(t.Context(), agent.Assistant{GraphID: "g", Config: json.RawMessage(`{"configurable":{"k":1}}`)}, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"g", other.ID, "g", other.ID} {
		if _, err := s.Schemas(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	got := d.asked()
	if len(got) != 2 || !strings.Contains(got[1], `"k":1`) || !strings.Contains(got[1], other.ID) {
		t.Errorf("asked %d times: %s", len(got), got)
	}
	if _, err := s.PatchAssistant(t.Context(), other.ID, agent.AssistantPatch{Config: json.RawMessage(`{"configurable":{"k":2}}`)}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Schemas(t.Context(), other.ID); err != nil || len(d.asked()) != 3 {
		t.Errorf("after a new version: %v, asked %d times", err, len(d.asked()))
	}
}

func TestManyAskForOneDescriptionAtOnce(t *testing.T) {
	t.Parallel()
	d := &describer{hold: make(chan struct{}), heard: make(chan struct{}, 100)}
	s := startDescribed(t, d, true)
	first, leave := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() { _, err := s.Schemas(first, "g"); gone <- err }()
	<-d.heard
	leave()
	if err := <-gone; err == nil {
		t.Error("the first client has gone, and was answered")
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if _, err := s.Schemas(t.Context(), "g"); err != nil {
				t.Error(err)
			}
		})
	}
	close(d.hold)
	all.Wait()
	if got := len(d.asked()); got != 1 {
		t.Errorf("asked %d times, want once: the first client's leaving ends nothing", got)
	}
}

func TestDescriptionsOfWhatIsNotThere(t *testing.T) {
	t.Parallel()
	s := startDescribed(t, &describer{}, true)
	if _, err := s.Schemas(t.Context(), "nothing"); slipway.ErrorCode(err) != slipway.CodeNotFound {
		t.Errorf("unknown assistant: got %v", err)
	}
	for _, w := range s.pool.Workers() {
		w.Kill("gone")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Schemas(ctx, "g"); err == nil {
		t.Error("described without a worker")
	}
}
