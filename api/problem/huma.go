package problem

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/validation"
)

var locationPart = regexp.MustCompile(`[^.\[\]]+|\[\d+\]`)

// malformed stands for a body that is no JSON: no schema accepts it, so that validation reports it at the body.
type malformed struct{ reason string }

// maxDetails is how many problems of one request are told.
const maxDetails = 100

// cutOff is what the framework says of a body that ends before its announced length. It takes that for its own fault.
const cutOff = "cannot read request body"

// Format is JSON as the API reads it: null members count as absent (control-plane reference 3) and malformed JSON is a
// failed validation rather than a bad request.
func Format() huma.Format {
	return huma.Format{Marshal: marshal, Unmarshal: unmarshal}
}

func marshal(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

func unmarshal(data []byte, v any) error {
	target, validating := v.(*any)
	if !validating {
		return json.Unmarshal(data, v)
	}
	if reason := strict(data); reason != "" {
		*target = malformed{reason}
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(target); err != nil {
		*target = malformed{err.Error()}
		return nil
	}
	if _, err := dec.Token(); err != io.EOF {
		*target = malformed{"text after the end of the JSON value"}
		return nil
	}
	*target = withoutNulls(*target)
	return nil
}

func withoutNulls(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if member == nil {
				delete(v, name)
				continue
			}
			v[name] = withoutNulls(member)
		}
	case []any:
		for i := range v {
			v[i] = withoutNulls(v[i])
		}
	}
	return v
}

// Transform is a huma.Transformer that turns the framework's own errors into this package's answers.
func Transform(_ huma.Context, _ string, v any) (any, error) {
	model, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	answer := &Answer{Status: model.Status, Text: model.Detail}
	if model.Status == http.StatusInternalServerError && model.Detail == cutOff {
		answer = &Answer{Status: http.StatusBadRequest, Text: "the body ended too early, or is not encoded as its header says; send it again"}
	}
	if model.Status == http.StatusUnsupportedMediaType {
		answer.Text = "the body's content type is not one this call reads; send JSON with Content-Type: application/json"
	}
	if model.Status == http.StatusRequestEntityTooLarge {
		answer.Text = "the body is larger than this call reads (" + model.Detail + "); send less at once"
	}
	if model.Status == http.StatusUnprocessableEntity {
		answer.Details = []Detail{}
		for i, e := range model.Errors {
			if i == maxDetails {
				answer.Details = append(answer.Details, Detail{Loc: []any{"body"}, Msg: fmt.Sprintf("and %d more problems", len(model.Errors)-i), Type: "value_error"})
				break
			}
			answer.Details = append(answer.Details, detail(e))
		}
	}
	return answer, nil
}

// invalidTime begins what the framework says of a time that it cannot read; what follows is no help.
const invalidTime = "invalid date/time for format"

func detail(e *huma.ErrorDetail) Detail {
	d := Detail{Loc: location(e.Location), Msg: e.Message, Type: "value_error"}
	if bad, ok := e.Value.(malformed); ok {
		return Detail{Loc: d.Loc, Msg: "the body is not valid JSON: " + bad.reason, Type: "json_invalid"}
	}
	if strings.HasPrefix(e.Message, invalidTime) {
		d.Msg = "expected a date and time with its zone, such as 2026-01-31T12:00:00Z (in an address + is written %2B)"
	}
	before, after, _ := strings.Cut(validation.MsgExpectedRequiredProperty, "%s")
	if name, ok := strings.CutPrefix(e.Message, before); ok {
		if name, ok = strings.CutSuffix(name, after); ok {
			return Detail{Loc: append(d.Loc, name), Msg: "Field required", Type: "missing"}
		}
	}
	if strings.Contains(e.Message, "required") && len(d.Loc) == 2 {
		d.Type = "missing"
	}
	return d
}

// location splits "body.secrets[0].name" into its parts.
func location(path string) []any {
	loc := []any{}
	for _, part := range locationPart.FindAllString(path, -1) {
		if n, err := strconv.Atoi(strings.Trim(part, "[]")); err == nil {
			loc = append(loc, n)
			continue
		}
		loc = append(loc, part)
	}
	return loc
}

// inner is huma.Context under a name that can be embedded beside its own method Context.
type inner = huma.Context

// plainJSON is a context whose error answers are called JSON, not problem+json.
type plainJSON struct{ inner }

// PlainJSON is middleware that gives the framework's own errors the content type that clients of FastAPI expect.
func PlainJSON(ctx huma.Context, next func(huma.Context)) { next(plainJSON{ctx}) }

// SetHeader overrides the content type of problem documents.
func (c plainJSON) SetHeader(name, value string) {
	if name == "Content-Type" && value == "application/problem+json" {
		value = "application/json"
	}
	c.inner.SetHeader(name, value)
}

// Unwrap returns the context around which this one is, for what must reach the request itself.
func (c plainJSON) Unwrap() huma.Context { return c.inner }
