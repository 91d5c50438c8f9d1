package slipway

import "context"

// SourceFetcher brings the source of a build into a directory. Implementations are safe for concurrent use.
type SourceFetcher interface {
	// Fetch fills the empty directory dir with the source of job and returns the commit, "" where there is none. It ends
	// with ctx, leaving no process behind; log takes one line of progress. An error is a sentence a user can act on.
	Fetch(ctx context.Context, job BuildJob, dir string, log func(line string)) (commit string, err error)
}

// Toolchain installs what the graphs of one language need. Implementations are safe for concurrent use.
type Toolchain interface {
	// Prepare installs the project's dependencies, sharing them with other bundles of the same dependencies. It ends with
	// ctx, leaving no process behind; log takes the installers' lines as they come.
	Prepare(ctx context.Context, p Project, log func(line string)) (Prepared, error)
}

// UIBundler builds what browsers load of a project. Implementations are safe for concurrent use.
type UIBundler interface {
	// BundleUI builds every component of p.UI into the directory "ui" of the bundle and returns them by name. The project's
	// dependencies are installed already. It ends with ctx, leaving no process behind; an error names the component, the
	// place in its source and what is wrong there.
	BundleUI(ctx context.Context, p Project, log func(line string)) (map[string]BundleUI, error)
}

// Project is an unpacked source that is to become a bundle.
type Project struct {
	Bundle string // absolute path of the bundle being made; the source lies in its directory "app"
	Dir    string // directory of the graph configuration below app, with slashes; "." = app itself
	// Dependencies of the configuration: "." and "./…" are local directories, the others pip requirements.
	Dependencies  []string
	PipConfigFile string // relative to Dir; "" = none
	PipInstaller  string // "uv", "pip", or "auto" (also ""): uv where it can be had
	// Workspace is set when the Python dependencies are those of a uv workspace; Dependencies is empty then.
	Workspace     *Workspace
	PythonVersion string   // major.minor; "" = any that is supported, 3.11 first
	NodeVersion   string   // major; "" = any that is supported
	TypeScript    bool     // a file of the configuration is written in TypeScript
	PythonFiles   []string // files of the configuration written in Python, relative to Dir
	// UI are the components that browsers load: files relative to Dir, by name. UIShared are packages that their pages bring.
	UI       map[string]string
	UIShared []string
	// InstallCommand runs in app in place of the package manager's installation, BuildCommand in Dir after it. Builders give
	// them to one toolchain only.
	InstallCommand string
	BuildCommand   string
}

// Workspace names a package of a uv workspace (control-plane reference 7).
type Workspace struct {
	Root    string // directory of the workspace, relative to Project.Dir
	Package string // "" = the one around Project.Dir
}

// Prepared says how to start the workers of a prepared project.
type Prepared struct {
	Python *PythonBundle
	Node   *NodeBundle
	// Key names everything that was installed from outside; it is part of the artifact's digest.
	Key string
	// Shared names the directories that bundles share and this one needs, relative to the data directory.
	Shared []string
}
