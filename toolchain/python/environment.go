package python

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/slipway-dev/slipway/toolchain/command"
)

// addLayer is the line of a path file that adds a directory named relative to the one the file lies in, as site.py sees that;
// Python runs such a line inside the function that reads the file.
const addLayer = `import os, site, sys; site.addsitedir(os.path.normpath(os.path.join(sys._getframe(1).f_locals["sitedir"], %q)))` + "\n"

// up leads from a bundle's site-packages to its directory app.
const up = "../../../../app"

// environment makes the bundle's own virtual environment: the interpreter, the local packages' metadata, and one path file
// that names the local directories before the layer. Its paths inside the bundle are relative, so that the bundle may move.
func (b build) environment(layer string, in inputs) error {
	venv := filepath.Join(b.Bundle, "python")
	site := filepath.Join(venv, sitePackages(b.base))
	if err := errors.Join(os.MkdirAll(filepath.Join(venv, "bin"), 0o755), os.MkdirAll(site, 0o755)); err != nil {
		return wrap(err)
	}
	config := fmt.Sprintf("home = %s\ninclude-system-site-packages = false\nversion = %s\n", filepath.Dir(b.base.path), b.base.version)
	var path strings.Builder
	for _, dir := range in.search {
		path.WriteString(up + "/" + dir + "\n")
	}
	rel, err := filepath.Rel(site, filepath.Join(layer, "venv", sitePackages(b.base)))
	if err != nil {
		return wrap(err)
	}
	fmt.Fprintf(&path, addLayer, filepath.ToSlash(rel))
	return wrap(errors.Join(
		os.WriteFile(filepath.Join(venv, "pyvenv.cfg"), []byte(config), 0o644),
		command.LinkWithin(b.cfg.Root, b.base.path, filepath.Join(venv, "bin", "python")),
		os.Symlink("python", filepath.Join(venv, "bin", "python3")),
		os.WriteFile(filepath.Join(site, "_slipway.pth"), []byte(path.String()), 0o644),
		restore(filepath.Join(layer, "local"), site),
	))
}

// restore copies the local packages' files of a layer into a bundle, with paths of that bundle.
func restore(local, site string) error {
	return filepath.WalkDir(local, func(at string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(local, at)
		raw, err := os.ReadFile(at)
		if err != nil {
			return err
		}
		text := string(raw)
		switch filepath.Ext(rel) {
		case ".pth":
			text = strings.ReplaceAll(text, placeholder, up)
		case ".py":
			text = literal.ReplaceAllString(text, fmt.Sprintf(
				`(__import__("os").path.realpath(__import__("os").path.join(__import__("os").path.dirname(__file__), %q)) + ${1}${2}${1})`, up))
		default:
			text = strings.ReplaceAll(text, placeholder, "/app")
		}
		to := filepath.Join(site, rel)
		return errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, []byte(text), 0o644))
	})
}

// literal is a path of the source as a string in Python code.
var literal = regexp.MustCompile(`(['"])` + placeholder + `([^'"]*)['"]`)
