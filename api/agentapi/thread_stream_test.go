package agentapi_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/api/agentapi"
)

// followed is a fake whose thread has a stream.
type followed struct {
	*fake
	from chan string
}

func (f *followed) FollowThread(_ context.Context, _, lastEventID string) (agentapi.Stream, error) {
	f.from <- lastEventID
	return &stream{frames: f.frames, open: f.open}, f.err
}

func threadFrames() []agent.Frame {
	frame := func(id, event, data string) agent.Frame {
		return agent.Frame{ID: id, Event: event, Data: json.RawMessage(data)}
	}
	return []agent.Frame{
		frame("5-0", "metadata", `{"run_id":"r","attempt":1}`), frame("5-1", "values|sub:1", `{"x":1}`), frame("5-2", "end", `{"run_id":"r","status":"success"}`),
		frame("5-3", "metadata", `{"status":"run_done","run_id":"r"}`), frame("6-0", "state_update", `{"state":{},"thread_id":"t"}`),
	}
}

func TestThreadStreamModes(t *testing.T) {
	t.Parallel()
	start := "event: metadata\ndata: {\"run_id\":\"r\",\"attempt\":1}\nid: 5-0\n\n"
	middle := "event: values|sub:1\ndata: {\"x\":1}\nid: 5-1\n\nevent: end\ndata: {\"run_id\":\"r\",\"status\":\"success\"}\nid: 5-2\n\n"
	done := "event: metadata\ndata: {\"status\":\"run_done\",\"run_id\":\"r\"}\nid: 5-3\n\n"
	state := "event: state_update\ndata: {\"state\":{},\"thread_id\":\"t\"}\nid: 6-0\n\n"
	for query, want := range map[string]string{
		"":                                     start + middle + done,
		"?stream_mode=run_modes":               start + middle + done,
		"?stream_modes=lifecycle":              start + done,
		"?stream_modes=state_update":           state,
		"?stream_modes=lifecycle,state_update": start + done + state,
		`?stream_mode=["lifecycle","state_update"]`:        start + done + state,
		"?stream_mode=run_modes&stream_mode=state_update":  start + middle + done + state,
		"?stream_mode=%5B%22run_modes%22%5D&stream_modes=": start + middle + done,
	} {
		t.Run(query, func(t *testing.T) {
			t.Parallel()
			f := &followed{fake: &fake{frames: threadFrames()}, from: make(chan string, 1)}
			w := httptest.NewRecorder()
			r := httptest.NewRequest("GET", "/threads/"+thread+"/stream"+strings.ReplaceAll(query, `"`, "%22"), nil)
			r.Header.Set("Last-Event-ID", "4-7")
			agentapi.New(f, agentapi.Config{IDs: func() string { return "made" }}).ServeHTTP(w, r)
			if got := w.Body.String(); got != want || w.Code != 200 {
				t.Errorf("got %d\n%s\nwant\n%s", w.Code, got, want)
			}
			if got := <-f.from; got != "4-7" {
				t.Errorf("from: got %q, want 4-7", got)
			}
			if got := w.Header().Get("Location"); !strings.HasPrefix(got, "/threads/"+thread+"/stream?stream_modes=") {
				t.Errorf("location: got %q", got)
			}
		})
	}
}

func TestThreadStreamRefusals(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]int{"/threads/x/stream": 422, "/threads/" + thread + "/stream?stream_mode=values": 422, "/threads/" + thread + "/stream": 404} {
		f := &followed{fake: &fake{err: slipway.Errorf(slipway.CodeNotFound, "Thread with ID %s not found", thread)}, from: make(chan string, 1)}
		w := httptest.NewRecorder()
		agentapi.New(f, agentapi.Config{IDs: func() string { return "made" }}).ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if w.Code != want || !strings.Contains(w.Body.String(), `"detail"`) {
			t.Errorf("%s: got %d %s, want %d", path, w.Code, w.Body, want)
		}
	}
}
