package controlapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
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
	for _, schema := range schemas {
		nullable(schema.(map[string]any))
	}
	eachOperation(doc, func(_, _ string, op map[string]any) {
		errorAnswers(op)
		if id := op["operationId"]; id == "create_deployment" || id == "patch_deployment" {
			op["requestBody"].(map[string]any)["required"] = true // the framework would answer 400 to its absence, not 422
		}
	})
	out, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("controlapi: render the interface description: %v", err))
	}
	return append(out, '\n')
}

func errorSchemas() map[string]any {
	text := map[string]any{"type": "string"}
	part := map[string]any{"anyOf": []any{text, map[string]any{"type": "integer"}}}
	detail := map[string]any{
		"type": "object", "required": []any{"loc", "msg", "type"},
		"properties": map[string]any{"loc": map[string]any{"type": "array", "items": part}, "msg": text, "type": text},
	}
	return map[string]any{
		"Error": map[string]any{"type": "object", "required": []any{"detail"}, "properties": map[string]any{"detail": text}},
		"HTTPValidationError": map[string]any{
			"type": "object", "required": []any{"detail"},
			"properties": map[string]any{"detail": map[string]any{"type": "array", "items": detail}},
		},
	}
}

// nullable makes every optional property that refers to another schema, or is an enumeration, accept null too.
func nullable(schema map[string]any) {
	properties, _ := schema["properties"].(map[string]any)
	required := map[any]bool{}
	list, _ := schema["required"].([]any)
	for _, name := range list {
		required[name] = true
	}
	for name, property := range properties {
		if enum, ok := property.(map[string]any)["enum"].([]any); ok && !required[name] {
			property.(map[string]any)["enum"] = append(enum, nil)
		}
		ref, ok := property.(map[string]any)["$ref"]
		if ok && !required[name] {
			properties[name] = map[string]any{"anyOf": []any{map[string]any{"$ref": ref}, map[string]any{"type": "null"}}}
		}
	}
}

func eachOperation(doc map[string]any, fn func(method, path string, op map[string]any)) {
	for path, item := range doc["paths"].(map[string]any) {
		for method, op := range item.(map[string]any) {
			if op, ok := op.(map[string]any); ok {
				fn(method, path, op)
			}
		}
	}
}

func errorAnswers(op map[string]any) {
	responses, _ := op["responses"].(map[string]any)
	delete(responses, "default")
	for code, response := range responses {
		if !strings.HasPrefix(code, "4") && code != "500" {
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
