// Package node installs the dependencies of JavaScript and TypeScript graphs.
package node

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/toolchain/command"
)

const tsxVersion = "4.20.6"

// Toolchain implements slipway.Toolchain for JavaScript. Root is the platform's data directory.
type Toolchain struct{ Root string }

var _ slipway.Toolchain = Toolchain{}

// Prepare implements slipway.Toolchain.
func (t Toolchain) Prepare(ctx context.Context, p slipway.Project, log func(string)) (slipway.Prepared, error) {
	out := slipway.Prepared{Node: &slipway.NodeBundle{Interpreter: "node"}}
	key, err := t.install(ctx, p, log)
	if err != nil {
		return out, err
	}
	out.Key = key
	if p.TypeScript {
		out.Node.Loader, err = t.loader(ctx, log)
		out.Key += " tsx-" + tsxVersion
	}
	return out, err
}

func (t Toolchain) run(ctx context.Context, dir string, log func(string), args ...string) error {
	log("$ " + strings.Join(args, " "))
	home := filepath.Join(t.Root, "cache", "home")
	env := []string{"npm_config_cache=" + filepath.Join(t.Root, "cache", "npm"), "npm_config_audit=false", "npm_config_fund=false"}
	env = append(env, "PATH="+filepath.Join(t.Root, "tools", "node", "node_modules", ".bin")+":"+os.Getenv("PATH"))
	return command.Run(ctx, command.Command{Dir: dir, Home: home, Env: env, Args: args}, log)
}

// install puts node_modules where the graphs find it and returns the key of what was installed.
func (t Toolchain) install(ctx context.Context, p slipway.Project, log func(string)) (string, error) {
	app := filepath.Join(p.Bundle, "app")
	beside := filepath.Join(app, filepath.FromSlash(p.Dir))
	where := beside
	if p.InstallCommand != "" || p.BuildCommand != "" {
		where = app
	}
	manifest, err := os.ReadFile(filepath.Join(where, "package.json"))
	if err != nil && p.InstallCommand == "" {
		return "", slipway.Errorf(slipway.CodeInvalid, "package.json is missing beside the graph configuration: JavaScript graphs need one that lists their packages")
	}
	args, lock := detect(where, manifest)
	if p.InstallCommand == "" && p.BuildCommand == "" && simple(manifest) {
		return t.layered(ctx, where, manifest, lock, args, log)
	}
	if err := t.inPlace(ctx, p, app, where, args, log); err != nil {
		return "", err
	}
	if p.BuildCommand != "" {
		if err := t.run(ctx, beside, log, "sh", "-c", p.BuildCommand); err != nil {
			return "", err
		}
	}
	return command.Key(p.InstallCommand, p.BuildCommand, strings.Join(args, " ")), nil
}

func (t Toolchain) inPlace(ctx context.Context, p slipway.Project, app, where string, args []string, log func(string)) error {
	if p.InstallCommand != "" {
		return t.run(ctx, app, log, "sh", "-c", p.InstallCommand)
	}
	if err := t.manager(ctx, args[0], log); err != nil {
		return err
	}
	return t.run(ctx, where, log, args...)
}

// layered installs into a directory shared by all bundles with the same manifest and lock file, and links to it.
func (t Toolchain) layered(ctx context.Context, where string, manifest []byte, lock string, args []string, log func(string)) (string, error) {
	files := []string{"package.json", ".npmrc", lock}
	locked, _ := os.ReadFile(filepath.Join(where, lock))
	npmrc, _ := os.ReadFile(filepath.Join(where, ".npmrc"))
	key := command.Key("node", runtime.GOOS, runtime.GOARCH, strings.Join(args, " "), string(manifest), string(locked), string(npmrc))
	layer, err := command.Layer(filepath.Join(t.Root, "layers"), "node-"+key, func(dir string) error {
		for _, name := range files {
			if raw, err := os.ReadFile(filepath.Join(where, name)); err == nil {
				if err := os.WriteFile(filepath.Join(dir, name), raw, 0o644); err != nil {
					return fmt.Errorf("install: %w", err)
				}
			}
		}
		if err := t.manager(ctx, args[0], log); err != nil {
			return err
		}
		if err := t.run(ctx, dir, log, args...); err != nil {
			return err
		}
		return os.MkdirAll(filepath.Join(dir, "node_modules"), 0o755)
	})
	if err != nil {
		return "", err
	}
	target := filepath.Join(where, "node_modules")
	if err := os.RemoveAll(target); err != nil {
		return "", fmt.Errorf("link node_modules: %w", err)
	}
	if err := os.Symlink(filepath.Join(layer, "node_modules"), target); err != nil {
		return "", fmt.Errorf("link node_modules: %w", err)
	}
	return key, nil
}

