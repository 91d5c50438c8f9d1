package controlapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// truthful returns the handler with every answer held against the interface description: its status is among those of the
// operation, and its body is what the description says of that status, without a member that it does not know.
func truthful(t *testing.T, h http.Handler) http.Handler {
	read := sync.OnceValue(func() promises {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest("GET", "/openapi.json", nil))
		var d promises
		if err := json.Unmarshal(rec.Body.Bytes(), &d); err != nil {
			t.Errorf("the description: %v", err)
		}
		return d
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		if wrong := read().wrong(r.Method, r.URL.Path, rec.Code, rec.Header().Get("Content-Type"), rec.Body.Bytes()); wrong != "" {
			t.Errorf("%s %.200s answers %d, and the description says otherwise: %s", r.Method, r.URL.Path, rec.Code, wrong)
		}
		for name, values := range rec.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(rec.Code)
		_, _ = w.Write(rec.Body.Bytes())
	})
}

type promises struct {
	Paths map[string]map[string]struct {
		Responses map[string]struct {
			Content map[string]struct{ Schema map[string]any }
		}
	}
	Components struct{ Schemas map[string]map[string]any }
}

// wrong says what of an answer the description does not know; "" = nothing.
func (d promises) wrong(method, path string, status int, contentType string, body []byte) string {
	for _, template := range d.matching(path) {
		op, ok := d.Paths[template][strings.ToLower(method)]
		if !ok {
			continue
		}
		answer, ok := op.Responses[fmt.Sprint(status)]
		if !ok {
			return "it has no such status"
		}
		media, _, _ := strings.Cut(contentType, ";")
		shape, ok := answer.Content[media]
		switch {
		case !ok && len(answer.Content) == 0 && len(body) > 0:
			return "it has no body"
		case !ok && len(body) > 0:
			return "it has no " + media
		case !ok || media != "application/json":
			return ""
		}
		var value any
		if err := json.Unmarshal(body, &value); err != nil {
			return err.Error()
		}
		return d.misfit(shape.Schema, value, "")
	}
	return "" // no operation: 404 or 405, by the router
}

// matching lists the templates of a path, those without parameters first.
func (d promises) matching(path string) []string {
	var out []string
	words := strings.Split(path, "/")
	for template := range d.Paths {
		parts := strings.Split(template, "/")
		if len(parts) == len(words) && !slices.ContainsFunc(parts, func(part string) bool {
			i := slices.Index(parts, part)
			return words[i] == "" && part != "" || !strings.HasPrefix(part, "{") && part != words[i]
		}) {
			out = append(out, template)
		}
	}
	slices.SortFunc(out, func(a, b string) int { return strings.Count(a, "{") - strings.Count(b, "{") })
	return out
}

// misfit says where a value is not what the schema says; "" = it is.
func (d promises) misfit(schema map[string]any, value any, at string) string {
	if ref, ok := schema["$ref"].(string); ok {
		return d.misfit(d.Components.Schemas[ref[strings.LastIndex(ref, "/")+1:]], value, at)
	}
	if either, ok := schema["anyOf"].([]any); ok {
		why := ""
		for _, one := range either {
			if why = d.misfit(one.(map[string]any), value, at); why == "" {
				return ""
			}
		}
		return why
	}
	if !isOf(schema["type"], value) {
		return fmt.Sprintf("%s is %v, not of type %v", at, value, schema["type"])
	}
	if enum, ok := schema["enum"].([]any); ok && !slices.Contains(enum, value) {
		return fmt.Sprintf("%s is %v, none of %v", at, value, enum)
	}
	switch value := value.(type) {
	case map[string]any:
		return d.objectMisfit(schema, value, at)
	case []any:
		items, _ := schema["items"].(map[string]any)
		for i, element := range value {
			if why := d.misfit(items, element, fmt.Sprintf("%s[%d]", at, i)); why != "" {
				return why
			}
		}
	}
	return ""
}

func (d promises) objectMisfit(schema, value map[string]any, at string) string {
	required, _ := schema["required"].([]any)
	for _, name := range required {
		if _, ok := value[name.(string)]; !ok {
			return fmt.Sprintf("%s.%s is missing", at, name)
		}
	}
	properties, closed := schema["properties"].(map[string]any)
	for name, member := range value {
		property, known := properties[name].(map[string]any)
		if !known && closed {
			return fmt.Sprintf("%s.%s is not described", at, name)
		}
		if why := d.misfit(property, member, at+"."+name); known && why != "" {
			return why
		}
	}
	return ""
}

// isOf says whether a JSON value is of a schema's type, or one of its types.
func isOf(kind, value any) bool {
	switch kind := kind.(type) {
	case nil:
		return true
	case []any:
		return slices.ContainsFunc(kind, func(one any) bool { return isOf(one, value) })
	default:
		switch value := value.(type) {
		case nil:
			return kind == "null"
		case bool:
			return kind == "boolean"
		case string:
			return kind == "string"
		case float64:
			return kind == "number" || kind == "integer" && value == float64(int64(value))
		case map[string]any:
			return kind == "object"
		}
		return kind == "array"
	}
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
