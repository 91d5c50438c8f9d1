package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Index is the configuration of the store's vectors (`store.index`, reference 15).
type Index struct {
	Dims   int      `json:"dims"`   // numbers per vector
	Embed  string   `json:"embed"`  // `provider:model` or `./file.py:function`; the workers know it
	Fields []string `json:"fields"` // paths of the texts in an item that does not name its own; empty = the whole value
}

// MaxDims bounds the numbers per vector.
const MaxDims = 16000

// Check refuses a configuration that cannot work.
func (x Index) Check() error {
	if x.Dims < 1 || x.Dims > MaxDims {
		return fmt.Errorf("store.index.dims is %d; give how many numbers the embedding has, 1 to %d", x.Dims, MaxDims)
	}
	for _, path := range x.Fields {
		if _, err := parsePath(path); err != nil {
			return fmt.Errorf("store.index.fields: %w", err)
		}
	}
	return nil
}

// Name tells indexes apart: vectors made for one are of no use to another.
func (x Index) Name() string {
	name, _ := json.Marshal([]any{x.Embed, x.Dims, x.paths()}) // always marshals
	return string(name)
}

func (x Index) paths() []string {
	if len(x.Fields) == 0 {
		return []string{"$"}
	}
	return x.Fields
}

// Text is a text of an item that gets a vector.
type Text struct {
	Field string // its path, of elements of lists with their number
	Text  string
}

// Texts returns the texts of a value that get vectors. fields is what the put said (PutOp.Index): absent or null = the
// index's, false = none, else a list of paths.
func (x Index) Texts(value, fields json.RawMessage) ([]Text, error) {
	paths, err := x.pathsOf(fields)
	if err != nil || len(paths) == 0 {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.UseNumber()
	var doc any
	if err := decoder.Decode(&doc); err != nil {
		return nil, fmt.Errorf("the value is no JSON: %w", err)
	}
	var texts []Text
	for _, path := range paths {
		steps, err := parsePath(path)
		if err != nil {
			return nil, err
		}
		texts = pick(texts, doc, steps, path, nil)
	}
	return texts, nil
}

func (x Index) pathsOf(fields json.RawMessage) ([]string, error) {
	switch string(fields) {
	case "", "null", "true":
		return x.paths(), nil
	case "false":
		return nil, nil
	}
	var paths []string
	if err := json.Unmarshal(fields, &paths); err != nil {
		return nil, fmt.Errorf("index is %s; give false, null or a list of paths such as [\"text\", \"parts[*].text\"]", fields)
	}
	return paths, nil
}

// CheckFields refuses a PutOp.Index that names no paths.
func CheckFields(fields json.RawMessage) error {
	paths, err := Index{}.pathsOf(fields)
	for _, path := range paths {
		if err == nil {
			_, err = parsePath(path)
		}
	}
	return err
}

// step goes from a value to a part of it: a member, an element (negative = from the end) or all elements.
type step struct {
	member  string
	element int
	kind    stepKind
}

type stepKind int

const (
	stepMember stepKind = iota
	stepElement
	stepAll
)

// parsePath reads `a.b`, `a[0]`, `a[-1]`, `a[*].b` or `$`, the whole value.
func parsePath(path string) ([]step, error) {
	if path == "$" || path == "" {
		return nil, nil
	}
	var steps []step
	for _, part := range strings.Split(strings.TrimPrefix(path, "$."), ".") {
		name, rest, indexed := strings.Cut(part, "[")
		if name != "" {
			steps = append(steps, step{member: name})
		}
		if !indexed {
			if name == "" {
				return nil, badPath(path)
			}
			continue
		}
		for _, inner := range strings.Split(rest, "[") {
			inner, closed := strings.CutSuffix(inner, "]")
			n, err := strconv.Atoi(inner)
			switch {
			case closed && inner == "*":
				steps = append(steps, step{kind: stepAll})
			case closed && err == nil:
				steps = append(steps, step{kind: stepElement, element: n})
			default:
				return nil, badPath(path)
			}
		}
	}
	return steps, nil
}

func badPath(path string) error {
	return fmt.Errorf("%q is no path; write a.b, a[0], a[-1], a[*].b, or $ for the whole value", path)
}

// pick adds the texts at a path; what is missing or null has none.
func pick(texts []Text, v any, steps []step, path string, at []string) []Text {
	if len(steps) == 0 {
		if text, ok := textOf(v); ok {
			texts = append(texts, Text{Field: strings.Join(append([]string{path}, at...), "#"), Text: text})
		}
		return texts
	}
	s, rest := steps[0], steps[1:]
	if s.kind == stepMember {
		object, _ := v.(map[string]any)
		if member, ok := object[s.member]; ok {
			texts = pick(texts, member, rest, path, at)
		}
		return texts
	}
	list, _ := v.([]any)
	for i, element := range list {
		switch {
		case s.kind == stepAll:
			texts = pick(texts, element, rest, path, append(slices.Clip(at), strconv.Itoa(i)))
		case s.element == i || s.element == i-len(list):
			texts = pick(texts, element, rest, path, at)
		}
	}
	return texts
}

// textOf is what is embedded of a value: texts as they are, numbers and truth values as JSON, the rest as JSON with sorted
// members.
func textOf(v any) (string, bool) {
	switch v := v.(type) {
	case nil:
		return "", false
	case string:
		return v, strings.TrimSpace(v) != ""
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return "", false
	}
	return strings.TrimSuffix(b.String(), "\n"), true
}

// Unit scales a vector to the length 1, so that the product of two is the cosine of their angle. A vector without direction
// stays as it is.
func Unit(v []float32) []float32 {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if sum == 0 || math.IsNaN(sum) || math.IsInf(sum, 0) {
		return make([]float32, len(v))
	}
	scale := 1 / math.Sqrt(sum)
	unit := make([]float32, len(v))
	for i, x := range v {
		unit[i] = float32(float64(x) * scale)
	}
	return unit
}

// ItemVector is the unit vector of one text of an item.
type ItemVector struct {
	Field  string
	Vector []float32
}

// Unindexed is an item without vectors for an index that it should have them for.
type Unindexed struct {
	Namespace []string
	Key       string
	Value     json.RawMessage
	Fields    json.RawMessage // as in PutOp.Index
	Vectors   []ItemVector    // for IndexItems
}

// VectorStore keeps the vectors of items (reference 15). Those of a put come with it.
type VectorStore interface {
	// Unindexed returns up to limit items that have no vectors for the named index though they should, behind an item (nil =
	// from the first), in a fixed order.
	Unindexed(ctx context.Context, index string, behind *Unindexed, limit int, now time.Time) ([]Unindexed, error)
	// IndexItems stores the vectors of items that still have the values they were made from; others are left alone.
	IndexItems(ctx context.Context, index string, items []Unindexed) error
}
