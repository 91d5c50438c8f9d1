package slipway

import (
	"encoding/json"
	"strings"
)

// Language is the language a graph is written in, and so the kind of worker that runs it.
type Language string

// The languages.
const (
	Python Language = "python"
	Node   Language = "node"
)

// BundleFile is the name of the file that describes a bundle, at its root.
const BundleFile = "bundle.json"

// Bundle describes an unpacked artifact: a directory that an agent server can run without looking anything up. Paths are
// relative to that directory, with slashes; what bundles share (layers, tools) lies at fixed places beside it, so that a
// data directory may be moved and a bundle be run on another machine. Interpreters are absolute paths.
type Bundle struct {
	Version int `json:"version"` // 1
	// Graphs of the configuration by graph id.
	Graphs map[string]BundleGraph `json:"graphs"`
	// Dir is the directory of the graph configuration: the workers' working directory.
	Dir string `json:"dir"`
	// Config is the whole graph configuration as the user wrote it, but for the names of code in it (graphs, auth.path,
	// encryption.path, checkpointer.path, store.path, store.index.embed, http.app, ui): files among them are written like
	// those of Graphs.
	Config json.RawMessage `json:"config"`
	// Env is the `env` map of the configuration; secrets are laid over it.
	Env map[string]string `json:"env"`
	// Shared names the directories beside the bundle's that it needs, relative to the data directory ("layers/node-…",
	// "tools/tsx-…"), in order; nil = not known (a bundle of an earlier release), so none of them may go.
	Shared []string `json:"shared"`
	// UI are the components that browsers load, by their names in the configuration's `ui`: built, so that they are served
	// without a worker.
	UI map[string]BundleUI `json:"ui,omitempty"`
	// Python and Node say how to start the workers; nil when no graph needs them.
	Python *PythonBundle `json:"python,omitempty"`
	Node   *NodeBundle   `json:"node,omitempty"`
}

// BundleGraph is one graph of a bundle.
type BundleGraph struct {
	// Spec is "<path or module>:<attribute>"; a path is relative to Bundle.Dir and starts with "./" or "../".
	Spec        string   `json:"spec"`
	Language    Language `json:"language"`
	Description string   `json:"description,omitempty"`
}

// BundleUI is one entry of the configuration's `ui` as browsers load it (agent-server reference 9): scripts and style sheets.
type BundleUI struct {
	Dir   string         `json:"dir"`   // of the files, relative to the bundle, with slashes
	Files []BundleUIFile `json:"files"` // by name; at least one script
}

// BundleUIFile is a file that browsers load.
type BundleUIFile struct {
	Name   string `json:"name"`   // without a slash, such as "entrypoint.js"
	SHA256 string `json:"sha256"` // of its contents, in hexadecimal
}

// PythonBundle says how to start a Python worker.
type PythonBundle struct {
	// Interpreter belongs to the bundle's virtual environment, which has the local packages and the shared layer of
	// dependencies on its path.
	Interpreter string   `json:"interpreter"`
	Path        []string `json:"path"` // directories put before everything else on sys.path, in order; usually none
}

// NodeBundle says how to start a Node worker.
type NodeBundle struct {
	// Interpreter is an absolute path or a name looked up in PATH.
	Interpreter string `json:"interpreter"`
	// Loader is a module for node's --import that makes TypeScript loadable: a file relative to the bundle (the pinned tsx
	// among the platform's tools beside it), an absolute path, or a package name of the application; "" when no graph needs one.
	Loader string `json:"loader,omitempty"`
}

// BundlePath returns the directory, below root, of the bundle with the given digest ("sha256:<hex>").
func BundlePath(root, digest string) string {
	_, hex, ok := strings.Cut(digest, ":")
	if !ok {
		hex = digest
	}
	return root + "/" + hex
}
