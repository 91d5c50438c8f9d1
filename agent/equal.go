package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"strings"
)

// DecodeJSON reads one JSON document for EqualJSON: its numbers keep their text.
func DecodeJSON(text []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("decode JSON: %w", err)
	}
	return v, nil
}

// EqualJSON says whether two documents read by DecodeJSON are the same: scalars by type and value, numbers by value
// whatever their notation, arrays in order, objects by all their members.
func EqualJSON(a, b any) bool {
	switch x := a.(type) {
	case json.Number:
		y, ok := b.(json.Number)
		return ok && CompareNumbers(x, y) == 0
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !EqualJSON(x[i], y[i]) {
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
			if w, has := y[k]; !has || !EqualJSON(v, w) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(a, b)
}

// CompareNumbers compares two JSON numbers by value, exactly: the precision grows with their texts.
func CompareNumbers(a, b json.Number) int {
	if a == b {
		return 0
	}
	bits := uint(64 + 4*max(len(a), len(b))) //nolint:gosec // lengths are not negative
	x, okX := new(big.Float).SetPrec(bits).SetString(a.String())
	y, okY := new(big.Float).SetPrec(bits).SetString(b.String())
	if !okX || !okY {
		return strings.Compare(a.String(), b.String())
	}
	return x.Cmp(y)
}
