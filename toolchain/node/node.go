// Package node installs the dependencies of JavaScript and TypeScript graphs.
//
// Where the manifest and the lock file alone determine node_modules, it lies in a layer shared by all bundles with the same
// two files, and a bundle has a link to it: changed code needs no installation. Other projects (workspaces, local
// packages, own commands) are installed in the bundle itself.
package node

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/graphconfig"
	"github.com/slipway-dev/slipway/toolchain/command"
)

// Config says where a Toolchain works.
type Config struct {
	Root  string // the platform's data directory
	Cache string // of downloads and the build's home directory; "" = Root/cache
	Tools string // what is installed to install with; "" = Root/tools
	Keep  string // program of the keepers (package keeper) that commands run below; "" = none
}

// Toolchain implements slipway.Toolchain for JavaScript.
type Toolchain struct {
	cfg   Config
	mu    sync.Mutex
	known map[string]interpreter // by node_version
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

// interpreter is a Node of this machine.
type interpreter struct {
	path    string
	version string // "20.20.2"
	modTime time.Time
}

// build is one project on its way.
type build struct {
	*Toolchain
	slipway.Project
	log    func(string)
	node   interpreter
	app    string // absolute
	beside string // directory of the configuration, absolute
	shared []string
}

// Clean kills what an interrupted build left running. It is called before the first build.
func (t *Toolchain) Clean() { command.Reap(t.cfg.Root) }

// Prepare implements slipway.Toolchain.
func (t *Toolchain) Prepare(ctx context.Context, p slipway.Project, log func(string)) (slipway.Prepared, error) {
	var out slipway.Prepared
	found, err := t.interpreter(ctx, p, log)
	if err != nil {
		return out, err
	}
	b := build{Toolchain: t, Project: p, log: log, node: found, app: filepath.Join(p.Bundle, "app")}
	b.beside = filepath.Join(b.app, filepath.FromSlash(p.Dir))
	out.Node = &slipway.NodeBundle{Interpreter: found.path}
	if out.Key, err = b.install(ctx); err != nil {
		return out, err
	}
	if p.TypeScript {
		out.Node.Loader, err = b.loader(ctx)
		out.Key += " tsx-" + tsxVersion
	}
	out.Shared = append(b.shared, command.ToolOf(b.cfg.Root, found.path)...)
	return out, err
}

// install puts node_modules where the graphs find it and returns the key of what was installed.
func (b *build) install(ctx context.Context) (string, error) {
	where := b.beside
	if b.InstallCommand != "" || b.BuildCommand != "" {
		where = b.app
	}
	manifest, err := os.ReadFile(filepath.Join(where, "package.json"))
	if err != nil && b.InstallCommand == "" {
		at, _ := filepath.Rel(b.app, where)
		return "", slipway.Errorf(slipway.CodeInvalid, "package.json is missing in the directory %q of the source: JavaScript graphs need one that lists their packages", at)
	}
	plan, err := graphconfig.ManagerOf(os.DirFS(where), ".")
	if err != nil {
		return "", err
	}
	if b.InstallCommand == "" && b.BuildCommand == "" && simple(where, manifest) {
		return b.layered(ctx, where, plan)
	}
	if b.InstallCommand != "" {
		err = b.shell(ctx, b.app, b.InstallCommand, plan)
	} else {
		err = b.managed(ctx, where, plan)
	}
	if err == nil && b.BuildCommand != "" {
		err = b.shell(ctx, b.beside, b.BuildCommand, plan)
	}
	if err != nil {
		return "", err
	}
	return command.TreeKey(b.app)
}

// run runs a program with the directories of bins first in its PATH.
func (b build) run(ctx context.Context, dir string, bins []string, shown string, args ...string) error {
	b.log("$ " + shown)
	path := append(append([]string{}, bins...), filepath.Dir(b.node.path), os.Getenv("PATH"))
	env := []string{
		"PATH=" + strings.Join(path, ":"), "npm_config_cache=" + filepath.Join(b.cfg.Cache, "npm"), "npm_config_audit=false", "npm_config_fund=false",
		"npm_config_progress=false", "YARN_CACHE_FOLDER=" + filepath.Join(b.cfg.Cache, "yarn"),
		"YARN_NODE_LINKER=node-modules", "YARN_ENABLE_TELEMETRY=0", "BUN_INSTALL_CACHE_DIR=" + filepath.Join(b.cfg.Cache, "bun"),
		"COREPACK_ENABLE_STRICT=0",
	}
	if strings.Contains(shown, "pnpm ") { // npm warns of settings that only pnpm knows
		env = append(env, "npm_config_store_dir="+filepath.Join(b.cfg.Cache, "pnpm"), "npm_config_manage_package_manager_versions=false")
	}
	return command.Run(ctx, command.Command{
		Dir: dir, Home: filepath.Join(b.cfg.Cache, "home"), Root: b.cfg.Root, Keep: b.cfg.Keep, Env: env, Args: args, Show: shown,
		Rename: []string{dir + "/", "", dir, ".", b.Bundle + "/", "", b.cfg.Root + "/", "", b.cfg.Tools + "/", "tools/", b.cfg.Cache + "/", "cache/"},
	}, b.log)
}

// shell runs one of the user's commands, with the package managers that it names.
func (b build) shell(ctx context.Context, dir, text string, plan graphconfig.Manager) error {
	bins := []string{filepath.Join(dir, "node_modules", ".bin"), filepath.Join(b.app, "node_modules", ".bin")}
	for _, word := range strings.Fields(text) {
		if word != "pnpm" && word != "yarn" && word != "bun" {
			continue
		}
		if word != plan.Name {
			plan.Version = ""
		}
		bin, err := b.manager(ctx, word, plan.Version)
		if err != nil {
			return err
		}
		bins = append(bins, bin...)
	}
	return b.run(ctx, dir, bins, text, "sh", "-c", text)
}

// managed runs the package manager of the plan.
func (b build) managed(ctx context.Context, dir string, p graphconfig.Manager) error {
	bins, err := b.manager(ctx, p.Name, p.Version)
	if err != nil {
		return err
	}
	return b.run(ctx, dir, bins, p.String(), p.Args...)
}
