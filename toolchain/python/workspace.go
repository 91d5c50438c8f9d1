package python

import (
	"bufio"
	"context"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/toolchain/command"
)

// workspaceRoot is the directory of the uv workspace relative to app.
func (b build) workspaceRoot() string { return path.Join(b.Dir, b.Workspace.Root) }

func (b build) checkWorkspace() error {
	root := b.workspaceRoot()
	if !filepath.IsLocal(filepath.FromSlash(root)) {
		return slipway.Errorf(slipway.CodeInvalid, "source.root is %q, which leads out of the source: correct it", b.Workspace.Root)
	}
	for _, file := range []string{"pyproject.toml", "uv.lock"} {
		if !exists(b.app, filepath.FromSlash(root), file) {
			return slipway.Errorf(slipway.CodeInvalid, "source.root is %q, which has no %s: a uv workspace needs it (run `uv lock`)", b.Workspace.Root, file)
		}
	}
	return nil
}

// workspaceInputs takes the whole workspace as what determines the layer: its lock file and every member's shape.
func (b build) workspaceInputs(parts []string) (inputs, error) {
	root := b.workspaceRoot()
	at := filepath.Join(b.app, filepath.FromSlash(root))
	lock, err := os.ReadFile(filepath.Join(at, "uv.lock"))
	if err != nil {
		return inputs{}, wrap(err)
	}
	members, err := shape(at)
	if err != nil {
		return inputs{}, wrap(err)
	}
	parts = append(append(parts, "workspace", root, b.Workspace.Package, b.Dir, string(lock)), members...)
	parts = append(append(parts, "files"), b.PythonFiles...) // what is checked when the layer is made
	return inputs{key: command.Key(parts...)}, nil
}

// exportWorkspace writes the locked requirements of the target package, its members editable, and returns the arguments
// that install them.
func (b build) exportWorkspace(ctx context.Context, i installer, source string) ([]string, error) {
	root := filepath.Join(source, filepath.FromSlash(b.workspaceRoot()))
	from, args := root, []string{i.uv, "export", "--frozen", "--no-dev", "--quiet", "--python", b.base.path, "--output-file", filepath.Join(source, "slipway-requirements.txt")}
	if b.Workspace.Package != "" {
		args = append(args, "--package", b.Workspace.Package)
	} else {
		from = projectAround(filepath.Join(source, filepath.FromSlash(b.Dir)), root)
		if from == "" {
			return nil, slipway.Errorf(slipway.CodeInvalid, "the graph configuration lies in no package of the uv workspace: name the package with source.package")
		}
	}
	if err := b.run(ctx, from, args...); err != nil {
		return nil, err
	}
	return b.absolute(source, root)
}

var editable = regexp.MustCompile(`^-e (\S+)`)

// absolute makes the members' directories, which uv writes relative to the workspace, relative to the source, and checks
// that they and the graphs' files are where they may be.
func (b build) absolute(source, root string) ([]string, error) {
	file := filepath.Join(source, "slipway-requirements.txt")
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, wrap(err)
	}
	var out strings.Builder
	var members []string
	for lines := bufio.NewScanner(strings.NewReader(string(raw))); lines.Scan(); {
		line := lines.Text()
		if found := editable.FindStringSubmatch(line); found != nil {
			rel, err := filepath.Rel(source, filepath.Join(root, found[1]))
			if err != nil || !filepath.IsLocal(rel) {
				return nil, slipway.Errorf(slipway.CodeInvalid, "the uv workspace has the member %q, which lies outside of the source: move it inside", found[1])
			}
			members = append(members, rel)
			line = "-e ./" + rel
		}
		out.WriteString(line + "\n")
	}
	for _, graph := range b.PythonFiles {
		if !within(members, filepath.Join(filepath.FromSlash(b.Dir), filepath.FromSlash(graph))) {
			return nil, slipway.Errorf(slipway.CodeInvalid, "the file %q lies in no package that %s of the uv workspace needs: move it, or correct source.package", graph, b.target())
		}
	}
	return []string{"--no-deps", "-r", "slipway-requirements.txt"}, wrap(os.WriteFile(file, []byte(out.String()), 0o644))
}

func (b build) target() string {
	if b.Workspace.Package == "" {
		return "this package"
	}
	return b.Workspace.Package
}

func within(dirs []string, file string) bool {
	for _, dir := range dirs {
		if rel, err := filepath.Rel(dir, file); err == nil && filepath.IsLocal(rel) {
			return true
		}
	}
	return false
}

// projectAround is the nearest directory from dir up to root that holds a project.
func projectAround(dir, root string) string {
	for {
		raw, err := os.ReadFile(filepath.Join(dir, "pyproject.toml"))
		if err == nil && strings.Contains(string(raw), "[project]") {
			return dir
		}
		if dir == root || len(dir) <= len(root) {
			return ""
		}
		dir = filepath.Dir(dir)
	}
}
