package python

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/toolchain/command"
)

// layerFormat changes when layers of older releases cannot be used any more.
const layerFormat = "2"

// inputs is what determines a layer.
type inputs struct {
	remote       []string // pip requirements of the configuration
	requirements []string // requirements files, relative to app
	packages     []string // local packages to install editable, relative to app
	search       []string // local directories on the path, relative to app, in order
	key          string
}

// inputs sorts the dependencies.
func (b build) inputs() (inputs, error) {
	var in inputs
	parts := []string{layerFormat, runtime.GOOS, runtime.GOARCH, b.base.path, b.base.version, b.PipInstaller}
	if b.Workspace != nil {
		return b.workspaceInputs(parts)
	}
	for _, dep := range b.Dependencies {
		if !strings.HasPrefix(dep, ".") {
			in.remote, parts = append(in.remote, dep), append(parts, dep)
			continue
		}
		more, err := b.local(&in, dep)
		if err != nil {
			return in, err
		}
		parts = append(parts, more...)
	}
	if b.PipConfigFile != "" {
		raw, err := os.ReadFile(filepath.Join(b.dir, filepath.FromSlash(b.PipConfigFile)))
		if err != nil {
			return in, slipway.Errorf(slipway.CodeInvalid, "pip_config_file names %q, which the source does not have: add it or correct the path", b.PipConfigFile)
		}
		parts = append(parts, string(raw))
	}
	in.key = command.Key(parts...)
	return in, nil
}

// local adds a local directory and returns what of it determines the layer.
func (b build) local(in *inputs, dep string) ([]string, error) {
	rel := path.Join(b.Dir, dep)
	at := filepath.Join(b.app, filepath.FromSlash(rel))
	if info, err := os.Stat(at); err != nil || !info.IsDir() || !filepath.IsLocal(filepath.FromSlash(rel)) {
		return nil, slipway.Errorf(slipway.CodeInvalid, "dependencies names the directory %q, which the source does not have: correct the path", dep)
	}
	if exists(at, "pyproject.toml") || exists(at, "setup.py") {
		in.packages = append(in.packages, rel)
		in.search = append(in.search, sourceRoot(at, rel))
		shape, err := shape(at)
		return append([]string{"package", rel}, shape...), wrap(err)
	}
	if exists(at, "__init__.py") {
		if err := reserved(path.Base(rel)); err != nil {
			return nil, err
		}
		in.search = append(in.search, path.Join(rel, ".."))
	}
	in.search = append(in.search, rel)
	if !exists(at, "requirements.txt") {
		return nil, nil
	}
	in.requirements = append(in.requirements, path.Join(rel, "requirements.txt"))
	return b.requirements(path.Join(rel, "requirements.txt"), nil)
}

// sourceRoot is the directory of a local package that its modules are imported from.
func sourceRoot(at, rel string) string {
	if info, err := os.Stat(filepath.Join(at, "src")); err == nil && info.IsDir() && !exists(at, "src", "__init__.py") {
		return path.Join(rel, "src")
	}
	return rel
}

// reserved refuses names of packages that a server needs itself (control-plane reference 7).
func reserved(name string) error {
	if !slices.Contains([]string{
		"src", "langgraph-api", "langgraph_api", "langgraph", "langchain-core", "langchain_core", "pydantic", "orjson", "fastapi",
		"uvicorn", "psycopg", "httpx", "langsmith",
	}, name) {
		return nil
	}
	return slipway.Errorf(slipway.CodeInvalid, "the local dependency %q is a package with a reserved name: rename the directory, or remove its __init__.py", name)
}

// requirements returns the contents of a requirements file and of those it includes. What it names must not be local: the
// layer is shared by bundles whose code differs.
func (b build) requirements(rel string, seen []string) ([]string, error) {
	if slices.Contains(seen, rel) || len(seen) > 50 {
		return nil, nil
	}
	seen = append(seen, rel)
	raw, err := os.ReadFile(filepath.Join(b.app, filepath.FromSlash(rel)))
	if err != nil || !filepath.IsLocal(filepath.FromSlash(rel)) {
		return nil, slipway.Errorf(slipway.CodeInvalid, "%s includes %q, which the source does not have: add it or remove the line", seen[max(0, len(seen)-2)], rel)
	}
	parts := []string{rel, string(raw)}
	for line := range strings.Lines(string(raw)) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), " #")
		if file, ok := included(line); ok {
			more, err := b.requirements(path.Join(path.Dir(rel), file), seen)
			if err != nil {
				return nil, err
			}
			parts = append(parts, more...)
		} else if localLine(line) {
			return nil, slipway.Errorf(slipway.CodeInvalid, "%s has the local package %q: name its directory in dependencies of the graph configuration instead", rel, line)
		}
	}
	return parts, nil
}

// included returns the file that a line of a requirements file includes.
func included(line string) (string, bool) {
	for _, option := range []string{"-r", "--requirement", "-c", "--constraint"} {
		rest, ok := strings.CutPrefix(line, option)
		if ok && rest != "" && (option[1] != '-' || strings.ContainsAny(rest[:1], " =")) {
			file := strings.TrimSpace(strings.TrimLeft(rest, " ="))
			return file, file != "" && !strings.Contains(file, "://")
		}
	}
	return "", false
}

// localLine says whether a line of a requirements file names a directory of the source.
func localLine(line string) bool {
	for _, option := range []string{"-e", "--editable"} {
		if rest, ok := strings.CutPrefix(line, option); ok {
			line = strings.TrimLeft(rest, " =")
		}
	}
	return strings.HasPrefix(line, "./") || strings.HasPrefix(line, "../") || line == "." || strings.HasPrefix(line, "/") ||
		strings.HasPrefix(line, "file:") || strings.Contains(line, "@ file:")
}

// shape returns what of a local package determines its installation: its build files, the files they usually read, and
// which directories hold modules. Other code does not matter to an editable installation.
func shape(dir string) ([]string, error) {
	var parts []string
	err := filepath.WalkDir(dir, func(at string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, at)
		if e.IsDir() {
			if at != dir && junk(e.Name()) {
				return filepath.SkipDir
			}
			if found, _ := filepath.Glob(filepath.Join(at, "*.py")); len(found) > 0 {
				parts = append(parts, rel+"/")
			}
			return nil
		}
		top := filepath.Dir(rel) == "." || filepath.Dir(rel) == "src"
		if top && filepath.Ext(rel) == ".py" {
			parts = append(parts, rel)
		}
		if !e.Type().IsRegular() || !determines(e.Name(), top) {
			return nil
		}
		raw, err := os.ReadFile(at)
		parts = append(parts, rel, string(raw))
		return err
	})
	return parts, err
}

// determines says whether a build reads a file of that name.
func determines(name string, top bool) bool {
	switch strings.ToLower(name) {
	case "__about__.py", "_version.py", "version.py", "__version__.py", "version", "version.txt":
		return true
	case "pyproject.toml", "setup.py", "setup.cfg", "manifest.in", "poetry.lock", "pdm.lock", "__init__.py":
		return top || name != "__init__.py"
	}
	return top && (strings.HasPrefix(name, "requirements") || strings.HasPrefix(strings.ToUpper(name), "README") || strings.HasPrefix(strings.ToUpper(name), "LICEN"))
}

// junk names directories that are no source.
func junk(name string) bool {
	return slices.Contains([]string{"node_modules", ".git", ".venv", "venv", "__pycache__", ".tox", ".mypy_cache", ".pytest_cache", "build", "dist"}, name) ||
		strings.HasSuffix(name, ".egg-info")
}
