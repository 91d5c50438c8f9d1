package query

import (
	"encoding/json"
	"strings"

	"github.com/slipway-dev/slipway/agent"
)

// Contains says whether the JSON document contains want (agent-server reference 2): objects recurse, scalars compare by
// type and value, an array must be contained as a set. What is no JSON contains nothing.
func Contains(doc, want string) bool {
	d, err := agent.DecodeJSON([]byte(doc))
	if err != nil {
		return false
	}
	w, err := agent.DecodeJSON([]byte(want))
	return err == nil && contains(d, w)
}

func contains(doc, want any) bool {
	switch w := want.(type) {
	case map[string]any:
		d, ok := doc.(map[string]any)
		for k, v := range w {
			if got, has := d[k]; !has || !contains(got, v) {
				return false
			}
		}
		return ok
	case []any:
		d, ok := doc.([]any)
		for _, v := range w {
			if !anyContains(d, v) {
				return false
			}
		}
		return ok
	}
	return agent.EqualJSON(doc, want)
}

func anyContains(list []any, want any) bool {
	for _, v := range list {
		if contains(v, want) {
			return true
		}
	}
	return false
}

// Matches says whether a store item's value satisfies a filter (agent-server reference 15).
func Matches(value, filter string) bool {
	v, err := agent.DecodeJSON([]byte(value))
	if err != nil {
		return false
	}
	f, err := agent.DecodeJSON([]byte(filter))
	return err == nil && matches(v, f)
}

func matches(value, filter any) bool {
	f, ok := filter.(map[string]any)
	if !ok {
		return agent.EqualJSON(value, filter)
	}
	object, isObject := value.(map[string]any)
	for k, want := range f {
		if strings.HasPrefix(k, "$") {
			if !operator(k, value, want) {
				return false
			}
			continue
		}
		got, has := object[k]
		if !isObject || !has && !negative(want) || !matches(got, want) {
			return false
		}
	}
	return true
}

// negative says whether a condition can hold for a missing value.
func negative(want any) bool {
	m, ok := want.(map[string]any)
	_, ne := m["$ne"]
	return ok && ne
}

func operator(name string, got, want any) bool {
	switch name {
	case "$eq":
		return agent.EqualJSON(got, want)
	case "$ne":
		return !agent.EqualJSON(got, want)
	}
	x, okX := got.(json.Number)
	y, okY := want.(json.Number)
	if !okX || !okY {
		return false
	}
	order := agent.CompareNumbers(x, y)
	switch name {
	case "$gt":
		return order > 0
	case "$gte":
		return order >= 0
	case "$lt":
		return order < 0
	case "$lte":
		return order <= 0
	}
	return false
}

// AllowsItem says whether an item of the store, with its namespace as JSON, satisfies an access filter (agent-server
// reference 7).
func AllowsItem(value, namespace, key string, f *agent.Filter) bool {
	var labels []string
	return json.Unmarshal([]byte(namespace), &labels) == nil && f.AllowsItem(labels, key, []byte(value))
}

// Folded says whether text contains part, whatever the case.
func Folded(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}
