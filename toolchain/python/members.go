package python

import (
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/slipway-dev/slipway"
)

// member is one package of a uv workspace.
type member struct {
	name    string   // normalised
	dir     string   // relative to the workspace's root, with slashes
	needs   []string // members that it depends on, normalised
	virtual bool     // [tool.uv] package = false: no package of its own
}

// projectFile is what of a pyproject.toml concerns the workspace.
type projectFile struct {
	Project struct {
		Name         any `toml:"name"`
		Dependencies any `toml:"dependencies"`
	} `toml:"project"`
	Tool struct {
		UV struct {
			Package   *bool          `toml:"package"`
			Sources   map[string]any `toml:"sources"`
			Workspace *struct {
				Members []string `toml:"members"`
				Exclude []string `toml:"exclude"`
			} `toml:"workspace"`
		} `toml:"uv"`
	} `toml:"tool"`
}

// maxMembers bounds how many packages a workspace may have.
const maxMembers = 1000

// workspace reads the members of the uv workspace in a directory and holds them to the rules of control-plane reference 7.
type workspace struct {
	root    string // absolute
	members map[string]member
	files   map[string]projectFile // by the member's name
}

func readWorkspace(root string) (workspace, error) {
	w := workspace{root: root, members: map[string]member{}, files: map[string]projectFile{}}
	top, err := w.read(".")
	if err != nil {
		return w, err
	}
	dirs, err := w.directories(top)
	if err != nil {
		return w, err
	}
	for _, dir := range dirs {
		if err := w.add(dir); err != nil {
			return w, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.members)) {
		if err := w.link(name); err != nil {
			return w, err
		}
	}
	return w, nil
}

func (w workspace) read(dir string) (projectFile, error) {
	var p projectFile
	raw, err := os.ReadFile(filepath.Join(w.root, filepath.FromSlash(dir), "pyproject.toml"))
	if err != nil {
		return p, slipway.Errorf(slipway.CodeInvalid, "the uv workspace has the member %q, which has no pyproject.toml: add one, or correct tool.uv.workspace.members", dir)
	}
	if err := toml.Unmarshal(raw, &p); err != nil {
		return p, slipway.Errorf(slipway.CodeInvalid, "%s is not valid: %w", path.Join(dir, "pyproject.toml"), err)
	}
	return p, nil
}

