package graphconfig

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway"
)

// Commands are the commands that a deployment puts in place of the detected ones; "" = none.
type Commands struct {
	Install string `json:"install_command,omitempty"` // runs in the root of the source
	Build   string `json:"build_command,omitempty"`   // runs beside the configuration
}

// Explanation tells what a configuration comes to: what is installed and how, which graphs there are, what each key means
// here and what has no effect.
type Explanation struct {
	File     string           `json:"file"` // path of the configuration in the source
	Valid    bool             `json:"valid"`
	Errors   []Finding        `json:"errors"`
	Warnings []string         `json:"warnings"`
	Graphs   []ExplainedGraph `json:"graphs"`
	Installs []Install        `json:"installs"`
	Keys     []ExplainedKey   `json:"keys"`
	Ignored  []ExplainedKey   `json:"ignored"`
}

// ExplainedGraph is one graph.
type ExplainedGraph struct {
	ID          string           `json:"id"`
	Language    slipway.Language `json:"language"`
	Spec        string           `json:"spec"`
	Description string           `json:"description,omitempty"`
}

// Install is one thing that is installed.
type Install struct {
	Language slipway.Language `json:"language"`
	What     string           `json:"what"`
	How      string           `json:"how"`
}

// ExplainedKey is one key and what it means here.
type ExplainedKey struct {
	Key   string `json:"key"`
	Value string `json:"value,omitempty"`
	Means string `json:"means"`
}

// Explain explains a configuration that lies at the path at below files. It is for people: it fails on nothing, and tells
// what is wrong under Errors.
func (c *Config) Explain(files fs.FS, at string, found Findings, commands Commands) Explanation {
	found = append(slices.Clone(found), c.FindingsIn(files, at, commands == Commands{})...)
	e := Explanation{
		File: at, Valid: len(found) == 0, Errors: slices.Concat([]Finding{}, found), Warnings: slices.Concat([]string{}, c.Warnings),
		Graphs: []ExplainedGraph{}, Installs: []Install{}, Keys: []ExplainedKey{}, Ignored: []ExplainedKey{},
	}
	for _, id := range c.IDs() {
		g := c.Graphs[id]
		e.Graphs = append(e.Graphs, ExplainedGraph{ID: id, Language: g.Language, Spec: normal(g.Spec), Description: g.Description})
	}
	if c.Uses(slipway.Node) {
		e.Installs = append(e.Installs, c.explainNode(files, path.Dir(at), commands)...)
	}
	if c.Uses(slipway.Python) {
		e.Installs = append(e.Installs, c.explainPython(files, path.Dir(at), commands)...)
	}
	c.explainEnv(&e, files, path.Dir(at))
	c.explainKeys(&e)
	return e
}

func (c *Config) explainNode(files fs.FS, dir string, commands Commands) []Install {
	add := func(what, how string) Install { return Install{Language: slipway.Node, What: what, How: how} }
	wanted := c.NodeVersion
	if wanted == "" {
		wanted = "20 or later"
	}
	all := []Install{add("Node "+wanted, "a Node of this machine, else the one of the package registry")}
	where := dir
	if commands != (Commands{}) {
		where = "."
	}
	if commands.Install != "" {
		all = append(all, add("packages", fmt.Sprintf("`%s` in the root of the source (install_command)", commands.Install)))
	} else if m, err := ManagerOf(files, where); err == nil {
		why := "package.json"
		if m.Lock != "" {
			why = m.Lock
		}
		all = append(all, add("packages", fmt.Sprintf("`%s` in %s (because of %s)", m, place(where), why)))
	}
	if commands.Build != "" {
		all = append(all, add("build", fmt.Sprintf("`%s` in %s (build_command)", commands.Build, place(dir))))
	}
	switch {
	case c.NodeLoader != "":
		all = append(all, add("TypeScript", "node_loader "+c.NodeLoader))
	case c.TypeScript():
		all = append(all, add("TypeScript", "loaded by tsx, which the platform brings"))
	}
	return all
}

// place names a directory of the source.
func place(dir string) string {
	if dir == "." {
		return "the root of the source"
	}
	return dir
}

func (c *Config) explainPython(files fs.FS, dir string, commands Commands) []Install {
	add := func(what, how string) Install { return Install{Language: slipway.Python, What: what, How: how} }
	wanted := c.PythonVersion
	if wanted == "" {
		wanted = "3.11 or later"
	}
	installer := "uv, or pip where uv cannot be had"
	if c.PipInstaller == "pip" || c.PipInstaller == "uv" {
		installer = c.PipInstaller
	}
	all := []Install{add("Python "+wanted, "a Python of this machine, else one that uv brings"), add("installer", installer)}
	if c.PipConfigFile != "" {
		all = append(all, add("indexes", "those of "+c.PipConfigFile))
	}
	if root := c.UVRoot(); root != "" {
		target := "the package around this file"
		if c.Source.Package != "" {
			target = "the package " + c.Source.Package
		}
		return append(all, add("uv workspace "+root, "the locked dependencies of "+target+", then it and the members it needs, editable"))
	}
	for _, dep := range c.Dependencies {
		if isLocal(dep) {
			all = append(all, add(dep, howLocal(files, path.Join(dir, slashed(dep)))))
		} else {
			all = append(all, add(dep, "from the package index"))
		}
	}
	if commands != (Commands{}) && !c.Uses(slipway.Node) {
		all = append(all, add("commands", "install_command before, build_command after it"))
	}
	return all
}

