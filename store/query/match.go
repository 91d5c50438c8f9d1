package query

import (
	"bytes"
	"encoding/json"
	"math/big"
	"reflect"
	"strings"
)

// Decode reads JSON for matching; numbers keep their text.
func decode(text string) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	return v, d.Decode(&v)
}

// Contains says whether the JSON document contains want (agent-server reference 2): objects recurse, scalars compare by
// type and value, an array must be contained as a set. What is no JSON contains nothing.
func Contains(doc, want string) bool {
	d, err := decode(doc)
	if err != nil {
		return false
	}
	w, err := decode(want)
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
	return equal(doc, want)
}

func anyContains(list []any, want any) bool {
	for _, v := range list {
		if contains(v, want) {
			return true
		}
	}
	return false
}

// equal compares JSON values; numbers by value.
func equal(a, b any) bool {
	switch x := a.(type) {
	case json.Number:
		y, ok := b.(json.Number)
		return ok && compare(x, y) == 0
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !equal(x[i], y[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for k, v := range x {
			if w, has := y[k]; !has || !equal(v, w) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(a, b)
}

func compare(a, b json.Number) int {
	if a == b {
		return 0
	}
	x, okX := new(big.Float).SetString(a.String())
	y, okY := new(big.Float).SetString(b.String())
	if !okX || !okY {
		return strings.Compare(a.String(), b.String())
	}
	return x.Cmp(y)
}

// Matches says whether a store item's value satisfies a filter (agent-server reference 15).
func Matches(value, filter string) bool {
	v, err := decode(value)
	if err != nil {
		return false
	}
	f, err := decode(filter)
	return err == nil && matches(v, f)
}

func matches(value, filter any) bool {
	f, ok := filter.(map[string]any)
	if !ok {
		return equal(value, filter)
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
		return equal(got, want)
	case "$ne":
		return !equal(got, want)
	}
	x, okX := got.(json.Number)
	y, okY := want.(json.Number)
	if !okX || !okY {
		return false
	}
	order := compare(x, y)
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

// Folded says whether text contains part, whatever the case.
func Folded(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}
