// Package python installs the dependencies of Python graphs with uv, or with pip where uv cannot be had.
//
// Everything that comes from outside lies in a layer shared by all bundles with the same dependencies. A bundle has a small
// virtual environment of its own: the layer and the local packages are on its path, so that changed code needs no
// installation. Local packages are installed editable into the layer once; what that leaves (metadata, entry points, path
// files) is copied into each bundle with the paths of that bundle.
package python

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/toolchain/command"
)

// Config says where a Toolchain works.
type Config struct {
	Root  string // the platform's data directory
	Cache string // of downloads and the build's home directory; "" = Root/cache
	Tools string // what is installed to install with; "" = Root/tools
	Keep  string // program of the keepers (package keeper) that commands run below; "" = none
}

// Toolchain implements slipway.Toolchain for Python.
type Toolchain struct {
	cfg   Config
	mu    sync.Mutex
	known map[string]interpreter // by python_version
}

var _ slipway.Toolchain = (*Toolchain)(nil)

// New makes a Toolchain.
func New(cfg Config) *Toolchain {
	if cfg.Cache == "" {
		cfg.Cache = filepath.Join(cfg.Root, "cache")
	}
	if cfg.Tools == "" {
		cfg.Tools = filepath.Join(cfg.Root, "tools")
	}
	return &Toolchain{cfg: cfg, known: map[string]interpreter{}}
}

// Clean kills what an interrupted build left running. It is called before the first build.
func (t *Toolchain) Clean() { command.Reap(t.cfg.Root) }

// Prepare implements slipway.Toolchain.
func (t *Toolchain) Prepare(ctx context.Context, p slipway.Project, log func(string)) (slipway.Prepared, error) {
	base, err := t.interpreter(ctx, p, log)
	if err != nil {
		return slipway.Prepared{}, err
	}
	b := build{Toolchain: t, Project: p, log: log, base: base, app: filepath.Join(p.Bundle, "app")}
	b.dir = filepath.Join(b.app, filepath.FromSlash(p.Dir))
	if err := b.command(ctx, b.app, p.InstallCommand); err != nil {
		return slipway.Prepared{}, err
	}
	out, err := b.prepare(ctx)
	if err != nil || p.InstallCommand+p.BuildCommand == "" {
		return out, err
	}
	if err := b.command(ctx, b.dir, p.BuildCommand); err != nil {
		return out, err
	}
	tree, err := command.TreeKey(b.app)
	out.Key += " " + tree
	return out, err
}

// build is one project on its way.
type build struct {
	*Toolchain
	slipway.Project
	log  func(string)
	base interpreter
	app  string // absolute
	dir  string // of the configuration, absolute
}

func (b build) prepare(ctx context.Context) (slipway.Prepared, error) {
	if b.Workspace != nil {
		if err := b.checkWorkspace(); err != nil {
			return slipway.Prepared{}, err
		}
	}
	in, err := b.inputs()
	if err != nil {
		return slipway.Prepared{}, err
	}
	fresh := false
	layer, err := command.Layer(filepath.Join(b.cfg.Root, "layers"), "python-"+in.key, command.Scratch(b.Bundle), func(dir string) error {
		fresh = true
		return b.fill(ctx, dir, in)
	})
	if err != nil {
		return slipway.Prepared{}, err
	}
	if !fresh {
		b.log("the Python dependencies are unchanged: nothing to install")
	}
	if err := b.environment(layer, in); err != nil {
		return slipway.Prepared{}, err
	}
	return slipway.Prepared{
		Key: in.key, Python: &slipway.PythonBundle{Interpreter: "python/bin/python", Path: []string{}},
		Shared: append([]string{"layers/python-" + in.key}, command.ToolOf(b.cfg.Root, b.base.path)...),
	}, nil
}

// command runs one of the user's commands, if there is one, with the Python of the project first in its PATH.
func (b build) command(ctx context.Context, dir, text string) error {
	if text == "" {
		return nil
	}
	path := filepath.Join(b.Bundle, "python", "bin") + ":" + filepath.Dir(b.base.path) + ":" + os.Getenv("PATH")
	b.log("$ " + text)
	return command.Run(ctx, command.Command{
		Dir: dir, Home: b.home(), Root: b.cfg.Root, Keep: b.cfg.Keep, Env: []string{"PATH=" + path}, Args: []string{"sh", "-c", text}, Show: text, Rename: b.names(dir),
	}, b.log)
}

// names replaces the paths of this machine in what users see.
func (b build) names(dir string) []string {
	return []string{"file://" + dir, "file:.", dir + "/", "", dir, ".", b.Bundle + "/", "", b.cfg.Root + "/", "", b.cfg.Tools + "/", "tools/", b.cfg.Cache + "/", "cache/"}
}

func (b build) home() string { return filepath.Join(b.cfg.Cache, "home") }

// run runs an installer.
func (b build) run(ctx context.Context, dir string, args ...string) error {
	env, err := b.settings()
	if err != nil {
		return err
	}
	shown := b.shown(dir, args)
	b.log("$ " + shown)
	return command.Run(ctx, command.Command{Dir: dir, Home: b.home(), Root: b.cfg.Root, Keep: b.cfg.Keep, Env: env, Args: args, Show: shown, Rename: b.names(dir)}, b.log)
}

// shown is a command without the paths of this machine.
func (b build) shown(dir string, args []string) string {
	words := []string{filepath.Base(args[0])}
	for i, a := range args[1:] {
		if args[i] != "--python" && a != "--python" {
			words = append(words, a)
		}
	}
	return strings.NewReplacer(b.names(dir)...).Replace(strings.Join(words, " "))
}

func exists(parts ...string) bool {
	_, err := os.Stat(filepath.Join(parts...))
	return err == nil
}

func wrap(err error) error {
	if err != nil {
		return fmt.Errorf("prepare the Python environment: %w", err)
	}
	return nil
}
