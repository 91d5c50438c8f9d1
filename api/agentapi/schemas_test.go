package agentapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/engine"
)

func (f *fake) Schemas(_ context.Context, id string) (json.RawMessage, error) {
	f.asked = "schemas " + id
	return json.RawMessage(`{"graph_id":"g","state_schema":{}}`), f.err
}

func (f *fake) Drawing(_ context.Context, id string, xray engine.Xray) (json.RawMessage, error) {
	f.asked = fmt.Sprintf("graph %s %d", id, xray)
	return json.RawMessage(`{"nodes":[],"edges":[]}`), f.err
}

func (f *fake) Subgraphs(_ context.Context, id, namespace string, recurse bool) (json.RawMessage, error) {
	f.asked = fmt.Sprintf("subgraphs %s %q %v", id, namespace, recurse)
	return json.RawMessage(`{"a|b":{"state_schema":{}}}`), f.err
}

func TestDescriptionsOfGraphsAreAskedForAsTheQuerySays(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/assistants/g/schemas":                         "schemas g",
		"/assistants/g/graph":                           "graph g 0",
		"/assistants/g/graph?xray=true":                 "graph g -1",
		"/assistants/g/graph?xray=False":                "graph g 0",
		"/assistants/g/graph?xray=1":                    "graph g 1",
		"/assistants/g/graph?xray=0":                    "graph g 0",
		"/assistants/g/subgraphs":                       `subgraphs g "" false`,
		"/assistants/g/subgraphs?recurse=True":          `subgraphs g "" true`,
		"/assistants/g/subgraphs/a%7Cb?recurse=1":       `subgraphs g "a|b" true`,
		"/assistants/my%20graph/subgraphs/a%2Fb%00%7Cc": "subgraphs my graph \"a/b\uFFFD|c\" false",
	} {
		f := &fake{}
		if w := send(t, f, "GET", path, ""); w.Code != 200 || f.asked != strings.ReplaceAll(want, `\uFFFD`, "\uFFFD") {
			t.Errorf("%s: got %d, asked %q, want %q", path, w.Code, f.asked, want)
		}
	}
	for _, path := range []string{"graph?xray=yes", "graph?xray=-1", "graph?xray=101", "graph?xray=1.5", "subgraphs?recurse=2"} {
		w := send(t, &fake{}, "GET", "/assistants/g/"+path, "")
		name := strings.TrimSuffix(strings.TrimSuffix(path[strings.Index(path, "?")+1:], "=2"), "=yes")
		if w.Code != 422 || !strings.Contains(w.Body.String(), "query."+strings.Split(name, "=")[0]) {
			t.Errorf("%s: got %d %s", path, w.Code, w.Body)
		}
	}
	f := &fake{err: slipway.Errorf(slipway.CodeUnavailable, "no worker is ready")}
	if w := send(t, f, "GET", "/assistants/g/schemas", ""); w.Code != 503 || w.Header().Get("Retry-After") == "" {
		t.Errorf("without a worker: got %d, Retry-After %q", w.Code, w.Header().Get("Retry-After"))
	}
}

func TestUserCodesRefusalIsAnsweredAsItIs(t *testing.T) {
	t.Parallel()
	f := &fake{err: &agent.HTTPRefusal{Status: 451, Headers: [][2]string{{"x-why", "law"}, {"content-length", "1"}}, Detail: "not <here>"}}
	w := httptest.NewRecorder()
	handler(f).ServeHTTP(w, httptest.NewRequest("GET", "/assistants/g/schemas", nil)) // no status of ours: it is not described
	if w.Code != 451 || w.Header().Get("X-Why") != "law" || w.Body.String() != `{"detail":"not <here>"}` {
		t.Errorf("got %d %v %s", w.Code, w.Header(), w.Body)
	}
}
