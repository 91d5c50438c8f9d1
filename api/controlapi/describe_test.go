package controlapi_test

import (
	"encoding/json"
	"slices"
	"testing"
)

// schema is what the description says of a type.
type schema struct {
	Description string            `json:"description"`
	Type        any               `json:"type"`
	Properties  map[string]schema `json:"properties"`
	Required    []string          `json:"required"`
	AnyOf       []schema          `json:"anyOf"`
}

func (s schema) null() bool {
	list, _ := s.Type.([]any)
	return s.Type == "null" || slices.Contains(list, any("null")) || slices.ContainsFunc(s.AnyOf, schema.null)
}

type description struct {
	Components struct {
		Schemas map[string]schema `json:"schemas"`
	} `json:"components"`
	Paths map[string]map[string]struct {
		OperationID string                               `json:"operationId"`
		Summary     string                               `json:"summary"`
		Tags        []string                             `json:"tags"`
		Security    *[]any                               `json:"security"`
		Parameters  []struct{ Name, Description string } `json:"parameters"`
	} `json:"paths"`
}

func (s *server) description() (d description) {
	_, text := s.raw("", "GET", "/openapi.json", "")
	if err := json.Unmarshal(text, &d); err != nil {
		s.t.Fatal(err)
	}
	return d
}

func TestEveryFieldIsDescribed(t *testing.T) {
	t.Parallel()
	d := newServer(t).description()
	for name, s := range d.Components.Schemas {
		for field, property := range s.Properties {
			if property.Description == "" {
				t.Errorf("%s.%s has no description: give it a doc tag", name, field)
			}
		}
	}
	for path, methods := range d.Paths {
		for method, op := range methods {
			if op.OperationID == "" || op.Summary == "" || len(op.Tags) != 1 || op.Security == nil {
				t.Errorf("%s %s lacks an operation id, a summary, a tag or its security", method, path)
			}
			for _, p := range op.Parameters {
				if p.Description == "" {
					t.Errorf("%s: the parameter %s has no description: give it a doc tag", op.OperationID, p.Name)
				}
			}
		}
	}
}

func TestOptionalMeansNullable(t *testing.T) {
	t.Parallel()
	for name, s := range newServer(t).description().Components.Schemas {
		for field, property := range s.Properties {
			if !slices.Contains(s.Required, field) && !property.null() {
				t.Errorf("%s.%s is optional and not nullable (%v); null counts as absent everywhere", name, field, property.Type)
			}
		}
	}
}
