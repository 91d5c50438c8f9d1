package dialect

import (
	"slices"
	"strings"
)

// node is a position in a document: what is spelled differently there, in one direction.
type node struct {
	position string            // as the table writes it
	members  map[string]*node  // by either spelling
	names    map[string]string // spelling that is replaced → replacement
	values   map[string]string
	// spelled maps a replacement back to the spelling it replaces, where a document that has both is in conflict.
	spelled map[string]string
	// empty says that an empty array here becomes null.
	empty bool
	kind  kind
}

// kind says how the value at a position is read.
type kind int

const (
	document kind = iota
	prose         // a sentence: whole words are replaced
	place         // the loc of a validation error: a path through a document
)

// tree is a direction of translation.
type tree struct {
	root  *node
	words map[string]string // in sentences
	// upstream says that whoever sends these documents knows upstream's names, so that problems are told in them.
	upstream bool
}

// inward returns the direction from upstream's names to the canonical ones. extra are further values.
func inward(extra []value) *tree {
	t := newTree()
	for _, n := range names {
		for _, position := range n.at {
			at := t.at(position)
			at.names[n.upstream], at.spelled[n.canonical] = n.canonical, n.upstream
			at.members[n.upstream] = at.member(n.canonical)
		}
	}
	for _, v := range slices.Concat(values, extra) {
		t.at(v.at).values[v.upstream] = v.canonical
	}
	t.wrap()
	return t
}

// outward returns the direction from the canonical names to upstream's.
func outward() *tree {
	t := newTree()
	for _, n := range names {
		t.word(n.canonical, n.upstream)
		for _, position := range n.at {
			at := t.at(position)
			at.names[n.canonical] = n.upstream
			at.members[n.upstream] = at.member(n.canonical)
		}
	}
	for _, v := range values {
		t.at(v.at).values[v.canonical] = v.upstream
		t.word(v.canonical, v.upstream)
	}
	t.wrap()
	return t
}

// mounted is inward for the requests below the mount.
func mounted(extra []value) *tree {
	t := inward(extra)
	t.upstream = true
	return t
}

// patching is mounted for the bodies of which an empty member leaves what is stored.
func patching(extra []value) *tree {
	t := mounted(extra)
	for _, name := range absent {
		t.root.member(name).empty = true
	}
	return t
}

// failing is outward for error answers: `detail` is a sentence, or a list of places and sentences (spec 7).
func failing() *tree {
	t := outward()
	detail := newNode()
	detail.kind = prose
	detail.member("msg").kind = prose
	places := detail.member("loc")
	places.kind, places.members["body"] = place, t.root
	t.root = newNode()
	t.root.members["detail"] = detail
	return t
}

func newTree() *tree { return &tree{root: newNode(), words: map[string]string{}} }

func newNode() *node {
	return &node{members: map[string]*node{}, names: map[string]string{}, values: map[string]string{}, spelled: map[string]string{}}
}

// at returns the node at a dotted position, making it where it is missing.
func (t *tree) at(position string) *node {
	n := t.root
	for _, name := range strings.Split(position, ".") {
		n = n.member(name)
	}
	n.position = position
	return n
}

func (n *node) member(name string) *node {
	if n.members[name] == nil {
		n.members[name] = newNode()
	}
	return n.members[name]
}

func (t *tree) wrap() {
	for _, name := range wrappers {
		t.root.members[name] = t.root
	}
}

func (t *tree) word(from, to string) {
	if !slices.Contains(mute, from) {
		t.words[from] = to
	}
}
