package problem

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// maxDepth bounds how deeply a body may be nested; a pod template needs about ten.
const maxDepth = 100

// strict says what is wrong with a JSON text that a decoder would take: two members of one name, of which validation would
// see another one than the call, and nesting without end; "" = nothing.
func strict(data []byte) string {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var open []map[string]bool // of each open object its names, of each open array nil
	name := false              // the next token is a member's name
	for {
		token, err := dec.Token()
		if err != nil {
			return "" // the end, or what the decoder reports itself
		}
		switch t := token.(type) {
		case json.Delim:
			switch t {
			case '{':
				open, name = append(open, map[string]bool{}), true
			case '[':
				open, name = append(open, nil), false
			default:
				open = open[:len(open)-1]
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