// directories are those that the globs of members name and those of exclude do not, after the root if it is a project.
func (w workspace) directories(top projectFile) ([]string, error) {
	var dirs []string
	if top.Project.Name != nil {
		dirs = append(dirs, ".")
	}
	if top.Tool.UV.Workspace == nil {
		return dirs, nil
	}
	excluded, err := w.glob(top.Tool.UV.Workspace.Exclude)
	if err != nil {
		return nil, err
	}
	found, err := w.glob(top.Tool.UV.Workspace.Members)
	for _, dir := range found {
		if !slices.Contains(excluded, dir) && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	if err == nil && len(dirs) > maxMembers {
		err = slipway.Errorf(slipway.CodeInvalid, "the uv workspace has %d members: %d is the limit", len(dirs), maxMembers)
	}
	return dirs, err
}

func (w workspace) glob(patterns []string) ([]string, error) {
	var dirs []string
	files := os.DirFS(w.root)
	for _, p := range patterns {
		clean := path.Clean(p)
		if !filepath.IsLocal(filepath.FromSlash(clean)) {
			return nil, slipway.Errorf(slipway.CodeInvalid, "the uv workspace has the members %q, which lie outside of its root: correct tool.uv.workspace", p)
		}
		found, err := fs.Glob(files, clean)
		if err != nil {
			return nil, slipway.Errorf(slipway.CodeInvalid, "the uv workspace has the members %q, which is no pattern: correct tool.uv.workspace", p)
		}
		for _, dir := range found {
			if info, err := fs.Stat(files, dir); err == nil && info.IsDir() && !strings.HasPrefix(path.Base(dir), ".") {
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs, nil
}

func (w workspace) add(dir string) error {
	p, err := w.read(dir)
	if err != nil {
		return err
	}
	name, _ := p.Project.Name.(string)
	if name == "" {
		return slipway.Errorf(slipway.CodeInvalid, "%s has no project.name: give the package of the uv workspace one", path.Join(dir, "pyproject.toml"))
	}
	key := normalised(name)
	if other, twice := w.members[key]; twice {
		return slipway.Errorf(slipway.CodeInvalid, "the uv workspace has the package %q twice, in %s and in %s: rename one", name, other.dir, dir)
	}
	w.members[key] = member{name: key, dir: dir, virtual: p.Tool.UV.Package != nil && !*p.Tool.UV.Package}
	w.files[key] = p
	return nil
}

var (
	separators  = regexp.MustCompile(`[-_.]+`)
	requirement = regexp.MustCompile(`^\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)`)
)

// normalised is a distribution's name in the form in which names are compared.
func normalised(name string) string { return strings.ToLower(separators.ReplaceAllString(name, "-")) }

// link finds the members that a member depends on.
func (w workspace) link(name string) error {
	m, p := w.members[name], w.files[name]
	at := path.Join(m.dir, "pyproject.toml")
	list, ok := p.Project.Dependencies.([]any)
	if !ok && p.Project.Dependencies != nil {
		return slipway.Errorf(slipway.CodeInvalid, "%s has project.dependencies that are no list of strings: correct it", at)
	}
	sources := map[string]any{}
	for dep, source := range p.Tool.UV.Sources {
		sources[normalised(dep)] = source
	}
	for _, one := range list {
		text, _ := one.(string)
		found := requirement.FindStringSubmatch(text)
		if found == nil {
			return slipway.Errorf(slipway.CodeInvalid, "%s has the dependency %v in project.dependencies, which is no requirement with a name: correct it", at, one)
		}
		key := normalised(found[1])
		target, err := w.target(m, at, key, sources[key])
		if err != nil {
			return err
		}
		if target != "" {
			m.needs = append(m.needs, target)
		}
	}
	w.members[name] = m
	return nil
}

// target is the member that a dependency means by its entry in tool.uv.sources, "" for packages from elsewhere.
func (w workspace) target(m member, at, dep string, source any) (string, error) {
	entry, _ := source.(map[string]any)
	if inside, _ := entry["workspace"].(bool); inside {
		if _, ok := w.members[dep]; !ok {
			return "", slipway.Errorf(slipway.CodeInvalid, "%s takes %q from the workspace, which has no such package: it has %s", at, dep, w.names())
		}
		return dep, nil
	}
	where, ok := entry["path"].(string)
	if !ok {
		return "", nil
	}
	if filepath.IsAbs(where) {
		return "", slipway.Errorf(slipway.CodeInvalid, "%s has the absolute path %q for %q in tool.uv.sources: write it relative", at, where, dep)
	}
	dir := path.Join(m.dir, filepath.ToSlash(where))
	for _, other := range w.members {
		if other.dir == dir {
			return other.name, nil
		}
	}
	return "", slipway.Errorf(slipway.CodeInvalid, "%s takes %q from %q, which is no member of the uv workspace: add it to tool.uv.workspace.members", at, dep, where)
}

func (w workspace) names() string {
	return strings.Join(slices.Sorted(maps.Keys(w.members)), ", ")
}

// choose returns the package to deploy: the wanted one, else the one around dir (relative to the root), else the only one.
func (w workspace) choose(wanted, dir string) (member, error) {
	chosen, ok := w.members[normalised(wanted)]
	if wanted != "" && !ok {
		return chosen, slipway.Errorf(slipway.CodeInvalid, "source.package is %q, which the uv workspace does not have: it has %s", wanted, w.names())
	}
	if wanted == "" {
		chosen, ok = w.around(dir)
	}
	if !ok && len(w.members) == 1 {
		for _, chosen = range w.members {
			ok = true
		}
	}
	if !ok {
		return chosen, slipway.Errorf(slipway.CodeInvalid, "the graph configuration lies in no package of the uv workspace: name one with source.package: %s", w.names())
	}
	if chosen.virtual {
		return chosen, slipway.Errorf(slipway.CodeInvalid, "the package %q of the uv workspace has tool.uv.package = false and cannot be deployed: remove that, or choose another with source.package", chosen.name)
	}
	return chosen, nil
}

// around is the innermost member whose directory holds dir.
func (w workspace) around(dir string) (best member, ok bool) {
	for _, m := range w.members {
		rel, err := filepath.Rel(filepath.FromSlash(m.dir), filepath.FromSlash(dir))
		if err == nil && filepath.IsLocal(rel) && (!ok || len(m.dir) > len(best.dir) || best.dir == ".") {
			best, ok = m, true
		}
	}
	return best, ok
}

// closure returns a package and every member that it needs, by name.
func (w workspace) closure(from member) ([]member, error) {
	seen, queue := map[string]bool{from.name: true}, []string{from.name}
	for n := 0; n < len(queue); n++ {
		for _, need := range w.members[queue[n]].needs {
			if w.members[need].virtual {
				return nil, slipway.Errorf(slipway.CodeInvalid, "the package %q of the uv workspace depends on %q, which has tool.uv.package = false: remove that, or the dependency", queue[n], need)
			}
			if !seen[need] {
				seen[need], queue = true, append(queue, need)
			}
		}
	}
	slices.Sort(queue)
	all := make([]member, 0, len(queue))
	for _, name := range queue {
		all = append(all, w.members[name])
	}
	return all, nil
}
