package graphconfig

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway"
)

// Graph is one entry of `graphs`.
type Graph struct {
	Spec        string // "<path or module>:<attribute>" as written
	Description string
	Module      string // the part before the colon
	Attribute   string
	Language    slipway.Language
}

// UnmarshalJSON takes "path:attr" and {"path", "description"}.
func (g *Graph) UnmarshalJSON(raw []byte) error {
	if json.Unmarshal(raw, &g.Spec) != nil {
		var form struct{ Path, Description string }
		if err := json.Unmarshal(raw, &form); err != nil {
			return fmt.Errorf("a graph must be \"path:attribute\" or {\"path\": \"path:attribute\", \"description\": \"…\"}")
		}
		g.Spec, g.Description = form.Path, form.Description
	}
	if i := strings.LastIndexByte(g.Spec, ':'); i >= 0 {
		g.Module, g.Attribute = g.Spec[:i], g.Spec[i+1:]
	} else if JavaScript(g.Spec) {
		g.Module, g.Attribute, g.Spec = g.Spec, "default", g.Spec+":default"
	}
	g.Language = slipway.Python
	if JavaScript(g.Module) {
		g.Language = slipway.Node
	}
	return nil
}

// File returns the graph's file relative to the configuration, false when the spec names a dotted Python module.
func (g Graph) File() (string, bool) {
	if g.Language == slipway.Python && !strings.ContainsAny(g.Module, `/\`) && path.Ext(g.Module) != ".py" {
		return "", false
	}
	return path.Clean(strings.ReplaceAll(g.Module, `\`, "/")), true
}

// JavaScript says whether a file is JavaScript or TypeScript by its extension.
func JavaScript(file string) bool {
	return slices.Contains([]string{".ts", ".mts", ".cts", ".js", ".mjs", ".cjs", ".tsx", ".jsx"}, path.Ext(file))
}
