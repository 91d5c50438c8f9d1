package graphconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/slipway-dev/slipway"
)

// Finding is one broken rule.
type Finding struct {
	Key     string `json:"key"`     // path of the key, such as "store.ttl.default_ttl"; "" = the file
	Message string `json:"message"` // a sentence that names key, value and remedy
}

// Findings are all broken rules of a configuration.
type Findings []Finding

// maxFindings bounds what is told at once.
const maxFindings = 50

func (f *Findings) add(key, format string, args ...any) {
	if len(*f) < maxFindings {
		*f = append(*f, Finding{Key: key, Message: fmt.Sprintf(format, args...)})
	}
}

// Err returns nil without findings, else one error with CodeInvalid that tells them all.
func (f Findings) Err() error {
	if len(f) == 0 {
		return nil
	}
	parts := make([]string, 0, len(f))
	for _, one := range f {
		parts = append(parts, one.Message)
	}
	return slipway.Errorf(slipway.CodeInvalid, "%s", strings.Join(parts, "; "))
}

func mapKeys(m map[string]any) iter.Seq[string] { return maps.Keys(m) }

// document reads a JSON object with its numbers as they are written; "null" is an empty one.
func document(raw []byte) (map[string]any, error) {
	raw = bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf")) // editors of other systems write it
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, syntax(raw, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("it is not JSON: there is more after the end of the object, at byte %d", decoder.InputOffset())
	}
	switch value := value.(type) {
	case map[string]any:
		return value, nil
	case nil:
		return map[string]any{}, nil
	}
	return nil, fmt.Errorf("the file is %s, but an object is needed, such as {\"graphs\": {…}}", kind(value))
}

// syntax turns a decoding error into a sentence with line and column.
func syntax(raw []byte, err error) error {
	offset := len(raw)
	var broken *json.SyntaxError
	if errors.As(err, &broken) {
		offset = min(int(broken.Offset), len(raw))
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("the file ends too early")
	}
	before := raw[:offset]
	line := bytes.Count(before, []byte("\n")) + 1
	column := len(before) - bytes.LastIndexByte(before, '\n') - 1
	return fmt.Errorf("it is not JSON: line %d, column %d: %w", line, column, err)
}

// warnings are about keys nobody knows.
func warnings(keys map[string]any) []string {
	known := slices.Sorted(maps.Keys(schema()))
	var all []string
	for key := range keys {
		if slices.Contains(known, key) {
			continue
		}
		text := fmt.Sprintf("the key %q is unknown and ignored", key)
		if near := Nearest(key, known); near != "" {
			text += fmt.Sprintf("; did you mean %q?", near)
		}
		all = append(all, text)
	}
	sort.Strings(all)
	return all
}

// Nearest returns the candidate that a mistyped word most likely meant, "" if none is near.
func Nearest(word string, candidates []string) string {
	best, bound := "", len(word)/3+2
	for _, c := range candidates {
		if d := distance(word, c); d < bound {
			best, bound = c, d
		}
	}
	return best
}

// distance is the Levenshtein distance in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
