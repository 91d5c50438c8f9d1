package dialect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway"
)

// maxNesting is how deep documents are looked into; what lies deeper than any position of the table is not.
const maxNesting = 16

// maxSpellings is how many members of one object are compared for being one field; a request has no reason for more.
const maxSpellings = 8

// edit replaces a part of the text; the replacement needs no quoting.
type edit struct {
	from, to int
	text     string
}

// rewriter walks a JSON text once, from position to position of the table, and collects what is to be replaced. It copies and
// decodes nothing else, so that numbers, order, white space and unknown members stay as they are.
type rewriter struct {
	text     []byte
	pos      int
	tree     *tree
	edits    []edit
	problems slipway.Problems
}

// translate returns the text in the other dialect: the very same slice when nothing differs. A text that is no JSON comes back
// as far as it could be read; its reader says what is wrong with it. Problems name members that are given in both spellings
// with different values.
func (t *tree) translate(text []byte) ([]byte, slipway.Problems) {
	var few [8]edit
	r := rewriter{text: text, tree: t, edits: few[:0]}
	r.value(t.root, 0)
	if len(r.problems) > 0 {
		return text, r.problems
	}
	return r.applied(), nil
}

func (r *rewriter) applied() []byte {
	if len(r.edits) == 0 {
		return r.text
	}
	slices.SortFunc(r.edits, func(a, b edit) int { return a.from - b.from })
	out := make([]byte, 0, len(r.text)+16*len(r.edits))
	done := 0
	for _, e := range r.edits {
		out = append(append(out, r.text[done:e.from]...), e.text...)
		done = e.to
	}
	return append(out, r.text[done:]...)
}

// value reads the value at the position n. It returns false at the end of what can be read.
func (r *rewriter) value(n *node, depth int) bool {
	r.space()
	if n == nil || depth > maxNesting || r.pos >= len(r.text) {
		return r.skip()
	}
	switch r.text[r.pos] {
	case '{':
		return r.object(n, depth)
	case '[':
		return r.array(n, depth)
	case '"':
		return r.word(n)
	}
	return r.skip()
}

// spelling is a member of an object whose name has two spellings.
type spelling struct {
	key        string
	keyAt, end int // of the text between the quotes of its key
	value      []byte
	renamed    int // index of its edit; -1 = its name stays
}

func (r *rewriter) object(n *node, depth int) bool {
	var found []spelling
	r.pos++
	for {
		r.space()
		if r.take('}') {
			r.settle(n, found)
			return true
		}
		key, from, to, ok := r.key()
		if !ok {
			return false
		}
		renamed := r.rename(n, key, from, to)
		r.space()
		start := r.pos
		if !r.value(n.members[string(key)], depth+1) {
			return false
		}
		if n.twofold(key) && len(found) < maxSpellings {
			found = append(found, spelling{string(key), from, to, r.text[start:r.pos], renamed})
		}
		r.space()
		if !r.take(',') && !r.at('}') {
			return false
		}
	}
}

// rename records the other name of a member and returns the index of the edit; -1 = the name stays.
func (r *rewriter) rename(n *node, key []byte, from, to int) int {
	other, ok := n.names[string(key)]
	if !ok {
		return -1
	}
	r.edits = append(r.edits, edit{from, to, other})
	return len(r.edits) - 1
}

// twofold says whether a member is one spelling of two that may contradict each other.
func (n *node) twofold(key []byte) bool {
	if len(n.spelled) == 0 {
		return false
	}
	_, upstream := n.names[string(key)]
	_, own := n.spelled[string(key)]
	return upstream || own
}

// settle looks for members given in both spellings. Equal ones are one, and null is as good as absent: the one that does not
// count goes by upstream's name, which nobody reads. Different ones are a problem.
func (r *rewriter) settle(n *node, found []spelling) {
	for _, up := range found {
		if up.renamed < 0 {
			continue
		}
		for _, own := range found {
			if own.renamed < 0 && own.key == n.names[up.key] {
				r.reconcile(n, up, own)
			}
		}
	}
}

func (r *rewriter) reconcile(n *node, up, own spelling) {
	switch {
	case equal(up.value, own.value) || string(up.value) == "null":
		r.edits[up.renamed].text = up.key
	case string(own.value) == "null":
		r.edits = append(r.edits, edit{own.keyAt, own.end, up.key})
	default:
		loc := []any{"body"}
		for _, part := range strings.Split(n.position, ".") {
			loc = append(loc, part)
		}
		at := own.key
		if r.tree.upstream {
			at = up.key
		}
		r.problems.Add(append(loc, at), "%s and %s are two names of one field and have different values; send one of them", up.key, own.key)
	}
}

