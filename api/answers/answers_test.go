package answers_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/api/answers"
)

const document = `{"paths":{
	"/things":{"get":{"operationId":"list","responses":{"200":{"content":{"application/json":{"schema":{"type":"array","items":{"$ref":"#/components/schemas/Thing"}}}}}}}},
	"/things/{id}":{"get":{"operationId":"get","responses":{"200":{"content":{"application/json":{"schema":{"anyOf":[{"$ref":"#/components/schemas/Thing"},{"type":"null"}]}}}},"404":{"content":{"application/json":{"schema":{"type":"object"}}}}}},
		"delete":{"operationId":"delete","responses":{"204":{}}}},
	"/things/all":{"get":{"operationId":"stream","responses":{"200":{"content":{"text/event-stream":{"schema":{"type":"string"}}}}}}}},
	"components":{"schemas":{"Thing":{"type":"object","required":["id"],"properties":{"id":{"type":"integer"},"kind":{"type":["string","null"],"enum":["a",null]},
		"more":{"type":"object","additionalProperties":{"type":"boolean"}}}}}}}`

func TestWrong(t *testing.T) {
	t.Parallel()
	c, err := answers.New([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		method, path string
		status       int
		media, body  string
		want         string // part of; "" = nothing is wrong
	}{
		{"GET", "/things", 200, "application/json", `[{"id":1,"kind":null,"more":{"x":true}}]`, ""},
		{"GET", "/things", 200, "application/json; charset=utf-8", `[]`, ""},
		{"GET", "/things", 200, "application/json", `[{"kind":"a"}]`, "list[0].id is missing"},
		{"GET", "/things", 200, "application/json", `[{"id":1.5}]`, "not of type integer"},
		{"GET", "/things", 200, "application/json", `[{"id":1,"kind":"b"}]`, "none of"},
		{"GET", "/things", 200, "application/json", `[{"id":1,"else":2}]`, "list[0].else is not described"},
		{"GET", "/things", 200, "application/json", `[{"id":1,"more":{"x":1}}]`, "not of type boolean"},
		{"GET", "/things", 200, "application/json", `[`, "EOF"},
		{"GET", "/things", 200, "text/plain", `x`, `no "text/plain"`},
		{"GET", "/things", 500, "application/json", `{}`, "no such status"},
		{"GET", "/things/7", 200, "application/json", `null`, ""},
		{"GET", "/things/7", 404, "application/json", `{}`, ""},
		{"DELETE", "/things/7", 204, "", ``, ""},
		{"DELETE", "/things/7", 204, "application/json", `{}`, "has no body"},
		{"GET", "/nothing", 404, "application/json", `{}`, ""},
		{"GET", "/things/all", 200, "text/event-stream", "event: a\ndata: {}\nid: 1-0\n\n: heartbeat\n\nevent: b\nda", ""},
		{"GET", "/things/all", 200, "text/event-stream", "event: a\ndata: {\n\n", "no frame"},
		{"GET", "/things/all", 200, "text/event-stream", "event: a\ndata: 1\nid: \n\n", "the line"},
		{"GET", "/things/all", 200, "text/event-stream", "event: a\n\n", "no frame"},
	}
	for _, tt := range tests {
		got := c.Wrong(tt.method, tt.path, tt.status, tt.media, []byte(tt.body))
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s %s %d %q: got %q, want %q", tt.method, tt.path, tt.status, tt.body, got, tt.want)
		}
	}
	if seen := c.Seen(); seen["list"] == 0 || seen["get"] != 1 || seen["delete"] != 2 {
		t.Errorf("seen: %v", seen)
	}
}

func TestHandlerTellsAndPassesOn(t *testing.T) {
	t.Parallel()
	c, err := answers.New([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	h := c.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`[{"id":"x"}]`))
	}), func(wrong string) { told = append(told, wrong) })
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/things", nil))
	if len(told) != 1 || !strings.Contains(told[0], "list[0].id") {
		t.Errorf("told: %q", told)
	}
	if got := w.Body.String(); got != `[{"id":"x"}]` {
		t.Errorf("passed on: %s", got)
	}
}
