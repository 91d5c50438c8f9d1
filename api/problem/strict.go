package problem

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// maxDepth bounds how deeply a body may be nested; a pod template needs about ten.
const maxDepth = 100

// Every value of a body costs a validation, and every wrong one a problem many times its size: a list of a million ones took
// a minute and half a gigabyte. The largest lists that anybody may send have 10 000 elements.
const (
	maxMembers = 20_000  // of one array or object
	maxValues  = 300_000 // of a whole body
)

// strict says what is wrong with a JSON text that a decoder would take: two members of one name, of which validation would
// see another one than the call, and nesting without end; "" = nothing.
func strict(data []byte) string {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var open []map[string]bool // of each open object its names, of each open array nil
	var count []int            // of the members of each
	values := 0
	name := false // the next token is a member's name
	for {
		token, err := dec.Token()
		if err != nil {
			return "" // the end, or what the decoder reports itself
		}
		if over := counted(token, name, count, &values); over != "" {
			return over
		}
		switch t := token.(type) {
		case json.Delim:
			switch t {
			case '{':
				open, count, name = append(open, map[string]bool{}), append(count, 0), true
			case '[':
				open, count, name = append(open, nil), append(count, 0), false
			default:
				open, count = open[:len(open)-1], count[:len(count)-1]
				name = len(open) > 0 && open[len(open)-1] != nil
			}
			if len(open) > maxDepth {
				return fmt.Sprintf("it is nested more than %d levels deep", maxDepth)
			}
			continue
		case string:
			if name {
				names := open[len(open)-1]
				if names[t] {
					return fmt.Sprintf("the member %.100q stands there twice", t)
				}
				names[t], name = true, false
				continue
			}
		}
		name = len(open) > 0 && open[len(open)-1] != nil
	}
}

// counted counts a token that begins a value, and says what there are too many of; "" = nothing.
func counted(token json.Token, name bool, count []int, values *int) string {
	if end, ok := token.(json.Delim); name || ok && (end == '}' || end == ']') {
		return ""
	}
	if *values++; *values > maxValues {
		return fmt.Sprintf("it has more than %d values", maxValues)
	}
	if len(count) == 0 {
		return ""
	}
	if count[len(count)-1]++; count[len(count)-1] > maxMembers {
		return fmt.Sprintf("an array or object in it has more than %d members", maxMembers)
	}
	return ""
}
