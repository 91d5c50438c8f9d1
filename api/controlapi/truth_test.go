package controlapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/slipway-dev/slipway/api/answers"
)

// truthful returns the handler with every answer held against the interface description.
func truthful(t *testing.T, h http.Handler) http.Handler {
	read := sync.OnceValue(func() http.Handler {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest("GET", "/openapi.json", nil))
		description, err := answers.New(rec.Body.Bytes())
		if err != nil {
			t.Error(err)
			return h
		}
		return description.Handler(h, func(wrong string) { t.Error(wrong) })
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { read().ServeHTTP(w, r) })
}

func TestBodiesThatNobodyReads(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	got, body := s.call("POST", "/v2/deployments", `{"name":"`+strings.Repeat("x", 26<<20)+`"}`)
	if text := fmt.Sprint(body["detail"]); got != 413 || !strings.Contains(text, "26214400") || !strings.Contains(text, "send less") {
		t.Errorf("too large: %d %s, want 413 with the limit and the remedy", got, text)
	}
	rec := httptest.NewRecorder()
	req := httptest.NewRequest("POST", "/v2/deployments", strings.NewReader("a=b"))
	req.Header.Set("X-Api-Key", s.Key)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if s.handler.ServeHTTP(rec, req); rec.Code != 415 || !strings.Contains(rec.Body.String(), "application/json") {
		t.Errorf("a form: %d %s, want 415 with the remedy", rec.Code, rec.Body)
	}
}

func TestAnAbsentBodyIsAFailedValidation(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	_, text := s.raw("", "GET", "/openapi.json", "")
	var doc struct {
		Paths map[string]map[string]struct {
			Security    []any
			RequestBody struct{ Required bool }
		}
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	parameter, asked := regexp.MustCompile(`\{[a-z_]+\}`), 0
	for path, methods := range doc.Paths {
		for method, op := range methods {
			if !op.RequestBody.Required || len(op.Security) == 0 {
				continue
			}
			asked++
			path := parameter.ReplaceAllString(path, "01900000-0000-7000-8000-000000000001")
			status, body := s.raw(s.Key, strings.ToUpper(method), path, "")
			if want := `{"detail":[{"loc":["body"],"msg":"Field required","type":"missing"}]}`; status != 422 || strings.TrimSpace(string(body)) != want {
				t.Errorf("%s %s without a body: %d %s, want 422 %s", method, path, status, body, want)
			}
		}
	}
	if asked < 10 {
		t.Errorf("%d calls need a body; the description says too little", asked)
	}
}

func TestATimeThatCannotBeRead(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	id := s.want(201, "POST", "/v2/deployments", createSource)["id"].(string)
	_, text := s.raw(s.Key, "GET", "/v2/deployments/"+id+"/logs?start_time=2026-01-01T00:00:00", "")
	if !strings.Contains(string(text), `"start_time"`) || !strings.Contains(string(text), "2026-01-31T12:00:00Z") || strings.Contains(string(text), "2006") {
		t.Errorf("%s, want an example of a time", text)
	}
}