// howLocal says how a local dependency is installed.
func howLocal(files fs.FS, dir string) string {
	switch LocalKindOf(files, dir) {
	case Project:
		return "a project built by " + backend(files, dir) + ": installed editable with what it depends on"
	case Flat:
		return "a package: imported as " + path.Base(dir) + requirements(files, dir)
	}
	return "a directory of modules: put on the path" + requirements(files, dir)
}

func requirements(files fs.FS, dir string) string {
	if isFile(files, dir, "requirements.txt") {
		return ", with its requirements.txt"
	}
	return ""
}

func (c *Config) explainEnv(e *Explanation, files fs.FS, dir string) {
	switch {
	case len(c.Env.Values) > 0:
		names := slices.Sorted(maps.Keys(c.Env.Values))
		e.Keys = append(e.Keys, ExplainedKey{"env", strings.Join(names, ", "), "variables of the workers; secrets of the same name win"})
	case c.Env.File != "" && isFile(files, dir, slashed(c.Env.File)):
		e.Keys = append(e.Keys, ExplainedKey{"env", c.Env.File, "its variables are read at build time and kept as secrets"})
	case c.Env.File != "":
		e.Warnings = append(e.Warnings, fmt.Sprintf("env names the file %q, which the source does not have: set its variables as secrets", c.Env.File))
	}
	if c.Env.File == "" && isFile(files, dir, ".env") {
		e.Warnings = append(e.Warnings, `there is a .env file, but env does not name it: write "env": ".env", or list it in .gitignore`)
	}
}

// meanings says what each key means here, in the order they are told.
func meanings() [][2]string {
	return [][2]string{
		{"store", "the store of the agent server: its index for searching by meaning, and how long items live"},
		{"checkpointer", "where checkpoints are kept and how long threads live"},
		{"auth", "authenticates every request to the agent server"},
		{"encryption", "encrypts what the agent server stores"},
		{"http", "the agent server's own routes, CORS, headers and which built-in routes are off"},
		{"webhooks", "which addresses run webhooks may go to, and their headers"},
		{"ui", "components that clients load for their interface"},
		{"ui_config", "settings of these components"},
	}
}

// withoutEffect says why keys of images do nothing here.
func withoutEffect() [][2]string {
	const image = "is for container images; this deployment runs without one"
	return [][2]string{
		{"base_image", image}, {"image_distro", image}, {"dockerfile_lines", image}, {"keep_pkg_tools", image}, {"_INTERNAL_docker_tag", image},
		{"api_version", "chooses an image of another server; slipway's own version is what runs"},
		{"disable_persistence", "is for development servers; here everything is kept"},
	}
}

func (c *Config) explainKeys(e *Explanation) {
	for _, row := range meanings() {
		if c.Has(row[0]) {
			e.Keys = append(e.Keys, ExplainedKey{row[0], brief(c.keys[row[0]]), row[1]})
		}
	}
	for _, row := range withoutEffect() {
		if c.Has(row[0]) {
			e.Ignored = append(e.Ignored, ExplainedKey{row[0], brief(c.keys[row[0]]), row[1]})
		}
	}
}

// brief shows a value in one line: what an object has, not what is in it, which may be secret.
func brief(value any) string {
	switch value := value.(type) {
	case map[string]any:
		return strings.Join(slices.Sorted(maps.Keys(value)), ", ")
	case []any:
		return fmt.Sprintf("%d entries", len(value))
	case json.Number:
		return value.String()
	}
	return cutText(fmt.Sprint(value))
}

// Lines is the explanation as text, the errors last.
func (e Explanation) Lines() []string {
	lines := []string{"graph configuration " + e.File}
	for _, g := range e.Graphs {
		line := fmt.Sprintf("  graph %s: %s (%s)", g.ID, g.Spec, g.Language)
		if g.Description != "" {
			line += ": " + g.Description
		}
		lines = append(lines, line)
	}
	for _, i := range e.Installs {
		lines = append(lines, fmt.Sprintf("  %s: %s: %s", i.Language, i.What, i.How))
	}
	for _, k := range e.Keys {
		lines = append(lines, fmt.Sprintf("  %s (%s): %s", k.Key, k.Value, k.Means))
	}
	for _, k := range e.Ignored {
		lines = append(lines, fmt.Sprintf("  ignored: %s (%s) %s", k.Key, k.Value, k.Means))
	}
	for _, w := range e.Warnings {
		lines = append(lines, "  warning: "+w)
	}
	for _, f := range e.Errors {
		lines = append(lines, "  error: "+f.Message)
	}
	return lines
}
