// Package graphconfig reads the graph configuration file, agentgraph.json or langgraph.json (control-plane reference 7):
// its grammar, the rules about the files it names, what of a directory belongs to an application, and what all of it means
// here. It touches no disk itself: files come as an fs.FS.
package graphconfig

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"sort"
	"strings"

	"github.com/slipway-dev/slipway"
)

// FileNames are the names looked for when a source names no configuration, in order.
func FileNames() []string { return []string{"agentgraph.json", "langgraph.json"} }

// maxFile is how many bytes a configuration may have.
const maxFile = 1 << 20

// Config is a graph configuration. Parts that only the agent server reads stay as they were written.
type Config struct {
	Graphs        map[string]Graph  `json:"graphs"`
	Dependencies  []string          `json:"dependencies"`
	Env           Env               `json:"env"`
	PythonVersion string            `json:"python_version"` // "" = not given: 3.11, or what the machine has
	NodeVersion   string            `json:"node_version"`   // "" = not given: 20 or later
	NodeLoader    string            `json:"node_loader"`    // module for node's --import; "" = tsx where TypeScript needs it
	APIVersion    string            `json:"api_version"`
	BaseImage     string            `json:"base_image"`
	ImageDistro   string            `json:"image_distro"`
	PipConfigFile string            `json:"pip_config_file"`
	PipInstaller  string            `json:"pip_installer"`
	Source        *UVSource         `json:"source"`
	Dockerfile    []string          `json:"dockerfile_lines"`
	Store         json.RawMessage   `json:"store"`
	Checkpointer  json.RawMessage   `json:"checkpointer"`
	Auth          json.RawMessage   `json:"auth"`
	Encryption    json.RawMessage   `json:"encryption"`
	HTTP          json.RawMessage   `json:"http"`
	Webhooks      json.RawMessage   `json:"webhooks"`
	UI            map[string]string `json:"ui"`
	UIConfig      json.RawMessage   `json:"ui_config"`
	KeepPkgTools  json.RawMessage   `json:"keep_pkg_tools"`

	// Raw is the file as the user wrote it; Warnings are about keys nobody knows.
	Raw      json.RawMessage `json:"-"`
	Warnings []string        `json:"-"`

	keys map[string]any // the document's top level
}

// UVSource asks for the uv workspace mode.
type UVSource struct {
	Kind    string `json:"kind"`
	Root    string `json:"root"` // "" = "."
	Package string `json:"package"`
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
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&values); err != nil {
		return fmt.Errorf("env must be an object of strings or the path of a .env file")
	}
	e.Values = map[string]string{}
	for name, value := range values {
		e.Values[name] = fmt.Sprint(value)
	}
	return nil
}

// Parse reads a configuration and checks every rule that needs no other file. The error, CodeInvalid, lists all broken
// rules; the configuration beside it is what could be read.
func Parse(raw []byte) (Config, error) {
	c, found := Read(raw)
	return c, found.Err()
}

// Read is Parse with the broken rules one by one.
func Read(raw []byte) (Config, Findings) {
	var found Findings
	if len(raw) > maxFile {
		found.add("", "the file has %d bytes: %d is the limit", len(raw), maxFile)
		return Config{}, found
	}
	keys, err := document(raw)
	if err != nil {
		found.add("", "%s", err)
		return Config{}, found
	}
	c := decode(keys, &found)
	c.Raw, c.Warnings = bytes.Clone(raw), warnings(keys)
	c.validate(&found)
	return c, found
}

// decode checks the types of every key and reads those that are right.
func decode(keys map[string]any, found *Findings) Config {
	rules, good := schema(), map[string]any{}
	for _, name := range slices.Sorted(mapKeys(keys)) {
		before, value := len(*found), keys[name]
		if rule := rules[name]; rule != nil && value != nil {
			rule(found, name, value)
		}
		if all, ok := value.(map[string]any); ok && name == "graphs" {
			good[name] = sound(all)
		} else if len(*found) == before && value != nil {
			good[name] = value
		}
	}
	var c Config
	tidy, err := json.Marshal(good)
	if err == nil {
		err = json.Unmarshal(tidy, &c)
	}
	if err != nil {
		found.add("", "the file cannot be read: %s", err)
	}
	c.keys = keys
	return c
}

// sound are the graphs with nothing wrong: one that is wrong does not keep the others from being checked.
func sound(all map[string]any) map[string]any {
	good := map[string]any{}
	for id, value := range all {
		var found Findings
		if graph(&found, "graphs."+id, value); len(found) == 0 {
			good[id] = value
		}
	}
	return good
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

// Uses says whether a graph, or another part that workers load, is written in the language.
func (c *Config) Uses(l slipway.Language) bool {
	return c.hasGraph(l) || slices.ContainsFunc(c.Parts(), func(p Part) bool { return !p.UI && LanguageOf(p.Spec) == l })
}

func (c *Config) hasGraph(l slipway.Language) bool {
	for _, g := range c.Graphs {
		if g.Language == l {
			return true
		}
	}
	return false
}

// Bundle returns the graphs as a bundle describes them.
func (c *Config) Bundle() map[string]slipway.BundleGraph {
	all := map[string]slipway.BundleGraph{}
	for id, g := range c.Graphs {
		all[id] = slipway.BundleGraph{Spec: normal(g.Spec), Language: g.Language, Description: g.Description}
	}
	return all
}

// UVRoot is the directory of the uv workspace relative to the configuration, "" without one.
func (c *Config) UVRoot() string {
	if c.Source == nil || c.Source.Kind != "uv" {
		return ""
	}
	return path.Clean(c.Source.Root)
}

// Local returns the local dependencies, cleaned and relative to the configuration, in order.
func (c *Config) Local() []string {
	var dirs []string
	for _, dep := range c.Dependencies {
		if isLocal(dep) {
			dirs = append(dirs, path.Clean(slashed(dep)))
		}
	}
	return dirs
}

// isLocal says whether a dependency is a directory.
func isLocal(dependency string) bool { return strings.HasPrefix(dependency, ".") }

// ImageKeys returns the keys that are set and only matter where a container image is built.
func (c *Config) ImageKeys() []string {
	var keys []string
	for _, name := range []string{"base_image", "image_distro", "dockerfile_lines", "keep_pkg_tools", "_INTERNAL_docker_tag", "api_version"} {
		if value := c.keys[name]; value != nil && fmt.Sprint(value) != "[]" {
			keys = append(keys, name)
		}
	}
	return keys
}

// Has says whether the file holds the key.
func (c *Config) Has(key string) bool { return c.keys[key] != nil }

// TypeScript says whether a file that workers load needs a loader for TypeScript.
func (c *Config) TypeScript() bool {
	return slices.ContainsFunc(c.Files(), func(file string) bool {
		return slices.Contains([]string{".ts", ".mts", ".cts", ".tsx", ".jsx"}, path.Ext(file))
	})
}
