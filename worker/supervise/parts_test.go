package supervise_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/worker/wire"
)

// toldParts is what the worker of these tests says of its parts.
const toldParts = `"parts":{"auth":{"ok":true,"handlers":["threads:create","*"],"authenticates":true},
"app":{"ok":false,"error":{"error":"LoadError","message":"./app.py:app is a string","trace":""}},
"encryption":{"ok":true,"json":true,"blob":false}}`

// answerTo refuses the call "refuse" as user code does, with a detail that is no string.
func answerTo(f wire.Frame) string {
	if strings.Contains(string(f.Envelope), `"refuse"`) {
		return `{"ok":false,"error":{"error":"HTTPException","message":{"why":"law"},"code":"http","status":451,"headers":[["x-why","law"]]}}`
	}
	return `{"ok":true}`
}

func TestPartsAreToldAsTheWorkerSaysThem(t *testing.T) {
	t.Parallel()
	_, _, w := start(t)
	parts := w.Info().Parts
	if got := parts[agent.PartAuth]; got == nil || got.Failure != nil || !got.Authenticates || !reflect.DeepEqual(got.Handlers, []string{"threads:create", "*"}) {
		t.Errorf("auth: got %+v", got)
	}
	if got := parts[agent.PartApp]; got == nil || got.Failure == nil || got.Failure.Message != "./app.py:app is a string" {
		t.Errorf("app: got %+v", got)
	}
	if got := parts[agent.PartEmbed]; got == nil || got.Failure == nil || !strings.Contains(got.Failure.Message, "said nothing about store.index.embed") {
		t.Errorf("a part the worker is silent about: got %+v", got)
	}
	if got := parts[agent.PartEncryption]; got != nil {
		t.Errorf("a part nobody asked for: got %+v", got)
	}
}

func TestACallCarriesBytesAndUserCodesRefusals(t *testing.T) {
	t.Parallel()
	_, _, w := start(t)
	got, err := w.Call(t.Context(), json.RawMessage(`{"verb":"x"}`), []byte("body"))
	if err != nil || string(got) != `{"verb":"x"}body` {
		t.Errorf("got %s, %v", got, err)
	}
	_, err = w.Call(t.Context(), json.RawMessage(`{"verb":"refuse"}`), nil)
	var refusal *agent.HTTPRefusal
	if !errors.As(err, &refusal) || refusal.Status != 451 || refusal.Detail != `{"why":"law"}` || refusal.Headers[0] != [2]string{"x-why", "law"} {
		t.Errorf("got %#v", err)
	}
	if _, err := w.Call(t.Context(), json.RawMessage(`{"verb":"again"}`), nil); err != nil {
		t.Errorf("the worker after a refusal: %v", err)
	}
}

func TestValuesThatUserCodePutsAside(t *testing.T) {
	t.Parallel()
	store := &values{kept: map[string]json.RawMessage{}, until: map[string]time.Time{}}
	_, _, w := startOver(t, store)
	asks := func(envelope string) string {
		t.Helper()
		s := newSink()
		j := job("asks")
		j.Run.Kwargs.Input = json.RawMessage(`{"ask":` + envelope + `}`)
		w.Run(j, s)
		return string(receive(t, s.done, "answer").Snapshot.Values)
	}
	if got := asks(`{"op":"value.get","key":"k"}`); got != `{"ok":true,"value":null}` {
		t.Errorf("before: got %s", got)
	}
	for _, set := range []string{`{"op":"value.set","key":"k","value":{"a":[1]},"ttl":60}`, `{"op":"value.set","key":"long","value":1,"ttl":1e300}`} {
		if got := asks(set); got != `{"ok":true}` {
			t.Errorf("set: got %s", got)
		}
	}
	if got := asks(`{"op":"value.get","key":"k"}`); got != `{"ok":true,"value":{"a":[1]}}` {
		t.Errorf("after: got %s", got)
	}
	if left := time.Until(store.until["long"]); left > agent.MaxValueLife || left < agent.MaxValueLife-time.Hour {
		t.Errorf("a value for ever: it lives for %v", left)
	}
	for _, bad := range []string{`{"op":"value.set","key":"","value":1}`, `{"op":"value.set","key":"k","value":1,"ttl":-1}`} {
		if got := asks(bad); !strings.Contains(got, `"code":"invalid"`) {
			t.Errorf("%s: got %s", bad, got)
		}
	}
}

// values is a store that keeps values only.
type values struct {
	agent.Store
	mu    sync.Mutex
	kept  map[string]json.RawMessage
	until map[string]time.Time
}

func (v *values) KeptValue(_ context.Context, key string, _ time.Time) (json.RawMessage, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.kept[key], nil
}

func (v *values) KeepValue(_ context.Context, key string, value json.RawMessage, until time.Time) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.kept[key], v.until[key] = value, until
	return nil
}
