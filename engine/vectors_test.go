package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/engine"
	"github.com/slipway-dev/slipway/worker/fake"
)

// embedder is a scripted embedding function: two dimensions that count the letters a and b.
type embedder struct {
	mu    sync.Mutex
	asked [][]string
	fail  error
}

func (e *embedder) answer(_ context.Context, envelope json.RawMessage) (json.RawMessage, error) {
	var call struct {
		Verb  string
		Texts []string
	}
	if err := json.Unmarshal(envelope, &call); err != nil || call.Verb != "embed.texts" {
		return nil, fmt.Errorf("unexpected call %s", envelope)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked = append(e.asked, call.Texts)
	if e.fail != nil || slices.ContainsFunc(call.Texts, func(t string) bool { return strings.Contains(t, "poison") }) {
		return nil, slipway.Errorf(slipway.CodeInvalid, "ValueError: no: %w", errors.Join(e.fail))
	}
	var vectors [][]float32
	for _, t := range call.Texts {
		vectors = append(vectors, []float32{float32(strings.Count(t, "a")), float32(strings.Count(t, "b"))})
	}
	return json.Marshal(vectors)
}

func (e *embedder) calls() [][]string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.asked)
}

// indexed starts a server with an index over a scripted embedding function.
func (w *world) indexed(name string, e *embedder, x agent.Index) *server {
	w.t.Helper()
	s := w.start(name, 0, map[string]fake.Graph{"agent": echo}, func(c *engine.Config) { c.Index = &x })
	s.pool.Answer = e.answer
	s.pool.Parts = map[agent.PartName]*agent.PartInfo{agent.PartEmbed: {}}
	s.pool.Add(1, map[string]fake.Graph{"agent": echo})
	return s
}

func put(key, value string) agent.StoreOp {
	return agent.StoreOp{Put: &agent.PutOp{Namespace: []string{"n"}, Key: key, Value: json.RawMessage(value)}}
}

func query(text string) agent.StoreOp {
	return agent.StoreOp{Search: &agent.SearchOp{Prefix: []string{"n"}, Query: text, Limit: 10}}
}

// found are keys with their scores in hundredths.
func (s *server) found(text string) string {
	s.t.Helper()
	out, err := s.StoreBatch(s.t.Context(), []agent.StoreOp{query(text)})
	if err != nil {
		s.t.Fatal(err)
	}
	return scores(out[0])
}

func scores(r agent.StoreResult) string {
	var b strings.Builder
	for _, i := range r.Items {
		b.WriteString(i.Key)
		if i.Score != nil {
			fmt.Fprintf(&b, "=%.0f", *i.Score*100)
		}
		b.WriteString(" ")
	}
	return b.String()
}

