package agentapi

import (
	"fmt"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// shapePrefix begins the references to named shapes.
const shapePrefix = "#/components/schemas/"

// members are the members of an object.
type members map[string]*huma.Schema

func ref(name string) *huma.Schema { return &huma.Schema{Ref: shapePrefix + name} }

func text(doc string) *huma.Schema { return &huma.Schema{Type: "string", Description: doc} }

func uuidOf(doc string) *huma.Schema {
	return &huma.Schema{Type: "string", Format: "uuid", Description: doc}
}

func moment(doc string) *huma.Schema {
	return &huma.Schema{Type: "string", Format: "date-time", Description: doc}
}

// anything is any JSON.
func anything(doc string) *huma.Schema { return &huma.Schema{Description: doc} }

// free is an object of the client's or the graph's own making.
func free(doc string) *huma.Schema {
	return &huma.Schema{Type: "object", AdditionalProperties: true, Description: doc}
}

func flag(doc string) *huma.Schema {
	return &huma.Schema{Type: "boolean", Default: false, Description: doc}
}

func amount(doc string) *huma.Schema { return &huma.Schema{Type: "integer", Description: doc} }

func whole(fallback any, low, high int, doc string) *huma.Schema {
	lowest, highest := float64(low), float64(high)
	return &huma.Schema{Type: "integer", Default: fallback, Minimum: &lowest, Maximum: &highest, Description: doc}
}

func listOf(item *huma.Schema, doc string) *huma.Schema {
	return &huma.Schema{Type: "array", Items: item, Description: doc}
}

// idsOf is a list of ids that one request may name.
func idsOf(doc string) *huma.Schema {
	s, most := listOf(uuidOf(""), doc), maxNamed
	s.MaxItems = &most
	return s
}

// choice is one of some words; fallback nil = there is no default.
func choice(fallback any, doc string, words ...string) *huma.Schema {
	s := &huma.Schema{Type: "string", Default: fallback, Description: doc}
	for _, w := range words {
		s.Enum = append(s.Enum, w)
	}
	return s
}

// either is one of several shapes.
func either(doc string, some ...*huma.Schema) *huma.Schema {
	return &huma.Schema{AnyOf: some, Description: doc}
}

// textOrList is a string or a list of them.
func textOrList(doc string) *huma.Schema { return either(doc, text(""), listOf(text(""), "")) }

// filled is an object of which every member is there.
func filled(all members) *huma.Schema { return record(nil, all) }

// record is an object of an answer; the members but for those named are always there.
func record(sometimes []string, all members) *huma.Schema {
	s := &huma.Schema{Type: "object", Properties: all}
	for name := range all {
		if !slices.Contains(sometimes, name) {
			s.Required = append(s.Required, name)
		}
	}
	slices.Sort(s.Required)
	return s
}

// request is the object of a body: the required members, and others that may be absent or null.
func request(required []string, all members) *huma.Schema {
	s := &huma.Schema{Type: "object", Properties: members{}, Required: required}
	for name, one := range all {
		if !slices.Contains(required, name) {
			one = orNothing(withoutDefault(one))
		}
		s.Properties[name] = one
	}
	return s
}

// withoutDefault says in words what an absent member counts as: generated clients take one with a default for required.
func withoutDefault(s *huma.Schema) *huma.Schema {
	if s.Default != nil {
		s.Description = strings.Join(slices.DeleteFunc([]string{s.Description, fmt.Sprintf("%v if absent", s.Default)}, func(t string) bool { return t == "" }), "; ")
		s.Default = nil
	}
	return s
}

// orNothing is a shape or null.
func orNothing(s *huma.Schema) *huma.Schema {
	switch {
	case s.Type != "":
		s.Nullable = true
		if len(s.Enum) > 0 {
			s.Enum = append(s.Enum, nil)
		}
	case s.Ref != "":
		return &huma.Schema{AnyOf: []*huma.Schema{s, {Type: "null"}}}
	case len(s.AnyOf) > 0:
		s.AnyOf = append(s.AnyOf, &huma.Schema{Type: "null"})
	}
	return s
}

// selected is what a list answers: whole elements, or with `select` some of their members.
func selected(name string) *huma.Schema {
	return listOf(either("", ref(name), ref("Selected"+name)), "")
}

// some is an object with any of another's members.
func some(s *huma.Schema) *huma.Schema {
	return &huma.Schema{Type: "object", Properties: s.Properties, Description: "only the members that `select` names"}
}

// words are the allowed names of a list.
func words(names []string, doc string) *huma.Schema {
	return listOf(choice(nil, "", names...), doc)
}

func queryParam(name string, s *huma.Schema) *huma.Param {
	return &huma.Param{Name: name, In: "query", Schema: s}
}

// queryWords is a list in the query.
func queryWords(name string, s *huma.Schema) *huma.Param {
	return &huma.Param{Name: name, In: "query", Schema: s, Style: "form"}
}

func headerParam(name, doc string) *huma.Param {
	return &huma.Param{Name: name, In: "header", Schema: text(doc)}
}

func pathParameterOf(name string) *huma.Param {
	s := map[string]*huma.Schema{
		"assistant_id": text("the assistant's UUID, or the id of a graph"), "checkpoint_id": uuidOf("a checkpoint of the thread"),
		"namespace": text("namespace of a subgraph, its parts joined by |"),
		"graph":     text("a name of the configuration's ui, usually that of a graph"), "file": text("as the tags of a component say"),
	}[name]
	if s == nil {
		s = uuidOf("")
	}
	return &huma.Param{Name: name, In: "path", Required: true, Schema: s}
}

// page are limit and offset of a search.
func page(all members, limit int) members {
	all["limit"], all["offset"] = whole(limit, 1, 1000, "how many at most"), whole(0, 0, 1<<31, "how many to leave out first")
	return all
}

// sorted adds the order of a search; the first word is the default.
func sorted(all members, words ...string) members {
	all["sort_by"] = choice(words[0], "", words...)
	all["sort_order"] = choice("desc", "", "asc", "desc")
	return all
}
