package graphconfig

import (
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway"
)

// Part is a place of the configuration that names code.
type Part struct {
	Key  string // such as "graphs.agent" or "http.app"
	Spec string // as written
	File string // relative to the configuration; "" = a dotted module
	UI   bool   // a component that browsers load, not workers
}

// Parts returns everything that names code: graphs, then the other keys.
func (c *Config) Parts() []Part {
	var parts []Part
	for _, id := range c.IDs() {
		parts = append(parts, part("graphs."+id, c.Graphs[id].Spec))
	}
	for _, names := range places() {
		if spec, ok := at(c.keys, names...).(string); ok && (names[len(names)-1] != "embed" || embedFile(spec)) {
			parts = append(parts, part(strings.Join(names, "."), spec))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.UI)) {
		parts = append(parts, Part{Key: "ui." + name, Spec: c.UI[name], File: path.Clean(slashed(c.UI[name])), UI: true})
	}
	return parts
}

// places are the keys besides graphs and ui that name code.
func places() [][]string {
	return [][]string{{"auth", "path"}, {"encryption", "path"}, {"checkpointer", "path"}, {"store", "path"}, {"store", "index", "embed"}, {"http", "app"}}
}

func part(key, spec string) Part {
	module, _ := cut(spec)
	file, _ := fileOf(module)
	return Part{Key: key, Spec: spec, File: file}
}

// Files returns the files that workers load, relative to the configuration: graphs, then the other parts.
func (c *Config) Files() []string {
	var files []string
	for _, p := range c.Parts() {
		if p.File != "" && !p.UI {
			files = append(files, p.File)
		}
	}
	return files
}

// UIShared returns the packages that the pages of components bring (ui_config.shared): they are not built in.
func (c *Config) UIShared() []string {
	var settings struct {
		Shared []string `json:"shared"`
	}
	_ = json.Unmarshal(c.UIConfig, &settings) // its shape has been checked
	return settings.Shared
}

// Effective returns the configuration as an agent server reads it: what the user wrote, with every name of code in the one
// form that bundles use ("./file.py:name", relative to the configuration's directory, or a dotted module).
func (c *Config) Effective() json.RawMessage {
	if c.keys == nil {
		return c.Raw
	}
	all := maps.Clone(c.keys)
	for _, names := range places() {
		if spec, ok := at(all, names...).(string); ok && (names[len(names)-1] != "embed" || embedFile(spec)) {
			put(all, normal(spec), names...)
		}
	}
	graphs := map[string]any{}
	for id, g := range c.Graphs {
		graphs[id] = normal(g.Spec)
		if g.Description != "" {
			graphs[id] = map[string]any{"path": normal(g.Spec), "description": g.Description}
		}
	}
	all["graphs"] = graphs
	if len(c.UI) > 0 {
		ui := map[string]any{}
		for name, file := range c.UI {
			ui[name] = dotted(path.Clean(slashed(file)))
		}
		all["ui"] = ui
	}
	raw, err := json.Marshal(all)
	if err != nil { // it was decoded from JSON
		return c.Raw
	}
	return raw
}

// put replaces a value inside of objects, copying each on the way.
func put(in map[string]any, value any, names ...string) {
	for _, name := range names[:len(names)-1] {
		inner, _ := in[name].(map[string]any)
		inner = maps.Clone(inner)
		in[name] = inner
		in = inner
	}
	in[names[len(names)-1]] = value
}

// Overrides returns the environment variables that stand above keys of the file (agent-server reference 18), by name.
func Overrides() map[string]string {
	return map[string]string{
		"LANGSERVE_GRAPHS": "graphs", "LANGGRAPH_AUTH": "auth", "LANGGRAPH_HTTP": "http", "LANGGRAPH_STORE": "store",
		"LANGGRAPH_CHECKPOINTER": "checkpointer", "LANGGRAPH_UI": "ui", "LANGGRAPH_UI_CONFIG": "ui_config",
		"LANGGRAPH_WEBHOOKS": "webhooks", "LANGGRAPH_ENCRYPTION": "encryption",
	}
}

// Override puts what the environment holds as JSON in place of the file's keys. raw is the configuration of a bundle; without
// such variables it comes back as it is. Their values are held to the same rules as the file's and brought into the same
// form; the error, CodeInvalid, names the variable. names are the variables that were found.
func Override(raw json.RawMessage, getenv func(string) string) (changed json.RawMessage, names []string, err error) {
	all := Overrides()
	var keys map[string]any
	for _, name := range slices.Sorted(maps.Keys(all)) {
		text := getenv(name)
		if text == "" {
			continue
		}
		value, err := override(all[name], text)
		if err != nil {
			return raw, nil, slipway.Errorf(slipway.CodeInvalid, "%s: %w", name, err)
		}
		if keys == nil {
			if keys, err = document(raw); err != nil {
				return raw, nil, slipway.Errorf(slipway.CodeInvalid, "the graph configuration: %w", err)
			}
		}
		keys[all[name]], names = value, append(names, name)
	}
	if len(names) == 0 {
		return raw, nil, nil
	}
	changed, err = json.Marshal(keys)
	return changed, names, err
}

// override checks one key's value and returns it in the form of bundles.
func override(key, text string) (json.RawMessage, error) {
	value, err := document([]byte(text))
	if err != nil {
		return nil, err
	}
	whole := map[string]any{"graphs": map[string]any{"graph": "./graph.mjs:graph"}, key: value}
	raw, err := json.Marshal(whole)
	if err != nil {
		return nil, err
	}
	c, found := Read(raw)
	if len(found) > 0 && (key != "graphs" || len(found) != 1 || found[0].Key != "dependencies") { // a bundle has them installed
		return nil, found.Err()
	}
	var effective map[string]json.RawMessage
	err = json.Unmarshal(c.Effective(), &effective)
	return effective[key], err
}

// BundleGraphs reads the graphs of an effective configuration.
func BundleGraphs(effective json.RawMessage) (map[string]slipway.BundleGraph, error) {
	var c Config
	if err := json.Unmarshal(effective, &struct {
		Graphs *map[string]Graph `json:"graphs"`
	}{&c.Graphs}); err != nil {
		return nil, slipway.Errorf(slipway.CodeInvalid, "the graph configuration: %w", err)
	}
	return c.Bundle(), nil
}
