// Package answers holds the answers of an HTTP interface against its OpenAPI description: status, media type, and every
// member of every body.
package answers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Check is a description to hold answers against. It is safe for concurrent use.
type Check struct {
	doc  description
	mu   sync.Mutex
	seen map[string]int
}

type description struct {
	Paths      map[string]map[string]operation
	Components struct{ Schemas map[string]map[string]any }
}

type operation struct {
	OperationID string
	Responses   map[string]struct {
		Content map[string]struct{ Schema map[string]any }
	}
}

// New reads a description in OpenAPI 3.1.
func New(document []byte) (*Check, error) {
	c := &Check{seen: map[string]int{}}
	if err := json.Unmarshal(document, &c.doc); err != nil {
		return nil, fmt.Errorf("read the interface description: %w", err)
	}
	return c, nil
}

// Operations lists the operations of the description, sorted.
func (c *Check) Operations() []string {
	var out []string
	for _, methods := range c.doc.Paths {
		for _, op := range methods {
			out = append(out, op.OperationID)
		}
	}
	slices.Sort(out)
	return out
}

// Seen says how many answers each operation gave with a status below 400.
func (c *Check) Seen() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]int{}
	for id, n := range c.seen {
		out[id] = n
	}
	return out
}

// Wrong says what of an answer the description does not know; "" = nothing. An answer to a path that it does not have is
// the router's 404 or 405, of which it says nothing.
func (c *Check) Wrong(method, path string, status int, contentType string, body []byte) string {
	op, ok := c.find(method, path)
	if !ok || method == http.MethodHead || method == http.MethodOptions {
		return ""
	}
	if status < 400 {
		c.mu.Lock()
		c.seen[op.OperationID]++
		c.mu.Unlock()
	}
	answer, ok := op.Responses[strconv.Itoa(status)]
	if !ok {
		return op.OperationID + " has no such status"
	}
	media, _, _ := strings.Cut(contentType, ";")
	shape, ok := answer.Content[media]
	switch {
	case len(body) == 0 && (len(answer.Content) == 0 || status >= 400):
		return ""
	case len(answer.Content) == 0:
		return op.OperationID + " has no body"
	case !ok:
		return fmt.Sprintf("%s has no %q", op.OperationID, media)
	case media == "text/event-stream":
		return frames(string(body))
	case media != "application/json":
		return ""
	}
	var value any
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber() // what a client sent comes back as it was, beyond what a float64 holds
	if err := dec.Decode(&value); err != nil {
		return err.Error()
	}
	return c.misfit(shape.Schema, value, op.OperationID)
}

func (c *Check) find(method, path string) (operation, bool) {
	for _, template := range c.matching(path) {
		if op, ok := c.doc.Paths[template][strings.ToLower(method)]; ok {
			return op, true
		}
	}
	return operation{}, false
}

// matching lists the templates of a path, those with the fewest parameters first.
func (c *Check) matching(path string) []string {
	var out []string
	for template := range c.doc.Paths {
		if fits(strings.Split(template, "/"), strings.Split(path, "/")) {
			out = append(out, template)
		}
	}
	slices.SortFunc(out, func(a, b string) int { return strings.Count(a, "{") - strings.Count(b, "{") })
	return out
}

func fits(parts, words []string) bool {
	if len(parts) != len(words) {
		return false
	}
	for i, part := range parts {
		if part != words[i] && (words[i] == "" || !strings.HasPrefix(part, "{")) {
			return false
		}
	}
	return true
}

// frames says what is wrong with an event stream, which may be cut off at its end.
func frames(body string) string {
	end := strings.LastIndex(body, "\n\n")
	if end < 0 {
		return ""
	}
	for block := range strings.SplitSeq(body[:end], "\n\n") {
		event, data := false, false
		for line := range strings.SplitSeq(block, "\n") {
			name, value, _ := strings.Cut(line, ": ")
			switch name {
			case "", "id":
				if value == "" {
					return fmt.Sprintf("a frame has the line %q", line)
				}
			case "event":
				event = value != ""
			case "data":
				data = json.Valid([]byte(value))
			default:
				return fmt.Sprintf("a frame has the line %q", line)
			}
		}
		if event != data || !event && !strings.HasPrefix(block, ": ") {
			return fmt.Sprintf("%.200q is no frame of an event and JSON data", block)
		}
	}
	return ""
}

// misfit says where a value is not what the schema says; "" = it is. An object with described members has no others.
func (c *Check) misfit(schema map[string]any, value any, at string) string {
	if ref, ok := schema["$ref"].(string); ok {
		target, known := c.doc.Components.Schemas[ref[strings.LastIndex(ref, "/")+1:]]
		if !known {
			return fmt.Sprintf("%s: there is no shape %s", at, ref)
		}
		return c.misfit(target, value, at)
	}
	if either, ok := schema["anyOf"].([]any); ok {
		return c.noneOf(either, value, at)
	}
	if !isOf(schema["type"], value) {
		return fmt.Sprintf("%s is %.200v, not of type %v", at, value, schema["type"])
	}
	if enum, ok := schema["enum"].([]any); ok && !slices.Contains(enum, value) {
		return fmt.Sprintf("%s is %.200v, none of %v", at, value, enum)
	}
	switch value := value.(type) {
	case map[string]any:
		return c.objectMisfit(schema, value, at)
	case []any:
		items, _ := schema["items"].(map[string]any)
		for i, element := range value {
			if why := c.misfit(items, element, fmt.Sprintf("%s[%d]", at, i)); why != "" {
				return why
			}
		}
	}
	return ""
}

func (c *Check) noneOf(either []any, value any, at string) string {
	why := ""
	for _, one := range either {
		if why = c.misfit(one.(map[string]any), value, at); why == "" {
			return ""
		}
	}
	return why
}

func (c *Check) objectMisfit(schema, value map[string]any, at string) string {
	required, _ := schema["required"].([]any)
	for _, name := range required {
		if _, ok := value[name.(string)]; !ok {
			return fmt.Sprintf("%s.%s is missing", at, name)
		}
	}
	properties, closed := schema["properties"].(map[string]any)
	closed = closed && schema["additionalProperties"] == nil
	each, _ := schema["additionalProperties"].(map[string]any)
	for name, member := range value {
		property, known := properties[name].(map[string]any)
		switch {
		case !known && closed:
			return fmt.Sprintf("%s.%s is not described", at, name)
		case !known:
			property = each
		}
		if why := c.misfit(property, member, at+"."+name); why != "" {
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
	}
	switch value := value.(type) {
	case nil:
		return kind == "null"
	case bool:
		return kind == "boolean"
	case string:
		return kind == "string"
	case json.Number:
		_, err := strconv.ParseInt(value.String(), 10, 64)
		return kind == "number" || kind == "integer" && err == nil
	case map[string]any:
		return kind == "object"
	}
	return kind == "array"
}