// equal compares two JSON values.
func equal(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

func (r *rewriter) array(n *node, depth int) bool {
	if n.kind == place {
		return r.place(n)
	}
	start := r.pos
	r.pos++
	for first := true; ; first = false {
		r.space()
		if r.take(']') {
			if n.empty && first {
				r.edits = append(r.edits, edit{start, r.pos, "null"})
			}
			return true
		}
		if !r.value(n, depth+1) {
			return false
		}
		r.space()
		if !r.take(',') && !r.at(']') {
			return false
		}
	}
}

// place reads the loc of a validation error, each of whose strings leads one position further.
func (r *rewriter) place(n *node) bool {
	r.pos++
	for {
		r.space()
		if r.take(']') {
			return true
		}
		if !r.at('"') {
			if !r.skip() {
				return false
			}
		} else if text, from, to, ok := r.quoted(); !ok {
			return false
		} else if n != nil {
			if other, ok := n.names[string(text)]; ok {
				r.edits = append(r.edits, edit{from, to, other})
			}
			n = n.members[string(text)]
		}
		r.space()
		if !r.take(',') && !r.at(']') {
			return false
		}
	}
}

// word reads a string: a value that may have another spelling, or a sentence.
func (r *rewriter) word(n *node) bool {
	text, from, to, ok := r.quoted()
	if !ok {
		return false
	}
	if n.kind == prose {
		if said := sentence(string(r.text[from:to]), r.tree.words); said != string(r.text[from:to]) {
			r.edits = append(r.edits, edit{from, to, said})
		}
		return true
	}
	if other, ok := n.values[string(text)]; ok {
		r.edits = append(r.edits, edit{from, to, other})
	}
	return true
}

// sentence replaces whole words; a backslash and what follows it are no part of a word.
func sentence(text string, words map[string]string) string {
	var out strings.Builder
	for i := 0; i < len(text); {
		end := i
		for end < len(text) && wordByte(text[end]) {
			end++
		}
		if other, ok := words[text[i:end]]; ok {
			out.WriteString(other)
		} else {
			out.WriteString(text[i:end])
		}
		next := min(len(text), end+1)
		if end < len(text) && text[end] == '\\' {
			next = min(len(text), end+2)
		}
		out.WriteString(text[end:next])
		i = next
	}
	return out.String()
}

func wordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}

// key reads the name of a member and the colon behind it.
func (r *rewriter) key() (text []byte, from, to int, ok bool) {
	if text, from, to, ok = r.quoted(); !ok {
		return nil, 0, 0, false
	}
	r.space()
	return text, from, to, r.take(':')
}

// quoted reads a string. from and to bound what stands between the quotes; text is what it means.
func (r *rewriter) quoted() (text []byte, from, to int, ok bool) {
	if !r.take('"') {
		return nil, 0, 0, false
	}
	from = r.pos
	escaped := false
	for r.pos < len(r.text) {
		switch r.text[r.pos] {
		case '\\':
			escaped = true
			r.pos++
		case '"':
			to = r.pos
			r.pos++
			return meaning(r.text[from:to], escaped), from, to, true
		}
		r.pos++
	}
	r.pos = len(r.text)
	return nil, 0, 0, false
}

func meaning(text []byte, escaped bool) []byte {
	if !escaped {
		return text
	}
	var s string
	if json.Unmarshal(fmt.Appendf(nil, `"%s"`, text), &s) != nil {
		return text
	}
	return []byte(s)
}

// skip passes over a value without looking into it.
func (r *rewriter) skip() bool {
	for depth := 0; r.pos < len(r.text); {
		switch r.text[r.pos] {
		case '"':
			if _, _, _, ok := r.quoted(); !ok {
				return false
			}
			if depth == 0 {
				return true
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 {
				return true // the end of what the value stands in
			}
			if depth == 0 {
				r.pos++
				return true
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return true
			}
		}
		r.pos++
	}
	return true
}

func (r *rewriter) space() {
	for r.pos < len(r.text) {
		switch r.text[r.pos] {
		case ' ', '\t', '\r', '\n':
			r.pos++
		default:
			return
		}
	}
}

func (r *rewriter) at(c byte) bool { return r.pos < len(r.text) && r.text[r.pos] == c }

func (r *rewriter) take(c byte) bool {
	if !r.at(c) {
		return false
	}
	r.pos++
	return true
}
