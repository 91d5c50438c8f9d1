// Package python installs the dependencies of Python graphs with uv.
package python

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/toolchain/command"
)

// Toolchain implements slipway.Toolchain for Python. Root is the platform's data directory.
type Toolchain struct{ Root string }

var _ slipway.Toolchain = Toolchain{}

// build is one project on its way.
type build struct {
	Toolchain
	slipway.Project
	log         func(string)
	dir         string // of the configuration, absolute
	interpreter string
	uv          string
}

// Prepare implements slipway.Toolchain.
func (t Toolchain) Prepare(ctx context.Context, p slipway.Project, log func(string)) (slipway.Prepared, error) {
	b := build{Toolchain: t, Project: p, log: log, dir: filepath.Join(p.Bundle, "app", filepath.FromSlash(p.Dir))}
	var err error
	if b.interpreter, err = interpreter(p.PythonVersion); err != nil {
		return slipway.Prepared{}, err
	}
	if b.uv, err = b.findUV(ctx); err != nil {
		return slipway.Prepared{}, err
	}
	return b.prepare(ctx)
}

func (b build) prepare(ctx context.Context) (slipway.Prepared, error) {
	remote, locals, key, err := b.inputs()
	if err != nil {
		return slipway.Prepared{}, err
	}
	layer, err := command.Layer(filepath.Join(b.Root, "layers"), "python-"+key, func(dir string) error { return b.fill(ctx, dir, remote) })
	if err != nil {
		return slipway.Prepared{}, err
	}
	if err := os.Symlink(layer, filepath.Join(b.Bundle, "python")); err != nil {
		return slipway.Prepared{}, fmt.Errorf("link layer: %w", err)
	}
	out := slipway.Prepared{Key: key, Python: &slipway.PythonBundle{Interpreter: "python/bin/python", Path: []string{path.Join("app", b.Dir)}}}
	for _, local := range locals {
		if local.packaged {
			site := filepath.Join(b.Bundle, "site")
			if err := b.run(ctx, b.dir, b.uv, "pip", "install", "--python", b.interpreter, "--no-deps", "--target", site, filepath.Join(b.dir, local.path)); err != nil {
				return out, err
			}
		}
		out.Python.Path = append(out.Python.Path, path.Join("app", b.Dir, local.path))
		if parent := path.Join("app", b.Dir, path.Dir(local.path)); local.flat {
			out.Python.Path = append(out.Python.Path, parent)
		}
	}
	if _, err := os.Stat(filepath.Join(b.Bundle, "site")); err == nil {
		out.Python.Path = append(out.Python.Path, "site")
	}
	return out, nil
}

// fill makes the virtual environment of a layer.
func (b build) fill(ctx context.Context, dir string, remote []string) error {
	if err := b.run(ctx, b.dir, b.uv, "venv", "--relocatable", "--allow-existing", "--python", b.interpreter, dir); err != nil {
		return err
	}
	if len(remote) == 0 {
		return nil
	}
	return b.run(ctx, b.dir, append([]string{b.uv, "pip", "install", "--python", filepath.Join(dir, "bin", "python")}, remote...)...)
}

func (b build) run(ctx context.Context, dir string, args ...string) error {
	b.log("$ " + strings.Join(args, " "))
	env := []string{"UV_CACHE_DIR=" + filepath.Join(b.Root, "cache", "uv"), "UV_NO_PROGRESS=1", "UV_PYTHON_DOWNLOADS=never"}
	if b.PipConfigFile != "" {
		env = append(env, "PIP_CONFIG_FILE="+filepath.Join(b.dir, b.PipConfigFile))
	}
	return command.Run(ctx, command.Command{Dir: dir, Home: filepath.Join(b.Root, "cache", "home"), Env: env, Args: args}, b.log)
}

type local struct {
	path     string
	packaged bool // has a pyproject.toml or setup.py
	flat     bool // is itself a package
}

// inputs sorts the dependencies and returns what uv installs into the layer, and the layer's key.
func (b build) inputs() (remote []string, locals []local, key string, err error) {
	parts := []string{"python", runtime.GOOS, runtime.GOARCH, b.interpreter}
	for _, dep := range b.Dependencies {
		if !strings.HasPrefix(dep, ".") {
			remote, parts = append(remote, dep), append(parts, dep)
			continue
		}
		at := filepath.Join(b.dir, filepath.FromSlash(dep))
		if info, err := os.Stat(at); err != nil || !info.IsDir() {
			return nil, nil, "", slipway.Errorf(slipway.CodeInvalid, "the local dependency %q is not a directory of the source: correct dependencies in the graph configuration", dep)
		}
		l := local{path: path.Clean(dep), packaged: exists(at, "pyproject.toml") || exists(at, "setup.py"), flat: exists(at, "__init__.py")}
		locals = append(locals, l)
		for _, name := range []string{"requirements.txt", "pyproject.toml", "setup.py", "setup.cfg"} {
			raw, err := os.ReadFile(filepath.Join(at, name))
			if err != nil {
				continue
			}
			parts = append(parts, dep, name, string(raw))
			if name != "setup.cfg" && l.packaged == (name != "requirements.txt") && !(name == "setup.py" && exists(at, "pyproject.toml")) {
				remote = append(remote, "-r", filepath.Join(at, name))
			}
		}
	}
	if raw, err := os.ReadFile(filepath.Join(b.dir, b.PipConfigFile)); err == nil && b.PipConfigFile != "" {
		parts = append(parts, string(raw))
	}
	return remote, locals, command.Key(parts...), nil
}

func exists(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}

// interpreter finds pythonX.Y on this machine.
func interpreter(version string) (string, error) {
	var have []string
	for _, name := range []string{"python" + version, "python3", "python"} {
		at, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		out, err := exec.Command(at, "-c", "import sys; print('%d.%d' % sys.version_info[:2]); print(sys.executable)").Output()
		if err != nil {
			continue
		}
		found := strings.Fields(string(out))
		if found[0] == version {
			return found[1], nil
		}
		have = append(have, found[0])
	}
	return "", slipway.Errorf(slipway.CodeInvalid, "python_version %s is not installed on this machine, which has %s: change python_version or install it", version, strings.Join(have, ", "))
}

// findUV returns uv from PATH, else from the tool cache, where pip puts it.
func (b build) findUV(ctx context.Context) (string, error) {
	if at, err := exec.LookPath("uv"); err == nil {
		return at, nil
	}
	dir, err := command.Layer(filepath.Join(b.Root, "tools"), "uv", func(dir string) error {
		return b.run(ctx, dir, b.interpreter, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", dir, "uv")
	})
	return filepath.Join(dir, "bin", "uv"), err
}
