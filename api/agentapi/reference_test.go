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

func TestAJoinedStatelessRunTellsItsThread(t *testing.T) {
	t.Parallel()
	w := send(t, &fake{}, "GET", "/runs/"+runID+"/stream?stream_mode=custom", "")
	if got, want := w.Header().Get("Location"), "/threads/"+thread+"/runs/"+runID+"/stream?stream_mode=custom"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
