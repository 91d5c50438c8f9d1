package agentapi_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/slipway-dev/slipway/api/agentapi"
	"github.com/slipway-dev/slipway/engine"
)

// stateful has a state whose keys a graph chose freely.
type stateful struct {
	fake
	state string
}

func (f *stateful) State(context.Context, engine.StateRequest) (json.RawMessage, error) {
	return json.RawMessage(f.state), nil
}

func TestSelectedKeysAreAnsweredOnceAndAsTheyAre(t *testing.T) {
	t.Parallel()
	f := &stateful{state: `{"values":{"a":1,"\u007f\ud83e\uddff\u0007\u200b":2},"next":[]}`}
	for selected, want := range map[string]string{
		"values.a&select=values.a":                           `{"values":{"a":1}}`,
		"values.%7F%F0%9F%A7%BF%07%E2%80%8B&select=values.b": "{\"values\":{\"\u007f\U0001f9ff\\u0007\u200b\":2}}",
	} {
		w := httptest.NewRecorder()
		api := agentapi.New(f, agentapi.Config{Log: slog.New(slog.DiscardHandler)})
		api.ServeHTTP(w, httptest.NewRequest("GET", "/threads/"+thread+"/state?select="+selected, nil))
		if got := w.Body.String(); w.Code != http.StatusOK || got != want {
			t.Errorf("%s: got %d %s, want %s", selected, w.Code, got, want)
		}
	}
}

// onThread is a stream that knows its thread, as the engine's do.
type onThread struct{ stream }

func (*onThread) ThreadID() string { return thread }

type joining struct{ fake }

func (*joining) JoinStream(context.Context, string, string, engine.From) (agentapi.Stream, error) {
	return &onThread{}, nil
}

func TestAJoinedStatelessRunTellsItsThread(t *testing.T) {
	t.Parallel()
	for want, f := range map[string]agentapi.Engine{
		"/threads/" + thread + "/runs/" + runID + "/stream?stream_mode=custom": &joining{},
		"/runs/" + runID + "/stream?stream_mode=custom":                        &fake{},
	} {
		w := httptest.NewRecorder()
		api := agentapi.New(f, agentapi.Config{Log: slog.New(slog.DiscardHandler)})
		api.ServeHTTP(w, httptest.NewRequest("GET", "/runs/"+runID+"/stream?stream_mode=custom", nil))
		if got := w.Header().Get("Location"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
