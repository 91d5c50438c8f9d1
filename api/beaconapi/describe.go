package beaconapi

import (
	"encoding/json"
	"fmt"

	"github.com/danielgtaylor/huma/v2"
)

// describe renders the interface description with the error shapes of spec 7.
func describe(api *huma.OpenAPI) []byte {
	text, err := json.Marshal(api)
	if err != nil {
		panic(fmt.Sprintf("beaconapi: render the interface description: %v", err)) // a defect in our own types
	}
	var doc map[string]any
	if err := json.Unmarshal(text, &doc); err != nil {
		panic(fmt.Sprintf("beaconapi: read the interface description: %v", err))
	}
	schemas := doc["components"].(map[string]any)["schemas"].(map[string]any)
	delete(schemas, "ErrorModel")
	delete(schemas, "ErrorDetail")
	for name, schema := range errorSchemas() {
		schemas[name] = schema
	}
	for _, item := range doc["paths"].(map[string]any) {
		for _, op := range item.(map[string]any) {
			answers(op.(map[string]any))
		}
	}
	out, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("beaconapi: render the interface description: %v", err))
	}
	return append(out, '\n')
}

// errorAnswers says what each error answers; only POST has more than one.
var errorAnswers = map[string]string{
	"400": "The body cannot be read.", "401": "The licence or token is missing or unknown.", "403": "The licence was revoked or has expired.",
	"413": "The body is too large.", "415": "The content type is unknown.", "422": "The request is not valid.",
	"429": "The address or the licence makes too many requests; Retry-After says when to come back.", "503": "Try again later.",
}

func answers(op map[string]any) {
	responses := op["responses"].(map[string]any)
	delete(responses, "default")
	delete(responses, "500")
	if body, ok := op["requestBody"].(map[string]any); ok {
		body["required"] = true // the framework would answer 400 to its absence, not 422
		for status := range errorAnswers {
			if status != "503" {
				responses[status] = nil
			}
		}
	}
	for status := range responses {
		if text, ok := errorAnswers[status]; ok {
			responses[status] = errorAnswer(status, text)
		}
	}
}

func errorAnswer(status, text string) map[string]any {
	name := "Error"
	if status == "422" {
		name = "HTTPValidationError"
	}
	return map[string]any{"description": text, "content": map[string]any{
		"application/json": map[string]any{"schema": map[string]any{"$ref": "#/components/schemas/" + name}},
	}}
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
