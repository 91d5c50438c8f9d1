package agent

import (
	"encoding/json"
	"strings"

	"github.com/slipway-dev/slipway"
)

// maxFilterDepth is how deep $and and $or may be nested (reference 12).
const maxFilterDepth = 2

// Filter is what an authorisation handler allows (reference 12): conditions on the metadata of an assistant, a thread (of
// runs: their thread's) or a cron, or on an item of the store. What it does not allow does not exist for the caller. A nil
// Filter allows everything.
type Filter struct {
	text       string
	conditions map[string]any
}

// ParseFilter reads a handler's filter: `{key: value}`, `{key: {"$eq": value}}` and `{key: {"$contains": value or list}}`,
// all keys must hold; "$and" and "$or" take lists of filters and may be nested two deep. null and {} are nil. Anything else
// is CodeInternal: the handler's mistake, and no reason to let anybody in.
func ParseFilter(raw json.RawMessage) (*Filter, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	v, err := DecodeJSON(raw)
	if err != nil || v == nil {
		return nil, err
	}
	conditions, ok := v.(map[string]any)
	if !ok {
		return nil, badFilter("it is no object")
	}
	if len(conditions) == 0 {
		return nil, nil
	}
	if err := checkFilter(conditions, 0); err != nil {
		return nil, err
	}
	return &Filter{text: string(raw), conditions: conditions}, nil
}

func badFilter(format string, args ...any) error {
	return slipway.Errorf(slipway.CodeInternal, "an authorisation handler returned a filter that cannot be used: "+format, args...)
}

func checkFilter(conditions map[string]any, depth int) error {
	for key, want := range conditions {
		var err error
		switch {
		case key == "$and" || key == "$or":
			err = checkBranches(key, want, depth+1)
		case strings.HasPrefix(key, "$"):
			err = badFilter("%q is not known; use $and, $or or a key of the metadata", key)
		default:
			err = checkCondition(key, want)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func checkBranches(key string, list any, depth int) error {
	if depth > maxFilterDepth {
		return badFilter("$and and $or are nested deeper than %d", maxFilterDepth)
	}
	branches, ok := list.([]any)
	if !ok {
		return badFilter("%s takes a list of filters", key)
	}
	for _, branch := range branches {
		conditions, ok := branch.(map[string]any)
		if !ok {
			return badFilter("%s takes a list of filters", key)
		}
		if err := checkFilter(conditions, depth); err != nil {
			return err
		}
	}
	return nil
}

func checkCondition(key string, want any) error {
	operators, plain := split(want)
	for name := range operators {
		if name != "$eq" && name != "$contains" {
			return badFilter("the condition on %q has the operator %q; use $eq or $contains", key, name)
		}
	}
	if len(operators) > 0 && plain {
		return badFilter("the condition on %q mixes operators and members", key)
	}
	return nil
}

// split returns the operators of a condition, and whether it has anything else.
func split(want any) (operators map[string]any, plain bool) {
	members, ok := want.(map[string]any)
	if !ok {
		return nil, true
	}
	operators = map[string]any{}
	for name, v := range members {
		if strings.HasPrefix(name, "$") {
			operators[name] = v
		} else {
			plain = true
		}
	}
	return operators, plain || len(operators) == 0
}

// String returns the filter as JSON, as databases evaluate it.
func (f *Filter) String() string {
	if f == nil {
		return "{}"
	}
	return f.text
}

// Allows says whether a JSON object satisfies the filter. What is no object satisfies none.
func (f *Filter) Allows(doc json.RawMessage) bool {
	if f == nil {
		return true
	}
	v, err := DecodeJSON(doc)
	if err != nil {
		return false
	}
	members, ok := v.(map[string]any)
	return ok && allows(f.conditions, members)
}

// AllowsItem says whether an item of the store satisfies the filter: what is matched is its value with namespace and key
// laid over it (reference 7).
func (f *Filter) AllowsItem(namespace []string, key string, value json.RawMessage) bool {
	return f == nil || f.Allows(itemDocument(namespace, key, value))
}

func itemDocument(namespace []string, key string, value json.RawMessage) json.RawMessage {
	members := map[string]json.RawMessage{}
	if json.Unmarshal(value, &members) != nil || members == nil {
		members = map[string]json.RawMessage{}
	}
	if namespace == nil {
		namespace = []string{}
	}
	members["namespace"], _ = json.Marshal(namespace) // texts always marshal
	members["key"], _ = json.Marshal(key)
	doc, _ := json.Marshal(members)
	return doc
}

func allows(conditions, doc map[string]any) bool {
	for key, want := range conditions {
		if !holds(key, want, doc) {
			return false
		}
	}
	return true
}

func holds(key string, want any, doc map[string]any) bool {
	switch key {
	case "$and":
		return !anyBranch(want, func(branch map[string]any) bool { return !allows(branch, doc) })
	case "$or":
		return anyBranch(want, func(branch map[string]any) bool { return allows(branch, doc) })
	}
	got, there := doc[key]
	return there && satisfies(got, want)
}

func anyBranch(list any, is func(map[string]any) bool) bool {
	branches, _ := list.([]any)
	for _, b := range branches {
		if branch, _ := b.(map[string]any); is(branch) {
			return true
		}
	}
	return false
}

func satisfies(got, want any) bool {
	operators, plain := split(want)
	if plain {
		return EqualJSON(got, want)
	}
	if v, there := operators["$eq"]; there && !EqualJSON(got, v) {
		return false
	}
	v, there := operators["$contains"]
	return !there || holdsAll(got, v)
}

// holdsAll says whether a list has every wanted element; one that is no list is wanted alone.
func holdsAll(got, want any) bool {
	list, ok := got.([]any)
	if !ok {
		return false
	}
	wanted, ok := want.([]any)
	if !ok {
		wanted = []any{want}
	}
	for _, w := range wanted {
		if !has(list, w) {
			return false
		}
	}
	return true
}

func has(list []any, want any) bool {
	for _, v := range list {
		if EqualJSON(v, want) {
			return true
		}
	}
	return false
}
