package controlapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// describe renders the interface description. Beyond what the framework knows it writes the error shapes of spec 7, and
// null beside every optional object, which the framework cannot say of a reference.
func describe(api *huma.OpenAPI) []byte {
	text, err := json.Marshal(api)
	if err != nil {
		panic(fmt.Sprintf("controlapi: render the interface description: %v", err)) // a defect in our own types
	}
	var doc map[string]any
	if err := json.Unmarshal(text, &doc); err != nil {
		panic(fmt.Sprintf("controlapi: read the interface description: %v", err))
	}
	schemas := doc["components"].(map[string]any)["schemas"].(map[string]any)
	delete(schemas, "ErrorModel")
	delete(schemas, "ErrorDetail")
	for name, schema := range errorSchemas() {
		schemas[name] = schema
	}
	for name, schema := range schemas {
		requireParts(name, schema.(map[string]any))
		nullable(schema.(map[string]any))
		explain(name, schema.(map[string]any))
	}
	withoutAdditional(doc)
	doc["servers"] = []any{map[string]any{"url": "/", "description": "the installation that serves this description"}}
	eachOperation(doc, func(_, path string, op map[string]any) {
		bodyAnswers(op)
		errorAnswers(op)
		op["tags"] = []any{subject(path)}
		explainParameters(op)
		if op["security"] == nil {
			op["security"] = []any{} // open to everyone, said in so many words
		}
	})
	out, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("controlapi: render the interface description: %v", err))
	}
	return append(out, '\n')
}

func errorSchemas() map[string]any {
	text := func(doc string) map[string]any { return map[string]any{"type": "string", "description": doc} }
	part := map[string]any{"anyOf": []any{map[string]any{"type": "string"}, map[string]any{"type": "integer"}}}
	return map[string]any{
		"Error": map[string]any{
			"type": "object", "required": []any{"detail"},
			"properties": map[string]any{"detail": text("one sentence that says what went wrong and what to do")},
		},
		"ValidationProblem": map[string]any{
			"type": "object", "required": []any{"loc", "msg", "type"},
			"properties": map[string]any{
				"loc":  map[string]any{"type": "array", "items": part, "description": "the way to the field: body, query or path first"},
				"msg":  text("what is wrong, with the value and the remedy"),
				"type": text("a stable word for the kind of problem"),
			},
		},
		"HTTPValidationError": map[string]any{
			"type": "object", "required": []any{"detail"},
			"properties": map[string]any{"detail": map[string]any{
				"type": "array", "items": map[string]any{"$ref": "#/components/schemas/ValidationProblem"}, "description": "everything that is wrong with the request",
			}},
		},
	}
}

// parts says what an element of a resource spec cannot do without; the ground checks it with better words than a schema has.
var parts = map[string][]any{
	"Container": {"name", "image"}, "EnvVar": {"name"}, "LocalObjectReference": {"name"}, "Volume": {"name"}, "VolumeMount": {"name", "mountPath"},
}

func requireParts(name string, schema map[string]any) {
	if required, ok := parts[name]; ok {
		schema["required"] = required
	}
}

// nullable makes every optional property accept null too: null counts as absent everywhere (control-plane reference 3).
func nullable(schema map[string]any) {
	required := map[any]bool{}
	list, _ := schema["required"].([]any)
	for _, name := range list {
		required[name] = true
	}
	properties, _ := schema["properties"].(map[string]any)
	for name, property := range properties {
		if !required[name] {
			properties[name] = orNothing(property.(map[string]any))
		}
	}
}

// orNothing is a property that may be null. One without any type is an object of the cluster's own making.
func orNothing(property map[string]any) map[string]any {
	if ref, ok := property["$ref"]; ok {
		either := map[string]any{"anyOf": []any{map[string]any{"$ref": ref}, map[string]any{"type": "null"}}}
		if text, ok := property["description"]; ok {
			either["description"] = text
		}
		return either
	}
	if enum, ok := property["enum"].([]any); ok && !slices.Contains(enum, nil) {
		property["enum"] = append(enum, nil)
	}
	switch kind := property["type"].(type) {
	case string:
		property["type"] = []any{kind, "null"}
	case nil:
		if property["anyOf"] == nil {
			property["type"] = []any{"object", "null"}
		}
	}
	return property
}

