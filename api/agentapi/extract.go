package agentapi

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"github.com/slipway-dev/slipway/agent"
)

// maxExtracts bounds the extract of a thread search (reference 3).
const maxExtracts = 10

// maxSteps bounds how deep a path goes: as deep as a body may be.
const maxSteps = maxDepth

// extractForm is a root, then members and positions: values.messages[-1].content.
var extractForm = regexp.MustCompile(`^(values|metadata|config|interrupts)((?:\.[^.\[\]]+|\[-?\d{1,9}\])*)$`)

var extractStep = regexp.MustCompile(`\.[^.\[\]]+|\[-?\d{1,9}\]`)

// extract is one wanted place of a thread under the name it is answered by.
type extract struct {
	alias, root string
	steps       []string // ".key" or "[n]"
}

// extracts takes the member `extract` of a thread search.
func (b *body) extracts() []extract {
	var wanted map[string]string
	if !b.take("extract", "an object of aliases and paths", &wanted) {
		return nil
	}
	if len(wanted) > maxExtracts {
		b.wrong("extract", "has %d paths; give at most %d", len(wanted), maxExtracts)
		return nil
	}
	list := make([]extract, 0, len(wanted))
	for alias, path := range wanted {
		m := extractForm.FindStringSubmatch(path)
		if m == nil {
			b.wrong("extract", "%q is no path; begin with values, metadata, config or interrupts and go on with .key or [n], as in values.messages[-1]", path)
			continue
		}
		steps := extractStep.FindAllString(m[2], -1)
		if len(steps) > maxSteps {
			b.wrong("extract", "the path of %q has %d steps; give at most %d", alias, len(steps), maxSteps)
			continue
		}
		list = append(list, extract{alias, m[1], steps})
	}
	return list
}

// extracted answers every wanted place; a missing one is null.
func extracted(t agent.Thread, list []extract) map[string]json.RawMessage {
	roots := map[string]json.RawMessage{"values": t.Values, "metadata": t.Metadata, "config": t.Config, "interrupts": t.Interrupts}
	out := make(map[string]json.RawMessage, len(list))
	for _, x := range list {
		place := roots[x.root]
		for _, step := range x.steps {
			place = stepInto(place, step)
		}
		out[x.alias] = orNull(place)
	}
	return out
}

// stepInto goes one step down; nil where there is nothing.
func stepInto(place json.RawMessage, step string) json.RawMessage {
	if key, ok := strings.CutPrefix(step, "."); ok {
		var members map[string]json.RawMessage
		_ = json.Unmarshal(place, &members) // what is no object has no members
		return members[key]
	}
	var list []json.RawMessage
	_ = json.Unmarshal(place, &list) // what is no list has no positions
	n, _ := strconv.Atoi(step[1 : len(step)-1])
	if n < 0 {
		n += len(list)
	}
	if n < 0 || n >= len(list) {
		return nil
	}
	return list[n]
}
