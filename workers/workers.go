// Package workers holds the graph workers' programs, embedded in the binary, and puts them on disk for their interpreters.
package workers

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/slipway-dev/slipway"
)

//go:embed all:python/slipway_worker node/src node/package.json
var programs embed.FS

// Installed is a directory that holds the programs.
type Installed struct{ dir string }

// Install writes the programs below root, in a directory named by their content; one that is there is used as it is.
func Install(root string) (Installed, error) {
	name, err := digest()
	if err != nil {
		return Installed{}, err
	}
	at := Installed{dir: filepath.Join(root, name)}
	if _, err := os.Stat(at.dir); err == nil {
		return at, nil
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return at, fmt.Errorf("install worker programs: %w", err)
	}
	tmp, err := os.MkdirTemp(root, ".new-")
	if err != nil {
		return at, fmt.Errorf("install worker programs: %w", err)
	}
	defer os.RemoveAll(tmp)
	if err := writeTo(tmp); err != nil {
		return at, fmt.Errorf("install worker programs: %w", err)
	}
	err = os.Rename(tmp, at.dir)
	if _, there := os.Stat(at.dir); err != nil && there != nil {
		return at, fmt.Errorf("install worker programs: %w", errors.Join(err, there))
	}
	return at, nil
}

// Python returns the command of the Python worker and the environment variables it needs.
func (i Installed) Python(b slipway.PythonBundle, bundleDir string) (argv, env []string) {
	search := []string{filepath.Join(i.dir, "python")}
	for _, p := range b.Path {
		search = append(search, within(bundleDir, p))
	}
	return []string{within(bundleDir, b.Interpreter), "-m", "slipway_worker"},
		[]string{"PYTHONPATH=" + strings.Join(search, string(os.PathListSeparator)), "PYTHONUNBUFFERED=1", "PYTHONDONTWRITEBYTECODE=1"}
}

// Node returns the command of the Node worker.
func (i Installed) Node(b slipway.NodeBundle, bundleDir string) []string {
	argv := []string{b.Interpreter}
	if argv[0] == "" {
		argv[0] = "node"
	}
	if b.Loader != "" {
		argv = append(argv, "--import", loader(b.Loader, bundleDir))
	}
	return append(argv, filepath.Join(i.dir, "node", "src", "main.mjs"))
}

// loader is a file of the bundle where there is one of that name, else a module's name.
func loader(name, bundleDir string) string {
	file := within(bundleDir, name)
	if _, err := os.Stat(file); err == nil {
		return "file://" + file
	}
	return name
}

func within(dir, p string) string {
	if filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(dir, filepath.FromSlash(p))
}

// each calls fn for every file that is part of a program.
func each(fn func(name string, content []byte) error) error {
	return fs.WalkDir(programs, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) == ".pyc" {
			return err
		}
		content, err := programs.ReadFile(name)
		if err != nil {
			return err
		}
		return fn(name, content)
	})
}

func digest() (string, error) {
	h := sha256.New()
	err := each(func(name string, content []byte) error {
		fmt.Fprintf(h, "%s\x00%d\x00", name, len(content))
		_, err := h.Write(content)
		return err
	})
	return hex.EncodeToString(h.Sum(nil))[:32], err
}

func writeTo(dir string) error {
	return each(func(name string, content []byte) error {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		return os.WriteFile(file, content, 0o644)
	})
}
