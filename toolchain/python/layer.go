package python

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/toolchain/command"
)

// uvVersion is the uv that is installed where the machine has none.
const uvVersion = "0.9.5"

// placeholder stands for the directory "app" in the files of local packages that a layer keeps.
const placeholder = "/@@slipway-app@@"

// fill makes a layer: "venv" with what comes from outside, and "local" with the metadata of the local packages.
func (b build) fill(ctx context.Context, dir string, in inputs) error {
	installer, err := b.installer(ctx)
	if err != nil {
		return err
	}
	source := filepath.Join(dir, "source") // builds may write into the source: they get a copy
	if err := copySource(b.app, source); err != nil {
		return wrap(err)
	}
	args, err := b.arguments(ctx, installer, source, in)
	if err != nil {
		return err
	}
	venv := filepath.Join(dir, "venv")
	if err := installer.venv(ctx, b, venv); err != nil {
		return err
	}
	if len(args) > 0 {
		if err := installer.install(ctx, b, source, venv, args); err != nil {
			return err
		}
	}
	if err := extract(filepath.Join(venv, sitePackages(b.base)), source, filepath.Join(dir, "local")); err != nil {
		return wrap(err)
	}
	return wrap(os.RemoveAll(source))
}

// arguments are what is installed, relative to the copy of the source where it is local.
func (b build) arguments(ctx context.Context, i installer, source string, in inputs) ([]string, error) {
	if b.Workspace != nil {
		return b.exportWorkspace(ctx, i, source)
	}
	var args []string
	for _, file := range in.requirements {
		args = append(args, "-r", file)
	}
	for _, dir := range in.packages {
		args = append(args, "-e", strings.TrimSuffix("./"+dir, "/."))
	}
	if len(in.remote) > 0 {
		args = append(append(args, "--"), in.remote...)
	}
	return args, nil
}

// installer is uv or pip.
type installer struct{ uv string } // "" = pip

// installer chooses by pip_installer.
func (b build) installer(ctx context.Context) (installer, error) {
	if b.PipInstaller == "pip" {
		return installer{}, nil
	}
	uv, err := b.findUV(ctx)
	if err == nil {
		return installer{uv: uv}, nil
	}
	if b.PipInstaller == "uv" || b.Workspace != nil || ctx.Err() != nil {
		return installer{}, slipway.Errorf(slipway.CodeInvalid, "uv is needed but cannot be installed on this machine: install it, or set pip_installer to pip: %w", err)
	}
	b.log("uv cannot be had (" + err.Error() + "); pip is used, which is slower")
	return installer{}, nil
}

// findUV returns uv from PATH, else from the platform's tools, where pip puts it.
func (b build) findUV(ctx context.Context) (string, error) {
	if at, err := command.Look("uv", command.Base(b.home())); err == nil {
		return at, nil
	}
	dir, err := command.Layer(b.cfg.Tools, "uv-"+uvVersion, command.Scratch(b.Bundle), func(dir string) error {
		return b.run(ctx, dir, b.base.path, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", dir, "uv=="+uvVersion)
	})
	return filepath.Join(dir, "bin", "uv"), err
}

func (i installer) venv(ctx context.Context, b build, venv string) error {
	if i.uv == "" && b.hasPip(ctx) {
		return b.run(ctx, filepath.Dir(venv), b.base.path, "-m", "venv", "--without-pip", venv)
	}
	if i.uv == "" {
		return b.run(ctx, filepath.Dir(venv), b.base.path, "-m", "venv", venv)
	}
	return b.run(ctx, filepath.Dir(venv), i.uv, "venv", "--quiet", "--relocatable", "--python", b.base.path, venv)
}

// hasPip says whether the interpreter itself has a pip: making one for each layer takes seconds.
func (b build) hasPip(ctx context.Context) bool {
	err := command.Run(ctx, command.Command{Dir: b.cfg.Root, Home: b.home(), Root: b.cfg.Root, Keep: b.cfg.Keep, Args: []string{b.base.path, "-c", "import pip"}}, func(string) {})
	return err == nil
}

func (i installer) install(ctx context.Context, b build, source, venv string, args []string) error {
	python := filepath.Join(venv, "bin", "python")
	if i.uv == "" && !exists(venv, sitePackages(b.base), "pip") { // the interpreter's own pip installs into the environment
		return b.run(ctx, source, append([]string{b.base.path, "-m", "pip", "--python", python, "install", "--disable-pip-version-check", "--no-input"}, args...)...)
	}
	if i.uv == "" {
		return b.run(ctx, source, append([]string{python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input"}, args...)...)
	}
	return b.run(ctx, source, append([]string{i.uv, "pip", "install", "--compile-bytecode", "--python", python}, args...)...)
}

// extract moves what editable installations left in site to local, with the placeholder for source.
func extract(site, source, local string) error {
	if err := os.MkdirAll(local, 0o755); err != nil {
		return err
	}
	infos, _ := filepath.Glob(filepath.Join(site, "*.dist-info"))
	for _, info := range infos {
		var direct struct {
			URL string `json:"url"`
		}
		raw, err := os.ReadFile(filepath.Join(info, "direct_url.json"))
		if err != nil || json.Unmarshal(raw, &direct) != nil || !strings.HasPrefix(direct.URL, "file://"+source) {
			continue
		}
		files, err := recorded(filepath.Join(info, "RECORD"))
		if err != nil {
			return err
		}
		for _, rel := range files {
			if err := move(site, rel, source, local); err != nil {
				return err
			}
		}
		if err := os.RemoveAll(info); err != nil {
			return err
		}
	}
	return nil
}

// recorded lists the files of an installation, relative to its site directory.
func recorded(record string) ([]string, error) {
	f, err := os.Open(record)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.FieldsPerRecord = -1
	rows, err := r.ReadAll()
	var files []string
	for _, row := range rows {
		files = append(files, row[0])
	}
	return files, err
}

func move(site, rel, source, local string) error {
	from := filepath.Join(site, rel)
	if !filepath.IsLocal(rel) || filepath.Ext(rel) == ".pyc" { // a script beside the interpreter, or made again when needed
		_ = os.Remove(from)
		return nil
	}
	raw, err := os.ReadFile(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	to := filepath.Join(local, rel)
	return errors.Join(err, os.MkdirAll(filepath.Dir(to), 0o755),
		os.WriteFile(to, []byte(strings.ReplaceAll(string(raw), source, placeholder)), 0o644), os.Remove(from))
}

// copySource copies the source without what is no source.
func copySource(from, to string) error {
	return filepath.WalkDir(from, func(at string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(from, at)
		target := filepath.Join(to, rel)
		switch {
		case e.IsDir() && at != from && junk(e.Name()) && e.Name() != "build" && e.Name() != "dist":
			return filepath.SkipDir
		case e.IsDir():
			return os.MkdirAll(target, 0o755)
		case e.Type()&fs.ModeSymlink != 0 && e.Name() == "node_modules":
			return nil
		case e.Type()&fs.ModeSymlink != 0:
			link, err := os.Readlink(at)
			return errors.Join(err, os.Symlink(link, target))
		case !e.Type().IsRegular():
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		raw, err := os.ReadFile(at)
		return errors.Join(err, os.WriteFile(target, raw, info.Mode().Perm()))
	})
}

// sitePackages is where an environment of the interpreter keeps its packages.
func sitePackages(i interpreter) string {
	return filepath.Join("lib", fmt.Sprintf("python%s", i.minor()), "site-packages")
}
