package python

import (
	"context"
	"os"
	"path"
	"path/filepath"

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
	_, _, err := b.members(filepath.Join(b.app, filepath.FromSlash(root)))
	return err
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

// exportWorkspace writes the locked requirements of the target package without those of the workspace, then it and the
// members it needs as editable ones, and returns the arguments that install them.
func (b build) exportWorkspace(ctx context.Context, i installer, source string) ([]string, error) {
	root := filepath.Join(source, filepath.FromSlash(b.workspaceRoot()))
	target, members, err := b.members(root)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(source, "slipway-requirements.txt")
	err = b.run(ctx, root, i.uv, "export", "--frozen", "--no-dev", "--no-emit-workspace", "--quiet", "--python", b.base.path, "--package", target.name, "--output-file", file)
	if err != nil {
		return nil, err
	}
	args := []string{"--no-deps", "-r", "slipway-requirements.txt"}
	for _, m := range members {
		args = append(args, "-e", "./"+path.Join(b.workspaceRoot(), m.dir))
	}
	return args, nil
}

// members chooses the package to deploy and those it needs, and checks that the graphs lie in one of them.
func (b build) members(root string) (target member, all []member, err error) {
	w, err := readWorkspace(root)
	if err != nil {
		return target, nil, err
	}
	if target, err = w.choose(b.Workspace.Package, filepath.ToSlash(relative(b.workspaceRoot(), b.Dir))); err != nil {
		return target, nil, err
	}
	if all, err = w.closure(target); err != nil {
		return target, nil, err
	}
	var dirs []string
	for _, m := range all {
		dirs = append(dirs, filepath.FromSlash(path.Join(b.workspaceRoot(), m.dir)))
	}
	for _, graph := range b.PythonFiles {
		if !within(dirs, filepath.Join(filepath.FromSlash(b.Dir), filepath.FromSlash(graph))) {
			return target, nil, slipway.Errorf(slipway.CodeInvalid, "the file %q lies in no package that %s of the uv workspace needs: move it, or correct source.package", graph, target.name)
		}
	}
	return target, all, nil
}

// relative leads from one directory of the source to another.
func relative(from, to string) string {
	rel, err := filepath.Rel(filepath.FromSlash(from), filepath.FromSlash(to))
	if err != nil {
		return to
	}
	return rel
}

func within(dirs []string, file string) bool {
	for _, dir := range dirs {
		if rel, err := filepath.Rel(dir, file); err == nil && filepath.IsLocal(rel) {
			return true
		}
	}
	return false
}
