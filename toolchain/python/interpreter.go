package python

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/toolchain/command"
)

// oldest is the first supported minor version of Python 3.
const oldest = 11

// interpreter is a Python of this machine.
type interpreter struct {
	path    string // of the installation itself, no link or shim
	version string // major.minor.patch
	modTime time.Time
}

// minor returns "3.11" of "3.11.7".
func (i interpreter) minor() string {
	parts := strings.SplitN(i.version, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// interpreter finds a Python of the wanted version, any supported one for "": on this machine, else one that uv brings.
// What was found once is used again while it stays as it was.
func (t *Toolchain) interpreter(ctx context.Context, p slipway.Project, log func(string)) (interpreter, error) {
	version := p.PythonVersion
	if found, ok := t.remembered(version); ok {
		return found, nil
	}
	found, ok := installed(ctx, version)
	if !ok && version != "" {
		var err error
		if found, err = t.download(ctx, p, log); err != nil {
			return found, missing(ctx, version, "; nor can uv bring it: "+err.Error())
		}
		ok = true
	}
	if !ok {
		return found, missing(ctx, "3.11", "")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known[version] = found
	return found, nil
}

func (t *Toolchain) remembered(version string) (interpreter, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known, ok := t.known[version]
	if !ok {
		return known, false
	}
	info, err := os.Stat(known.path)
	return known, err == nil && info.ModTime().Equal(known.modTime)
}

// installed looks for a Python on this machine.
func installed(ctx context.Context, version string) (interpreter, bool) {
	wanted := []string{version}
	if version == "" {
		wanted = []string{"3.11", "3.12", "3.13", "3.14"}
	}
	for _, v := range wanted {
		for _, at := range candidates(v) {
			if found, ok := probe(ctx, at); ok && found.minor() == v {
				return found, true
			}
		}
	}
	return interpreter{}, false
}

func missing(ctx context.Context, version, also string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	have := available(ctx)
	if have == "" {
		have = "none"
	}
	return slipway.Errorf(slipway.CodeInvalid, "Python %s is not installed on this machine, which has %s: set python_version in the graph configuration to one of these, or install it%s", version, have, also)
}

// downloadTimeout bounds how long uv may take to bring a Python.
const downloadTimeout = 3 * time.Minute

// download lets uv install a Python among the platform's tools.
func (t *Toolchain) download(ctx context.Context, p slipway.Project, log func(string)) (interpreter, error) {
	ctx, cancel := context.WithTimeout(ctx, downloadTimeout)
	defer cancel()
	helper, _ := installed(ctx, "")
	b := build{Toolchain: t, Project: slipway.Project{Bundle: p.Bundle}, log: log, base: helper}
	uv, err := b.findUV(ctx)
	if err != nil {
		return interpreter{}, err
	}
	dir, err := command.Layer(t.cfg.Tools, "python-"+p.PythonVersion, command.Scratch(p.Bundle), func(dir string) error {
		return command.Run(ctx, command.Command{
			Dir: dir, Home: b.home(), Root: t.cfg.Root, Keep: t.cfg.Keep, Env: []string{"UV_CACHE_DIR=" + filepath.Join(t.cfg.Cache, "uv"), "UV_HTTP_RETRIES=1"},
			Args: []string{uv, "python", "install", "--no-bin", "--no-config", "--install-dir", dir, p.PythonVersion},
			Show: "uv python install " + p.PythonVersion, Rename: b.names(dir),
		}, log)
	})
	if err != nil {
		return interpreter{}, err
	}
	all, _ := filepath.Glob(filepath.Join(dir, "cpython-"+p.PythonVersion+".*", "bin", "python"+p.PythonVersion))
	for _, at := range all {
		if found, ok := probe(ctx, at); ok && found.minor() == p.PythonVersion {
			return found, nil
		}
	}
	return interpreter{}, slipway.Errorf(slipway.CodeInvalid, "what uv installed is no Python %s", p.PythonVersion)
}

// candidates lists where a version may be: in PATH, and where version managers keep theirs.
func candidates(version string) []string {
	var all []string
	for _, name := range []string{"python" + version, "python3", "python"} {
		if at, err := exec.LookPath(name); err == nil {
			all = append(all, at)
		}
	}
	home, _ := os.UserHomeDir()
	pyenv := os.Getenv("PYENV_ROOT")
	if pyenv == "" {
		pyenv = filepath.Join(home, ".pyenv")
	}
	for _, pattern := range []string{
		filepath.Join(pyenv, "versions", version+".*", "bin", "python"+version),
		filepath.Join(home, ".local/share/uv/python", "cpython-"+version+".*", "bin", "python"+version),
		"/usr/bin/python" + version, "/usr/local/bin/python" + version, "/opt/homebrew/bin/python" + version,
	} {
		found, _ := filepath.Glob(pattern)
		slices.Reverse(found) // the newest patch first
		all = append(all, found...)
	}
	return all
}

// probe asks an interpreter what it is.
func probe(ctx context.Context, at string) (interpreter, bool) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	const ask = `import json, os, sys; print(json.dumps([os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable), "%d.%d.%d" % sys.version_info[:3]]))`
	out, err := exec.CommandContext(ctx, at, "-I", "-c", ask).Output()
	var said [2]string
	if err != nil || json.Unmarshal(out, &said) != nil {
		return interpreter{}, false
	}
	info, err := os.Stat(said[0])
	if err != nil {
		return interpreter{}, false
	}
	return interpreter{path: said[0], version: said[1], modTime: info.ModTime()}, true
}

// available names the supported versions of this machine.
func available(ctx context.Context) string {
	var have []string
	for minor := oldest; minor < oldest+8; minor++ {
		version := "3." + strconv.Itoa(minor)
		for _, at := range candidates(version) {
			if found, ok := probe(ctx, at); ok && found.minor() == version {
				have = append(have, version)
				break
			}
		}
	}
	return strings.Join(have, ", ")
}
