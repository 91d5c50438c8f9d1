// Package graphconfig reads the graph configuration file, agentgraph.json or langgraph.json (control-plane reference 7).
package graphconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"reflect"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/slipway-dev/slipway"
)

// FileNames are the names looked for when a source names no configuration, in order.
func FileNames() []string { return []string{"agentgraph.json", "langgraph.json"} }

// Config is a graph configuration. Parts that only the agent server reads stay as they were written.
type Config struct {
	Graphs        map[string]Graph  `json:"graphs"`
	Dependencies  []string          `json:"dependencies"`
	Env           Env               `json:"env"`
	PythonVersion string            `json:"python_version"` // "" = not given: 3.11, or what the machine has
	NodeVersion   string            `json:"node_version"`   // "" = not given: 20 or later
	APIVersion    string            `json:"api_version"`
	BaseImage     string            `json:"base_image"`
	ImageDistro   string            `json:"image_distro"`
	PipConfigFile string            `json:"pip_config_file"`
	PipInstaller  string            `json:"pip_installer"`
	Source        *UVSource         `json:"source"`
	Dockerfile    []string          `json:"dockerfile_lines"`
	Store         json.RawMessage   `json:"store"`
	Checkpointer  json.RawMessage   `json:"checkpointer"`
	Auth          *Located          `json:"auth"`
	Encryption    *Located          `json:"encryption"`
	HTTP          json.RawMessage   `json:"http"`
	Webhooks      json.RawMessage   `json:"webhooks"`
	UI            map[string]string `json:"ui"`
	UIConfig      json.RawMessage   `json:"ui_config"`
	KeepPkgTools  json.RawMessage   `json:"keep_pkg_tools"`

	// Raw is the file as the user wrote it; Warnings are about keys nobody knows.
	Raw      json.RawMessage `json:"-"`
	Warnings []string        `json:"-"`
}

// UVSource asks for the uv workspace mode.
type UVSource struct {
	Kind    string `json:"kind"`
	Root    string `json:"root"`
	Package string `json:"package"`
}

// Located is a part of the configuration that names an object in the user's code.
type Located struct {
	Path string `json:"path"`
}

// Env is the `env` key: a map, or the path of a .env file beside the configuration.
type Env struct {
	Values map[string]string
	File   string
}

// UnmarshalJSON takes both forms.
func (e *Env) UnmarshalJSON(raw []byte) error {
	if json.Unmarshal(raw, &e.File) == nil {
		return nil
	}
	var values map[string]any
	if err := json.Unmarshal(raw, &values); err != nil {
		return fmt.Errorf("env must be an object of strings or the path of a .env file")
	}
	e.Values = map[string]string{}
	for name, value := range values {
		switch value.(type) {
		case map[string]any, []any, nil:
			return fmt.Errorf("env.%s must be a string", name)
		}
		e.Values[name] = fmt.Sprint(value)
	}
	return nil
}

var (
	pythonVersion = regexp.MustCompile(`^3\.(\d+)$`)
	nodeVersion   = regexp.MustCompile(`^\d+$`)
)

// Parse reads a configuration and checks every rule that needs no other file. The error lists all broken rules.
func Parse(raw []byte) (Config, error) {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(raw, &keys); err != nil {
		return Config{}, syntax(raw, err)
	}
	var c Config
	if err := json.Unmarshal(raw, &c); err != nil {
		return Config{}, syntax(raw, err)
	}
	c.Raw = bytes.Clone(raw)
	c.Warnings = warnings(keys)
	var p slipway.Problems
	c.validate(&p, keys)
	if len(p) > 0 {
		parts := make([]string, 0, len(p))
		for _, problem := range p {
			parts = append(parts, problem.Msg)
		}
		return c, slipway.Errorf(slipway.CodeInvalid, "%s", strings.Join(parts, "; "))
	}
	return c, nil
}

func (c *Config) validate(p *slipway.Problems, keys map[string]json.RawMessage) {
	add := func(field, format string, args ...any) { p.Add([]any{field}, format, args...) }
	if len(c.Graphs) == 0 {
		add("graphs", `graphs is missing or empty: name at least one graph, such as "graphs": {"agent": "./agent.py:graph"}`)
	}
	for _, id := range c.IDs() {
		if g := c.Graphs[id]; g.Module == "" || g.Attribute == "" {
			add("graphs", "graphs.%s is %q: write it as <path or module>:<attribute>, such as ./agent.py:graph", id, g.Spec)
		}
	}
	c.validateVersions(add)
	if c.Uses(slipway.Python) && len(c.Dependencies) == 0 && (c.Source == nil || c.Source.Kind != "uv") {
		add("dependencies", `dependencies is missing or empty: Python graphs need it, such as "dependencies": ["."]`)
	}
	for _, removed := range []string{"project_root", "package"} {
		if _, found := keys[removed]; found {
			add(removed, "%s is no longer a key: use source.root and source.package", removed)
		}
	}
	if c.ImageDistro == "bullseye" {
		add("image_distro", "image_distro is bullseye, which is not supported: use debian, bookworm or wolfi")
	}
	switch c.PipInstaller {
	case "", "auto", "pip", "uv":
	default:
		add("pip_installer", "pip_installer is %q: use auto, pip or uv", c.PipInstaller)
	}
	if c.Auth != nil && !strings.Contains(c.Auth.Path, ":") {
		add("auth", "auth.path is %q: write it as ./file.py:name", c.Auth.Path)
	}
	if c.Encryption != nil && !strings.Contains(c.Encryption.Path, ":") {
		add("encryption", "encryption.path is %q: write it as ./file.py:name", c.Encryption.Path)
	}
	c.validateSource(add)
}

