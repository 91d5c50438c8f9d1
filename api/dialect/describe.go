package dialect

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
)

// describe is the API's own interface description in upstream's names. It is made once, when it is first asked for.
func (d *Dialect) describe() []byte {
	own := capture{header: http.Header{}}
	d.api.ServeHTTP(&own, &http.Request{Method: http.MethodGet, URL: &url.URL{Path: "/openapi.json"}, Header: http.Header{}, Body: http.NoBody})
	var doc map[string]any
	if err := json.Unmarshal(own.text.Bytes(), &doc); err != nil {
		return own.text.Bytes() // the API behind this door describes nothing; say what it says
	}
	s := speaker{tree: d.out, done: map[visit]bool{}}
	s.describe(doc)
	out, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return own.text.Bytes()
	}
	return append(out, '\n')
}

// capture is a ResponseWriter that keeps the body.
type capture struct {
	header http.Header
	text   bytes.Buffer
}

func (c *capture) Header() http.Header         { return c.header }
func (c *capture) Write(p []byte) (int, error) { return c.text.Write(p) }
func (c *capture) WriteHeader(int)             {}

// visit is a schema at a position.
type visit struct {
	schema string
	at     *node
}

// speaker translates an interface description.
type speaker struct {
	tree    *tree
	schemas map[string]any
	done    map[visit]bool
}

func (s *speaker) describe(doc map[string]any) {
	doc["servers"] = []any{map[string]any{"url": Mount}}
	s.schemas = object(object(doc["components"])["schemas"])
	paths := map[string]any{}
	for path, item := range object(doc["paths"]) {
		paths[upstreamPath(path)] = item
		for _, op := range object(item) {
			s.operation(object(op))
		}
	}
	doc["paths"] = paths
	s.say(doc)
}

func (s *speaker) operation(op map[string]any) {
	s.content(object(op["requestBody"]))
	for status, answer := range object(op["responses"]) {
		if !strings.HasPrefix(status, "4") && !strings.HasPrefix(status, "5") {
			s.content(object(answer))
		}
	}
	params, _ := op["parameters"].([]any)
	for _, p := range params {
		name, _ := object(p)["name"].(string)
		s.schema(object(p)["schema"], s.tree.root.members[name])
	}
}

func (s *speaker) content(part map[string]any) {
	for _, media := range object(part["content"]) {
		s.schema(object(media)["schema"], s.tree.root)
	}
}

// schema translates the names and values of a schema that stands at a position.
func (s *speaker) schema(v any, n *node) {
	schema := object(v)
	if n == nil || schema == nil {
		return
	}
	if ref, _ := schema["$ref"].(string); ref != "" {
		if at := (visit{ref, n}); !s.done[at] {
			s.done[at] = true
			s.schema(s.schemas[ref[strings.LastIndexByte(ref, '/')+1:]], n)
		}
		return
	}
	for _, word := range []string{"anyOf", "oneOf", "allOf"} {
		list, _ := schema[word].([]any)
		for _, one := range list {
			s.schema(one, n)
		}
	}
	s.schema(schema["items"], n)
	replace(schema["enum"], n.values)
	replace(schema["required"], n.names)
	properties := object(schema["properties"])
	for name, property := range properties {
		s.schema(property, n.members[name])
	}
	for own, other := range n.names {
		if property, ok := properties[own]; ok {
			delete(properties, own)
			properties[other] = property
		}
	}
}

func replace(list any, by map[string]string) {
	elements, _ := list.([]any)
	for i, element := range elements {
		text, _ := element.(string)
		if other, ok := by[text]; ok {
			elements[i] = other
		}
	}
}

// say translates the sentences of a description.
func (s *speaker) say(v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			text, ok := member.(string)
			if ok && (name == "description" || name == "summary") {
				v[name] = sentence(text, s.tree.words)
				continue
			}
			s.say(member)
		}
	case []any:
		for _, element := range v {
			s.say(element)
		}
	}
}

func object(v any) map[string]any {
	o, _ := v.(map[string]any)
	return o
}
