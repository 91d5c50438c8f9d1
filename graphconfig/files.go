package graphconfig

import (
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway"
)

// FindingsIn checks what the configuration says against the application's files: that everything it names exists, that
// Python files lie in a local dependency, that no generated package has a reserved name, and what package.json demands. The
// configuration lies at the path at below files. Without strict, files that hold code may be missing: an install or build
// command makes them.
func (c *Config) FindingsIn(files fs.FS, at string, strict bool) Findings {
	var found Findings
	dir := path.Dir(at)
	if strict {
		c.checkParts(&found, files, dir)
	}
	for i, dep := range c.Dependencies {
		if isLocal(dep) {
			checkLocal(&found, files, dir, fmt.Sprintf("dependencies[%d]", i), slashed(dep))
		}
	}
	if root := c.UVRoot(); root != "" {
		checkUVRoot(&found, files, path.Join(dir, root), c.Source.Root)
	}
	if c.PipConfigFile != "" {
		checkFile(&found, files, dir, "pip_config_file", slashed(c.PipConfigFile))
	}
	if c.Uses(slipway.Node) {
		checkEngines(&found, files, dir)
	}
	return found
}

func (c *Config) checkParts(found *Findings, files fs.FS, dir string) {
	local := c.Local()
	for _, p := range c.Parts() {
		if p.File == "" || !checkFile(found, files, dir, p.Key, p.File) {
			continue
		}
		if c.Source == nil && !p.UI && !JavaScript(p.File) && !covered(local, p.File) {
			found.add(p.Key, "%s names the file %q, which lies in no local dependency: add %q to dependencies", p.Key, p.File, dotted(path.Dir(p.File)))
		}
	}
}

// checkFile checks that a file is there.
func checkFile(found *Findings, files fs.FS, dir, key, file string) bool {
	where := path.Join(dir, file)
	if !filepath.IsLocal(filepath.FromSlash(where)) {
		found.add(key, "%s names the file %q, which leads out of the source: correct the path", key, file)
		return false
	}
	if info, err := fs.Stat(files, where); err != nil || !info.Mode().IsRegular() {
		found.add(key, "%s names the file %q, which the source does not have: correct the path%s", key, file, meant(files, where))
		return false
	}
	return true
}

func isFile(files fs.FS, parts ...string) bool {
	info, err := fs.Stat(files, path.Join(parts...))
	return err == nil && info.Mode().IsRegular()
}

// meant suggests a file of the source with a similar name.
func meant(files fs.FS, wanted string) string {
	var names []string
	_ = fs.WalkDir(files, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() && slices.Contains(alwaysOut(), e.Name()) {
			return fs.SkipDir
		}
		if !e.IsDir() && len(names) < 10_000 {
			names = append(names, name)
		}
		return nil
	})
	if near := Nearest(wanted, names); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// covered says whether a file lies in one of the local dependencies.
func covered(dirs []string, file string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool {
		rel, err := filepath.Rel(filepath.FromSlash(dir), filepath.FromSlash(file))
		return err == nil && filepath.IsLocal(rel)
	})
}

func checkUVRoot(found *Findings, files fs.FS, root, written string) {
	if !filepath.IsLocal(filepath.FromSlash(root)) {
		found.add("source.root", "source.root is %q, which leads out of the source: correct it", written)
		return
	}
	for _, name := range []string{"pyproject.toml", "uv.lock"} {
		if !isFile(files, root, name) {
			found.add("source.root", "source.root is %q, which has no %s: a uv workspace needs it (run `uv lock`)", written, name)
		}
	}
}

// LocalKind is how a local dependency is installed.
type LocalKind string

// The kinds of local dependencies (control-plane reference 7).
const (
	Project LocalKind = "project" // has pyproject.toml or setup.py: installed editable
	Flat    LocalKind = "flat"    // a package itself (it has __init__.py): its parent directory is on the path
	Plain   LocalKind = "plain"   // modules and packages: the directory is on the path
)

// LocalKindOf returns how the directory is installed.
func LocalKindOf(files fs.FS, dir string) LocalKind {
	switch {
	case isFile(files, dir, "pyproject.toml") || isFile(files, dir, "setup.py"):
		return Project
	case isFile(files, dir, "__init__.py"):
		return Flat
	}
	return Plain
}

// Reserved are the names that generated packages may not have, because servers and graphs need the packages themselves
// (control-plane reference 7).
func Reserved() []string {
	return []string{
		"src", "langgraph-api", "langgraph_api", "langgraph", "langchain-core", "langchain_core", "pydantic", "orjson", "fastapi",
		"uvicorn", "psycopg", "httpx", "langsmith",
	}
}

func checkLocal(found *Findings, files fs.FS, dir, key, dep string) {
	where := path.Join(dir, dep)
	if !filepath.IsLocal(filepath.FromSlash(where)) {
		found.add(key, "dependencies names the directory %q, which leads out of the source: correct the path", dep)
		return
	}
	if info, err := fs.Stat(files, where); err != nil || !info.IsDir() {
		found.add(key, "dependencies names the directory %q, which the source does not have: correct the path", dep)
		return
	}
	for _, name := range packagesOf(files, where) {
		if slices.Contains(Reserved(), name) {
			found.add(key, "the local dependency %q has the package %q, which is a reserved name: rename the directory, or give the dependency a pyproject.toml", dep, name)
		}
	}
	if LocalKindOf(files, where) == Flat && strings.Contains(path.Base(where), "-") {
		found.add(key, "the local dependency %q is a package (it has __init__.py) with a hyphen in its name, which Python cannot import: rename the directory", dep)
	}
}

// packagesOf lists the packages that are generated for a directory.
func packagesOf(files fs.FS, dir string) []string {
	switch LocalKindOf(files, dir) {
	case Project:
		return nil
	case Flat:
		return []string{path.Base(dir)}
	}
	entries, _ := fs.ReadDir(files, dir)
	var names []string
	for _, e := range entries {
		if modules, _ := fs.Glob(files, path.Join(dir, e.Name(), "*.py")); e.IsDir() && len(modules) > 0 {
			names = append(names, e.Name())
		}
	}
	return names
}

var backendForm = regexp.MustCompile(`(?m)^\s*build-backend\s*=\s*["']([^"']+)["']`)

// backend names what builds a local project.
func backend(files fs.FS, dir string) string {
	raw, _ := fs.ReadFile(files, path.Join(dir, "pyproject.toml"))
	if m := backendForm.FindSubmatch(raw); m != nil {
		module, _, _ := strings.Cut(string(m[1]), ":")
		first, _, _ := strings.Cut(module, ".")
		return strings.NewReplacer("hatchling", "hatch", "poetry", "poetry-core", "flit_core", "flit", "pdm", "pdm-backend").Replace(first)
	}
	return "setuptools"
}
