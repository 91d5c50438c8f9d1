package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/slipway-dev/slipway/graphconfig"
	"github.com/slipway-dev/slipway/toolchain/command"
)

// Versions of the tools that are installed where the project or the machine does not say which.
const (
	tsxVersion         = "4.20.6"
	pnpmVersion        = "10.34.8"
	yarnClassicVersion = "1.22.22"
	yarnVersion        = "4.10.3"
	bunVersion         = "1.3.0"
)

// layered installs into a directory shared by all bundles with the same manifest and lock file, and links to it.
func (b *build) layered(ctx context.Context, where string, p graphconfig.Manager) (string, error) {
	files := map[string][]byte{}
	parts := []string{"node", runtime.GOOS, runtime.GOARCH, b.node.version, strings.Join(p.Args, " "), p.Version}
	for _, name := range []string{"package.json", ".npmrc", p.Lock} {
		raw, err := os.ReadFile(filepath.Join(where, name))
		if name == "" || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("read %s: %w", name, err)
		}
		files[name], parts = raw, append(parts, name, string(raw))
	}
	key, fresh := command.Key(parts...), false
	layer, err := command.Layer(filepath.Join(b.cfg.Root, "layers"), "node-"+key, command.Scratch(b.Bundle), func(dir string) error {
		fresh = true
		for name, raw := range files {
			if err := os.WriteFile(filepath.Join(dir, name), raw, 0o644); err != nil {
				return fmt.Errorf("install: %w", err)
			}
		}
		if err := b.managed(ctx, dir, p); err != nil {
			return err
		}
		return os.MkdirAll(filepath.Join(dir, "node_modules"), 0o755)
	})
	if err != nil {
		return "", err
	}
	if !fresh {
		b.log("the JavaScript dependencies are unchanged: nothing to install")
	}
	target := filepath.Join(where, "node_modules")
	if err := errors.Join(os.RemoveAll(target), command.Link(filepath.Join(layer, "node_modules"), target)); err != nil {
		return "", fmt.Errorf("link node_modules: %w", err)
	}
	b.shared = append(b.shared, "layers/node-"+key)
	return key, nil
}

// loader returns the pinned tsx, a file for node's --import, relative to the bundle where the tools are the data directory's.
func (b *build) loader(ctx context.Context) (string, error) {
	dir, err := b.tool(ctx, "tsx", tsxVersion)
	file := filepath.Join(dir, "node_modules", "tsx", "dist", "loader.mjs")
	if filepath.Dir(b.cfg.Tools) != filepath.Clean(b.cfg.Root) {
		return file, err
	}
	b.shared = append(b.shared, path.Join(filepath.Base(b.cfg.Tools), filepath.Base(dir)))
	if rel, fails := filepath.Rel(b.Bundle, file); fails == nil {
		file = filepath.ToSlash(rel)
	}
	return file, err
}

// manager returns the directories that hold a package manager: none when the machine's PATH has it in a version that does.
func (b build) manager(ctx context.Context, name, version string) ([]string, error) {
	if name == "npm" {
		return nil, nil
	}
	if _, err := command.Look(name, []string{"PATH=" + os.Getenv("PATH")}); err == nil && version == "" {
		return nil, nil
	}
	pkg, version := pinned(name, version)
	dir, err := b.tool(ctx, pkg, version)
	return []string{filepath.Join(dir, "node_modules", ".bin")}, err
}

// pinned returns the npm package of a package manager and the version that is installed.
func pinned(name, version string) (pkg, exact string) {
	switch {
	case name == "yarn" && (version == "" || strings.HasPrefix(version, "1")):
		return "yarn", or(version, yarnClassicVersion, "1")
	case name == "yarn":
		return "@yarnpkg/cli-dist", or(version, yarnVersion, "4")
	case name == "pnpm":
		return "pnpm", or(version, pnpmVersion, "")
	}
	return name, or(version, bunVersion, "")
}

// or replaces a version that is not given, or only as the major one that the fallback has.
func or(version, fallback, major string) string {
	if version == "" || version == major {
		return fallback
	}
	return version
}

// tool installs an npm package among the platform's tools and returns its directory.
func (b build) tool(ctx context.Context, pkg, version string) (string, error) {
	name := strings.NewReplacer("@", "", "/", "-").Replace(pkg) + "-" + strings.NewReplacer("/", "-").Replace(version)
	return command.Layer(b.cfg.Tools, name, command.Scratch(b.Bundle), func(dir string) error {
		at := pkg + "@" + version
		return b.run(ctx, dir, nil, "npm install "+at, "npm", "install", "--loglevel=error", "--prefix", dir, "--", at)
	})
}
