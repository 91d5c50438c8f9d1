package agentapi

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"sort"
	"strconv"
	"strings"
)

//go:embed docs.html
var docsTemplate string

// openapi answers GET /openapi.json.
func (a *API) openapi(w http.ResponseWriter, _ *http.Request) error {
	writeBytes(w, http.StatusOK, a.document())
	return nil
}

// docs answers GET /docs: a page that needs nothing from elsewhere.
func (a *API) docs(w http.ResponseWriter, _ *http.Request) error {
	page := a.page()
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(page)))
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'")
	_, _ = w.Write(page)
	return nil
}

// docsGroup is a group of calls on the page.
type docsGroup struct {
	Name, Text string
	Calls      []docsCall
}

type docsCall struct {
	Method, Path, ID, Summary, Text string
	Fields                          []docsField // of path, query, headers and body
	Answers                         []docsAnswer
}

type docsField struct {
	Name, In, Kind, Text string
	Required             bool
}

type docsAnswer struct{ Status, Text, Kind string }

// docsPage renders the page of a description.
func docsPage(description []byte) []byte {
	var d document
	if err := json.Unmarshal(description, &d); err != nil {
		panic(fmt.Sprintf("agentapi: read the interface description: %v", err)) // we have just written it
	}
	var page bytes.Buffer
	view := map[string]any{"Title": d.Info.Title, "Version": d.Info.Version, "Text": d.Info.Description, "Groups": d.groups()}
	if err := template.Must(template.New("docs").Parse(docsTemplate)).Execute(&page, view); err != nil {
		panic(fmt.Sprintf("agentapi: render the docs page: %v", err))
	}
	return page.Bytes()
}

// document is what the page reads of a description.
type document struct {
	Info  struct{ Title, Version, Description string }
	Tags  []struct{ Name, Description string }
	Paths map[string]map[string]struct {
		OperationID, Summary, Description string
		Tags                              []string
		Parameters                        []struct {
			Name, In    string
			Required    bool
			Schema      map[string]any
			Description string
		}
		RequestBody *struct {
			Content map[string]struct{ Schema map[string]any }
		}
		Responses map[string]struct {
			Description string
			Content     map[string]struct{ Schema map[string]any }
		}
	}
	Components struct{ Schemas map[string]map[string]any }
}

func (d document) groups() []docsGroup {
	var groups []docsGroup
	for _, tag := range d.Tags {
		g := docsGroup{Name: tag.Name, Text: tag.Description}
		for path, methods := range d.Paths {
			for method, op := range methods {
				if !slices.Contains(op.Tags, tag.Name) {
					continue
				}
				g.Calls = append(g.Calls, d.call(method, path))
			}
		}
		slices.SortFunc(g.Calls, func(a, b docsCall) int {
			return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Method, b.Method))
		})
		groups = append(groups, g)
	}
	return groups
}

func (d document) call(method, path string) docsCall {
	op := d.Paths[path][method]
	c := docsCall{Method: strings.ToUpper(method), Path: path, ID: op.OperationID, Summary: op.Summary, Text: op.Description}
	for _, p := range op.Parameters {
		doc, _ := p.Schema["description"].(string)
		c.Fields = append(c.Fields, docsField{Name: p.Name, In: p.In, Kind: kindOf(p.Schema), Text: firstText(p.Description, doc), Required: p.Required})
	}
	if op.RequestBody != nil {
		c.Fields = append(c.Fields, d.bodyFields(op.RequestBody.Content["application/json"].Schema)...)
	}
	for status, r := range op.Responses {
		a := docsAnswer{Status: status, Text: r.Description}
		for media, content := range r.Content {
			a.Kind = kindOf(content.Schema)
			if media != "application/json" {
				a.Kind = media
			}
		}
		c.Answers = append(c.Answers, a)
	}
	sort.Slice(c.Answers, func(i, j int) bool { return c.Answers[i].Status < c.Answers[j].Status })
	return c
}

func (d document) bodyFields(schema map[string]any) []docsField {
	if ref, ok := schema["$ref"].(string); ok {
		schema = d.Components.Schemas[strings.TrimPrefix(ref, shapePrefix)]
	}
	properties, _ := schema["properties"].(map[string]any)
	if properties == nil {
		return []docsField{{Name: "", In: "body", Kind: kindOf(schema), Required: true}}
	}
	required, _ := schema["required"].([]any)
	var fields []docsField
	for name, property := range properties {
		s, _ := property.(map[string]any)
		doc, _ := s["description"].(string)
		fields = append(fields, docsField{Name: name, In: "body", Kind: kindOf(s), Text: doc, Required: slices.Contains(required, any(name))})
	}
	sort.Slice(fields, func(i, j int) bool {
		if fields[i].Required != fields[j].Required {
			return fields[i].Required
		}
		return fields[i].Name < fields[j].Name
	})
	return fields
}

// kindOf says in a few words what a schema is.
func kindOf(s map[string]any) string {
	if ref, ok := s["$ref"].(string); ok {
		return strings.TrimPrefix(ref, shapePrefix)
	}
	if list, ok := s["anyOf"].([]any); ok {
		return strings.Join(kindsOf(list), " | ")
	}
	if list, ok := s["enum"].([]any); ok {
		return strings.Join(wordsOf(list), " | ")
	}
	kind := ""
	switch t := s["type"].(type) {
	case string:
		kind = t
	case []any:
		kind = strings.Join(wordsOf(t), " | ")
	default:
		return "any"
	}
	if items, ok := s["items"].(map[string]any); ok {
		kind = "[" + kindOf(items) + "]"
	}
	if format, ok := s["format"].(string); ok {
		kind += " (" + format + ")"
	}
	low, hasLow := s["minimum"].(float64)
	high, hasHigh := s["maximum"].(float64)
	switch {
	case hasLow && hasHigh:
		kind += fmt.Sprintf(" %.0f..%.0f", low, high)
	case hasLow:
		kind += fmt.Sprintf(" from %.0f", low)
	}
	return kind
}

func kindsOf(list []any) []string {
	var out []string
	for _, one := range list {
		if s, ok := one.(map[string]any); ok && s["type"] != "null" {
			out = append(out, kindOf(s))
		}
	}
	return out
}

func wordsOf(list []any) []string {
	var out []string
	for _, one := range list {
		if one != nil && one != "null" {
			out = append(out, fmt.Sprint(one))
		}
	}
	return out
}