// withoutAdditional takes out that unknown properties are allowed: they are unless it is said otherwise, and generated
// clients check the spelling of the known ones only where it is not said.
func withoutAdditional(node any) {
	switch node := node.(type) {
	case map[string]any:
		if node["additionalProperties"] == true {
			delete(node, "additionalProperties")
		}
		for _, child := range node {
			withoutAdditional(child)
		}
	case []any:
		for _, child := range node {
			withoutAdditional(child)
		}
	}
}

// subject groups operations by what they are about: the first word of the path behind the version.
func subject(path string) string {
	words := strings.Split(strings.TrimPrefix(path, "/"), "/")
	if len(words) > 1 && versionForm.MatchString(words[0]) {
		words = words[1:]
	}
	if len(words) == 1 && !strings.HasSuffix(words[0], "s") {
		return "service"
	}
	return words[0]
}

var versionForm = regexp.MustCompile(`^v[0-9]+$`)

func eachOperation(doc map[string]any, fn func(method, path string, op map[string]any)) {
	for path, item := range doc["paths"].(map[string]any) {
		for method, op := range item.(map[string]any) {
			if op, ok := op.(map[string]any); ok {
				fn(method, path, op)
			}
		}
	}
}

// bodyAnswers adds what a JSON body can be answered before anybody reads it.
func bodyAnswers(op map[string]any) {
	if op["requestBody"] == nil || op["security"] == nil {
		return // without a body, or a body that is no JSON and describes its answers itself
	}
	responses := op["responses"].(map[string]any)
	responses["413"] = map[string]any{"description": "The body is too large"}
	responses["415"] = map[string]any{"description": "The body is not JSON"}
}

func errorAnswers(op map[string]any) {
	responses, _ := op["responses"].(map[string]any)
	delete(responses, "default")
	for code, response := range responses {
		if code < "400" {
			continue
		}
		name := "Error"
		if code == "422" {
			name = "HTTPValidationError"
		}
		response.(map[string]any)["content"] = map[string]any{"application/json": map[string]any{
			"schema": map[string]any{"$ref": "#/components/schemas/" + name},
		}}
	}
}

type docsCall struct{ Method, Path, Summary, ID string }

const docsTemplate = `<!doctype html><html lang="en"><meta charset="utf-8"><title>slipway control API</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.3rem .6rem;border-bottom:1px solid #ddd}
code{font:14px ui-monospace,monospace}</style>
<h1>slipway control API</h1>
<p>Send an API key as <code>X-Api-Key</code>. The full description, with every field, is at
<a href="openapi.json">openapi.json</a> (OpenAPI 3.1).</p>
<table><tr><th>Call</th><th>Purpose</th><th>Operation</th></tr>
{{range .}}<tr><td><code>{{.Method}} {{.Path}}</code></td><td>{{.Summary}}</td><td><code>{{.ID}}</code></td></tr>
{{end}}</table></html>
`

// DocsPage renders the page that lists the calls of an interface description; it needs nothing from elsewhere.
func DocsPage(description []byte) []byte {
	var doc map[string]any
	if err := json.Unmarshal(description, &doc); err != nil {
		panic(fmt.Sprintf("controlapi: read the interface description: %v", err))
	}
	var calls []docsCall
	eachOperation(doc, func(method, path string, op map[string]any) {
		summary, _ := op["summary"].(string)
		id, _ := op["operationId"].(string)
		calls = append(calls, docsCall{strings.ToUpper(method), path, summary, id})
	})
	sort.Slice(calls, func(i, j int) bool {
		return calls[i].Path+calls[i].Method < calls[j].Path+calls[j].Method
	})
	var page bytes.Buffer
	if err := template.Must(template.New("docs").Parse(docsTemplate)).Execute(&page, calls); err != nil {
		panic(fmt.Sprintf("controlapi: render the docs page: %v", err))
	}
	return page.Bytes()
}