func (c *Config) validateSource(add func(field, format string, args ...any)) {
	if c.Source == nil {
		return
	}
	if c.Source.Kind != "uv" {
		add("source", `source.kind is %q: "uv" is the only kind, leave source out otherwise`, c.Source.Kind)
	}
	if len(c.Dependencies) > 0 {
		add("dependencies", "dependencies and source do not go together: remove one of them")
	}
	if c.PythonVersion == "" {
		add("python_version", `python_version is missing: source.kind uv needs it, such as "3.11"`)
	}
	if c.PipInstaller == "pip" {
		add("pip_installer", "pip_installer is pip, but source.kind uv needs uv: remove it")
	}
	if path.IsAbs(c.Source.Root) {
		add("source", "source.root is %q: write it relative to this file", c.Source.Root)
	}
}

func (c *Config) validateVersions(add func(field, format string, args ...any)) {
	if v := c.PythonVersion; v != "" {
		m := pythonVersion.FindStringSubmatch(v)
		if m == nil {
			add("python_version", `python_version is %q: write major.minor, such as "3.11"`, v)
		} else if minor, _ := strconv.Atoi(m[1]); minor < 11 {
			add("python_version", "python_version is %q: 3.11 is the oldest supported", v)
		}
	}
	if v := c.NodeVersion; v != "" {
		if n, _ := strconv.Atoi(v); !nodeVersion.MatchString(v) || n < 20 {
			add("node_version", `node_version is %q: write a major version of 20 or later, such as "20"`, v)
		}
	}
}

// IDs returns the graph ids in order.
func (c *Config) IDs() []string {
	ids := make([]string, 0, len(c.Graphs))
	for id := range c.Graphs {
		ids = append(ids, id)
	}
	sort.Strings(ids)
	return ids
}

// Uses says whether a graph is written in the language.
func (c *Config) Uses(l slipway.Language) bool {
	for _, g := range c.Graphs {
		if g.Language == l {
			return true
		}
	}
	return false
}

// Files returns the files that the configuration names code in, relative to it: graphs, then the other parts.
func (c *Config) Files() []string {
	var files []string
	for _, id := range c.IDs() {
		if file, ok := c.Graphs[id].File(); ok {
			files = append(files, file)
		}
	}
	for _, part := range []*Located{c.Auth, c.Encryption, c.app()} {
		if part == nil {
			continue
		}
		module, _, _ := strings.Cut(part.Path, ":")
		if strings.ContainsAny(module, `/\`) {
			files = append(files, path.Clean(strings.ReplaceAll(module, `\`, "/")))
		}
	}
	return files
}

// ImageKeys returns the keys that are set and only matter where a container image is built.
func (c *Config) ImageKeys() []string {
	var keys []string
	for _, k := range []struct {
		name string
		set  bool
	}{
		{"base_image", c.BaseImage != ""}, {"image_distro", c.ImageDistro != ""}, {"dockerfile_lines", len(c.Dockerfile) > 0},
		{"keep_pkg_tools", len(c.KeepPkgTools) > 0},
	} {
		if k.set {
			keys = append(keys, k.name)
		}
	}
	return keys
}

// app is http.app.
func (c *Config) app() *Located {
	var http struct{ App string }
	if json.Unmarshal(c.HTTP, &http) != nil || http.App == "" {
		return nil
	}
	return &Located{Path: http.App}
}

// TypeScript says whether a file of the configuration needs a loader for TypeScript.
func (c *Config) TypeScript() bool {
	return slices.ContainsFunc(c.Files(), func(file string) bool {
		return slices.Contains([]string{".ts", ".mts", ".cts", ".tsx", ".jsx"}, path.Ext(file))
	})
}

// syntax turns a decoding error into a sentence with line and column.
func syntax(raw []byte, err error) error {
	offset := int64(-1)
	var broken *json.SyntaxError
	var other *json.UnmarshalTypeError
	switch {
	case errors.As(err, &broken):
		offset = broken.Offset
	case errors.As(err, &other):
		field := other.Field
		if field == "" {
			field = "the file"
		}
		return slipway.Errorf(slipway.CodeInvalid, "%s is a JSON %s, but %s is needed", field, other.Value, needed(other.Type.Kind()))
	}
	if offset < 0 {
		return slipway.Errorf(slipway.CodeInvalid, "%w", err)
	}
	before := raw[:min(int(offset), len(raw))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := len(before) - bytes.LastIndexByte(before, '\n') - 1
	return slipway.Errorf(slipway.CodeInvalid, "it is not JSON: line %d, column %d: %w", line, column, err)
}

// needed names a JSON type for users.
func needed(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "a string in quotes"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Bool:
		return "true or false"
	case reflect.Map, reflect.Struct:
		return "an object"
	}
	return "a number"
}