// manager installs a package manager that the machine lacks.
func (t Toolchain) manager(ctx context.Context, name string, log func(string)) error {
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), filepath.Join(t.Root, "tools", "node", "node_modules", ".bin")) {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return nil
		}
	}
	dir := filepath.Join(t.Root, "tools", "node")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("install %s: %w", name, err)
	}
	return t.run(ctx, dir, log, "npm", "install", "--prefix", dir, name)
}

// loader returns the pinned tsx, an absolute file for node's --import.
func (t Toolchain) loader(ctx context.Context, log func(string)) (string, error) {
	dir, err := command.Layer(filepath.Join(t.Root, "tools"), "tsx-"+tsxVersion, func(dir string) error {
		return t.run(ctx, dir, log, "npm", "install", "--prefix", dir, "tsx@"+tsxVersion)
	})
	return filepath.Join(dir, "node_modules", "tsx", "dist", "loader.mjs"), err
}

type manifestFile struct {
	PackageManager string `json:"packageManager"`
	DevEngines     struct {
		PackageManager struct{ Name string } `json:"packageManager"`
	} `json:"devEngines"`
	Workspaces      json.RawMessage   `json:"workspaces"`
	Scripts         map[string]string `json:"scripts"`
	Dependencies    map[string]string `json:"dependencies"`
	DevDependencies map[string]string `json:"devDependencies"`
	Optional        map[string]string `json:"optionalDependencies"`
}

// detect chooses the package manager by the table of control-plane reference 7 and names its lock file.
func detect(dir string, raw []byte) (args []string, lock string) {
	for _, row := range []struct{ file, command string }{
		{"yarn.lock", "yarn install --frozen-lockfile"},
		{"pnpm-lock.yaml", "pnpm i --frozen-lockfile"},
		{"package-lock.json", "npm ci"},
		{"bun.lockb", "bun i"},
		{"bun.lock", "bun i"},
	} {
		if _, err := os.Stat(filepath.Join(dir, row.file)); err == nil {
			return strings.Fields(row.command), row.file
		}
	}
	var m manifestFile
	_ = json.Unmarshal(raw, &m) // the package manager itself reports a manifest that is not JSON
	name := m.DevEngines.PackageManager.Name
	if m.PackageManager != "" {
		name, _, _ = strings.Cut(m.PackageManager, "@")
	}
	switch name {
	case "yarn":
		return []string{"yarn", "install"}, "yarn.lock"
	case "pnpm", "bun":
		return []string{name, "i"}, ""
	}
	return []string{"npm", "i"}, "package-lock.json"
}

// simple says whether the manifest and the lock file alone determine node_modules.
func simple(raw []byte) bool {
	var m manifestFile
	if json.Unmarshal(raw, &m) != nil || len(m.Workspaces) > 0 {
		return false
	}
	for _, script := range []string{"preinstall", "install", "postinstall", "prepare", "prepublish"} {
		if m.Scripts[script] != "" {
			return false
		}
	}
	for _, set := range []map[string]string{m.Dependencies, m.DevDependencies, m.Optional} {
		for _, spec := range set {
			if strings.HasPrefix(spec, "file:") || strings.HasPrefix(spec, "link:") || strings.HasPrefix(spec, "workspace:") || strings.HasPrefix(spec, ".") {
				return false
			}
		}
	}
	return true
}
