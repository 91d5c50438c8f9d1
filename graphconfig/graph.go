package graphconfig

import (
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway"
)

// Graph is one entry of `graphs`.
type Graph struct {
	Spec        string // "<path or module>:<attribute>" as written
	Description string
	Module      string // the part before the last colon
	Attribute   string
	Language    slipway.Language
}

// UnmarshalJSON takes "path:attr" and {"path", "description"}.
func (g *Graph) UnmarshalJSON(raw []byte) error {
	if json.Unmarshal(raw, &g.Spec) != nil {
		var form struct{ Path, Description string }
		if err := json.Unmarshal(raw, &form); err != nil {
			return err
		}
		g.Spec, g.Description = form.Path, form.Description
	}
	g.Module, g.Attribute = cut(g.Spec)
	if g.Attribute == "" && JavaScript(g.Spec) {
		g.Module, g.Attribute, g.Spec = g.Spec, "default", g.Spec+":default"
	}
	g.Language = language(g.Module)
	return nil
}

// File returns the graph's file relative to the configuration, false when the spec names a dotted Python module.
func (g Graph) File() (string, bool) { return fileOf(g.Module) }

// JavaScript says whether a file is JavaScript or TypeScript by its extension.
func JavaScript(file string) bool {
	return slices.Contains([]string{".ts", ".mts", ".cts", ".js", ".mjs", ".cjs", ".tsx", ".jsx"}, path.Ext(file))
}

// cut takes a spec apart at its last colon.
func cut(spec string) (module, attribute string) {
	if i := strings.LastIndexByte(spec, ':'); i >= 0 {
		return spec[:i], spec[i+1:]
	}
	return "", ""
}

func language(module string) slipway.Language {
	if JavaScript(module) {
		return slipway.Node
	}
	return slipway.Python
}

// LanguageOf returns the language of the code that a spec names.
func LanguageOf(spec string) slipway.Language {
	module, _ := cut(spec)
	return language(module)
}

// EmbedsItself says whether an embedding is a function of the application rather than a provider's model
// ("openai:text-embedding-3-small").
func EmbedsItself(spec string) bool { return embedFile(spec) }

func slashed(name string) string { return strings.ReplaceAll(name, `\`, "/") }

// fileOf returns the file that a module part names, false when it is a dotted Python module.
func fileOf(module string) (string, bool) {
	if !JavaScript(module) && !strings.ContainsAny(module, `/\`) && path.Ext(module) != ".py" {
		return "", false
	}
	return path.Clean(slashed(module)), true
}

// normal writes a spec as a bundle has it: a file starts with "./" or "../" and has slashes.
func normal(spec string) string {
	module, attribute := cut(spec)
	file, ok := fileOf(module)
	if !ok {
		return spec
	}
	return dotted(file) + ":" + attribute
}

// dotted gives a relative path its leading dot.
func dotted(file string) string {
	if strings.HasPrefix(file, "../") || path.IsAbs(file) {
		return file
	}
	return "./" + file
}

var (
	moduleForm    = regexp.MustCompile(`^[\pL_][\pL\pN_]*(\.[\pL_][\pL\pN_]*)*$`)
	attributeForm = regexp.MustCompile(`^[\pL_$][\pL\pN_$.]*$`)
	driveForm     = regexp.MustCompile(`^[A-Za-z]:[\\/]`)
)

// checkSpec checks the form of "<path or module>:<attribute>".
func checkSpec(found *Findings, at, spec, example string) {
	module, attribute := cut(spec)
	if attribute == "" && JavaScript(spec) && strings.HasPrefix(at, "graphs.") {
		module, attribute = spec, "default"
	}
	file, isFile := fileOf(module)
	switch {
	case module == "" || attribute == "" || driveForm.MatchString(spec) && !strings.Contains(spec[2:], ":"):
		found.add(at, "%s is %q: write it as <path or module>:<attribute>, such as %s", at, spec, example)
	case path.IsAbs(slashed(module)) || driveForm.MatchString(module):
		found.add(at, "%s is %q: write the path relative to this file", at, spec)
	case isFile && !JavaScript(file) && path.Ext(file) != ".py":
		found.add(at, "%s is %q: the file must end in .py, or in .ts, .mts, .cts, .js, .mjs or .cjs", at, spec)
	case !isFile && !moduleForm.MatchString(module):
		found.add(at, "%s is %q, whose first part is neither a path with a slash nor a dotted module: write it such as %s", at, spec, example)
	case !attributeForm.MatchString(attribute):
		found.add(at, "%s is %q, and %q is no name of an attribute: write the name of a variable or export, such as %s", at, spec, attribute, example)
	}
}
