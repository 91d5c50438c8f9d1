package agentapi_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// spec is what the generated tests read of the description.
type spec struct {
	Paths      map[string]map[string]call
	Components struct{ Schemas map[string]shape }
}

type call struct {
	OperationID string
	Parameters  []struct {
		Name, In string
		Schema   shape
	}
	RequestBody *struct {
		Content map[string]struct{ Schema shape }
	}
}

type shape map[string]any

func readSpec(t *testing.T) spec {
	t.Helper()
	var s spec
	if err := json.Unmarshal(described(), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s spec) resolve(one shape) shape {
	ref, ok := one["$ref"].(string)
	if !ok {
		return one
	}
	return s.Components.Schemas[ref[strings.LastIndex(ref, "/")+1:]]
}

func (s spec) body(c call) shape {
	if c.RequestBody == nil {
		return nil
	}
	return s.resolve(c.RequestBody.Content["application/json"].Schema)
}

// choices are the shapes that a value may have: those of anyOf, or the one.
func (s spec) choices(one shape) []shape {
	one = s.resolve(one)
	list, ok := one["anyOf"].([]any)
	if !ok {
		return []shape{one}
	}
	var out []shape
	for _, choice := range list {
		out = append(out, s.choices(choice.(map[string]any))...)
	}
	return out
}

// takes says whether a value of the JSON type may stand there.
func (s spec) takes(one shape, kind string) bool {
	return slices.ContainsFunc(s.choices(one), func(c shape) bool {
		switch t := c["type"].(type) {
		case string:
			return t == kind || t == "number" && kind == "integer"
		case []any:
			return slices.Contains(t, any(kind)) || kind == "integer" && slices.Contains(t, any("number"))
		}
		return true
	})
}

// wrongs are values that the description does not allow.
func (s spec) wrongs(one shape) []string {
	var out []string
	for kind, value := range map[string]string{
		"integer": "7", "string": `"nonsense"`, "boolean": "true", "object": `{"x":1}`, "array": `[[7]]`, "number": "7.5",
	} {
		if !s.takes(one, kind) {
			out = append(out, value)
		}
	}
	for _, c := range s.choices(one) {
		if low, ok := c["minimum"].(float64); ok {
			out = append(out, fmt.Sprint(low-1))
		}
		if high, ok := c["maximum"].(float64); ok {
			out = append(out, fmt.Sprintf("%.0f", high+1))
		}
		if c["format"] == "uuid" {
			out = append(out, `"0199f0a0-0000-7000-8000-00000000000g"`)
		}
		if items, ok := c["items"].(map[string]any); ok && !s.takes(one, "string") {
			for _, wrong := range s.wrongs(items) {
				out = append(out, "["+wrong+"]")
			}
		}
	}
	if enumerated(s.choices(one)) && s.takes(one, "string") {
		out = append(out, `"nonsense"`)
	}
	return out
}

// enumerated says whether every choice of a string is one of some words.
func enumerated(choices []shape) bool {
	some := false
	for _, c := range choices {
		kinds, _ := c["type"].([]any)
		if c["type"] == "string" || slices.Contains(kinds, any("string")) {
			some = true
			if c["enum"] == nil {
				return false
			}
		}
	}
	return some
}

// sample are right values of members that must be there.
var sample = map[string]string{
	"assistant_id": `"agent"`, "graph_id": `"agent"`, "thread_ids": `["` + thread + `"]`, "schedule": `"* * * * *"`, "checkpoint": `{}`,
	"metadata": `{}`, "namespace": `["a"]`, "key": `"k"`, "value": `{}`, "version": `1`,
}

// with is the least body that is right, with one member set.
func (s spec) with(body shape, name, value string) string {
	members := map[string]string{}
	required, _ := body["required"].([]any)
	for _, r := range required {
		members[r.(string)] = sample[r.(string)]
	}
	if name != "" {
		members[name] = value
	}
	var parts []string
	for name, value := range members {
		parts = append(parts, fmt.Sprintf("%q:%s", name, value))
	}
	slices.Sort(parts)
	return "{" + strings.Join(parts, ",") + "}"
}

// fill puts right ids into a path.
func fill(path string) string {
	return strings.NewReplacer("{assistant_id}", "agent", "{thread_id}", thread, "{run_id}", runID, "{cron_id}", runID,
		"{checkpoint_id}", runID, "{namespace}", "sub").Replace(path)
}

// tellsOtherwise are members whose refusal has words of its own in the reference.
var tellsOtherwise = map[string]bool{"cancel_runs.status": true}

// Every member of every body, given each value that the description does not allow, is refused by its name.
func TestEveryMemberOfEveryBodyIsChecked(t *testing.T) {
	t.Parallel()
	s, tried := readSpec(t), 0
	for path, methods := range s.Paths {
		for method, c := range methods {
			body := s.body(c)
			properties, _ := body["properties"].(map[string]any)
			for name, property := range properties {
				for _, wrong := range s.wrongs(property.(map[string]any)) {
					tried++
					s.refuses(t, strings.ToUpper(method), fill(path), s.with(body, name, wrong), c.OperationID+"."+name, name)
				}
			}
		}
	}
	if tried < 500 {
		t.Errorf("%d wrong values were tried; the description says too little", tried)
	}
}

// refuses wants 422 with a detail that names the member.
func (s spec) refuses(t *testing.T, method, path, body, place, name string) {
	t.Helper()
	w := sendLong(t, &fake{}, method, path, body)
	var got struct{ Detail string }
	_ = json.Unmarshal(w.Body.Bytes(), &got)
	if w.Code != 422 || !strings.Contains(got.Detail, name) && !tellsOtherwise[place] {
		t.Errorf("%s %s %.200s: got %d %.300q, want 422 that names %s", method, path, body, w.Code, got.Detail, name)
	}
}

func TestEveryMissingMemberIsTold(t *testing.T) {
	t.Parallel()
	s := readSpec(t)
	for path, methods := range s.Paths {
		for method, c := range methods {
			required, _ := s.body(c)["required"].([]any)
			for _, name := range required {
				for _, value := range []string{"null", ""} {
					body := s.with(s.body(c), name.(string), "null")
					if value == "" {
						body = strings.Replace(body, fmt.Sprintf("%q:null", name), `"unknown":1`, 1)
					}
					w := sendLong(t, &fake{}, strings.ToUpper(method), fill(path), body)
					if (w.Code != 422 && w.Code != 400) || !strings.Contains(strings.ToLower(w.Body.String()), name.(string)) {
						t.Errorf("%s %s %s: got %d %s, want a refusal that names %s", method, path, body, w.Code, w.Body, name)
					}
				}
			}
		}
	}
}

// Every parameter of path and query is checked too.
func TestEveryParameterIsChecked(t *testing.T) {
	t.Parallel()
	s := readSpec(t)
	for path, methods := range s.Paths {
		for method, c := range methods {
			for _, p := range c.Parameters {
				var tried []string
				switch {
				case p.In == "path" && p.Schema["format"] == "uuid":
					at := strings.Replace(path, "{"+p.Name+"}", "nonsense", 1)
					s.refuses(t, strings.ToUpper(method), fill(at), s.with(s.body(c), "", ""), c.OperationID, strings.ReplaceAll(p.Name, "_", " "))
				case p.In == "query":
					tried = s.wrongTexts(p.Schema)
				}
				body := s.with(s.body(c), "", "")
				if c.OperationID == "cancel_runs" {
					body = `{"status":"all"}`
				}
				for _, wrong := range tried {
					at := fill(path) + "?" + url.Values{"key": {"k"}, p.Name: {wrong}}.Encode()
					s.refuses(t, strings.ToUpper(method), at, body, c.OperationID+"?"+p.Name, "query."+p.Name)
				}
			}
		}
	}
}

// wrongTexts are texts of a query that the description does not allow.
func (s spec) wrongTexts(one shape) []string {
	if items, ok := one["items"].(map[string]any); ok {
		one = items
	}
	var out []string
	open := s.takes(one, "string") && !enumerated(s.choices(one))
	if open {
		return nil
	}
	out = append(out, "nonsense")
	for _, c := range s.choices(one) {
		if low, ok := c["minimum"].(float64); ok {
			out = append(out, fmt.Sprint(low-1), "1.5", "99999999999999999999")
		}
	}
	return out
}

// A body that is no object, no JSON or too large is refused by every call that reads one.
func TestEveryBodyIsChecked(t *testing.T) {
	t.Parallel()
	s := readSpec(t)
	for path, methods := range s.Paths {
		for method, c := range methods {
			if s.body(c) == nil {
				continue
			}
			for body, want := range map[string]struct {
				status int
				text   string
			}{
				`"x"`: {422, "the request body must be"}, `{"a":`: {422, "the request body"}, strings.Repeat(" ", 3000): {413, "HTTP_MAX_REQUEST_BODY_BYTES"},
				strings.Repeat("[", 600) + strings.Repeat("]", 600): {422, "deeper than"},
			} {
				w := send(t, &fake{}, strings.ToUpper(method), fill(path), body)
				if w.Code != want.status || !strings.Contains(w.Body.String(), want.text) {
					t.Errorf("%s %s %.20q: got %d %s, want %d %q", method, path, body, w.Code, w.Body, want.status, want.text)
				}
			}
		}
	}
}