func TestItemsAreFoundByLikeness(t *testing.T) {
	t.Parallel()
	e := &embedder{}
	s := newWorld(t).indexed("a", e, agent.Index{Dims: 2, Embed: "x:y", Fields: []string{"text"}})
	never, own := put("never", `{"text":"aaa"}`), put("own", `{"text":"bbb","more":["b","aab"]}`)
	never.Put.Index, own.Put.Index = json.RawMessage(`false`), json.RawMessage(`["more[*]"]`)
	out, err := s.StoreBatch(t.Context(), []agent.StoreOp{
		put("a", `{"text":"aa"}`), put("b", `{"text":"b"}`), put("ab", `{"text":"ab"}`), put("none", `{"other":"a"}`), never, own, query("a"), query("a"),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "a=100 own=89 ab=71 b=0 "
	for _, i := range []int{6, 7} {
		if got := scores(out[i]); !strings.HasPrefix(got, want) || !strings.Contains(got, "none ") || !strings.Contains(got, "never ") {
			t.Errorf("in the batch: got %s, want %s and two without score", got, want)
		}
	}
	if calls := e.calls(); len(calls) != 1 || len(calls[0]) != 5 {
		t.Errorf("the embedding function was asked %q, want once for five texts", calls)
	}
	if got := s.found("a"); !strings.HasPrefix(got, want) {
		t.Errorf("later: got %s, want %s", got, want)
	}
	if calls := e.calls(); len(calls) != 2 {
		t.Errorf("a search asked %d times, want once", len(calls)-1)
	}
}

func TestItemsStayWhenEmbeddingFails(t *testing.T) {
	t.Parallel()
	e := &embedder{fail: errors.New("quota exceeded")}
	s := newWorld(t).indexed("a", e, agent.Index{Dims: 2, Embed: "x:y"})
	_, err := s.StoreBatch(t.Context(), []agent.StoreOp{put("k", `{"text":"a"}`)})
	if slipway.ErrorCode(err) != slipway.CodeUnavailable || !strings.Contains(err.Error(), "quota exceeded") || !strings.Contains(err.Error(), "are stored") {
		t.Errorf("put: got %v", err)
	}
	out, err := s.StoreBatch(t.Context(), []agent.StoreOp{{Get: &agent.GetOp{Namespace: []string{"n"}, Key: "k"}}})
	if err != nil || out[0].Item == nil {
		t.Fatalf("the item did not stay: %v", err)
	}
	if _, err := s.StoreBatch(t.Context(), []agent.StoreOp{query("a")}); slipway.ErrorCode(err) != slipway.CodeUnavailable {
		t.Errorf("search: got %v, want unavailable", err)
	}
	bad := put("k", `{}`)
	bad.Put.Index = json.RawMessage(`["a[x]"]`)
	if _, err := s.StoreBatch(t.Context(), []agent.StoreOp{bad}); slipway.ErrorCode(err) != slipway.CodeInvalid || !strings.Contains(err.Error(), "a[x]") {
		t.Errorf("bad path: got %v", err)
	}
}

func TestVectorsOfTheWrongLengthAreRefused(t *testing.T) {
	t.Parallel()
	s := newWorld(t).indexed("a", &embedder{}, agent.Index{Dims: 3, Embed: "x:y"})
	_, err := s.StoreBatch(t.Context(), []agent.StoreOp{put("k", `{"text":"a"}`)})
	if err == nil || !strings.Contains(err.Error(), "a vector of 2 numbers where store.index.dims is 3") {
		t.Errorf("got %v", err)
	}
}

// TestItemsAreIndexedAnew: a changed configuration, and items that nobody could embed when they were put. What cannot be
// embedded does not keep the others from it.
func TestItemsAreIndexedAnew(t *testing.T) {
	t.Parallel()
	w, e := newWorld(t), &embedder{}
	plain := w.start("plain", 0, map[string]fake.Graph{"agent": echo})
	var ops []agent.StoreOp
	for i := range 150 {
		ops = append(ops, put(fmt.Sprintf("k%03d", i), fmt.Sprintf(`{"text":%q,"more":"b"}`, strings.Repeat("b", i)+"a")))
	}
	ops[70].Put.Value = json.RawMessage(`{"text":"poison"}`)
	if _, err := plain.StoreBatch(t.Context(), ops); err != nil {
		t.Fatal(err)
	}
	plain.stop()
	first := w.indexed("first", e, agent.Index{Dims: 2, Embed: "x:y", Fields: []string{"text"}})
	first.awaitIndexed(agent.Index{Dims: 2, Embed: "x:y", Fields: []string{"text"}}, 1)
	if got := first.found("a"); !strings.HasPrefix(got, "k000=100 k001=71 k002=45 ") {
		t.Errorf("the first index: got %s", got)
	}
	first.stop()
	second := w.indexed("second", e, agent.Index{Dims: 2, Embed: "x:y", Fields: []string{"more"}})
	second.awaitIndexed(agent.Index{Dims: 2, Embed: "x:y", Fields: []string{"more"}}, 0)
	if got := second.found("b"); strings.Count(got, "=100") != 10 {
		t.Errorf("the second index: got %s", got)
	}
}

// awaitIndexed waits until no more than left items lack vectors.
func (s *server) awaitIndexed(x agent.Index, left int) {
	s.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		items, err := s.store.Unindexed(s.t.Context(), x.Name(), nil, 0, time.Now())
		if err != nil {
			s.t.Fatal(err)
		}
		if len(items) <= left {
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("%d items are not indexed", len(items))
		}
	}
}
