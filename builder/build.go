package builder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/graphconfig"
)

// minimumFree is how many bytes of disk a build needs before it begins.
const minimumFree = 512 << 20

// build makes the bundle of a job in a temporary directory and gives it its name.
func (b *Builder) build(ctx context.Context, job slipway.BuildJob, log func(string), exceeded context.CancelCauseFunc) (slipway.BuildResult, error) {
	bundles := filepath.Join(b.cfg.Root, "bundles")
	tmp, err := b.room(bundles)
	if err != nil {
		return slipway.BuildResult{}, err
	}
	defer os.RemoveAll(tmp)
	defer b.watch(ctx, tmp, exceeded)()
	b.touchCaches()
	w := work{Builder: b, job: job, dir: tmp, app: filepath.Join(tmp, "app"), log: log}
	for _, step := range []func(context.Context) error{w.fetch, w.read, w.install, w.components} {
		if err := step(ctx); err != nil {
			return w.result, err
		}
	}
	log("storing the bundle")
	w.result.ArtifactDigest, err = finish(bundles, tmp, w.bundle, w.parts...)
	if err != nil {
		return w.result, err
	}
	log("bundle " + w.result.ArtifactDigest)
	if b.Depot != nil {
		log("handing the bundle over")
		w.result.Parts, err = b.Depot.Store(ctx, job, b.cfg.Root, w.result.ArtifactDigest, w.bundle.Shared)
	}
	return w.result, err
}

// room makes a temporary directory with an empty directory app, if the disk has room for a build.
func (b *Builder) room(bundles string) (string, error) {
	if err := os.MkdirAll(bundles, 0o755); err != nil {
		return "", fmt.Errorf("build: %w", err)
	}
	if free(bundles) < b.cfg.MinimumFree {
		return "", slipway.Errorf(slipway.CodeUnavailable, "less than %d MiB of disk are free where bundles are kept: free some, for example with `slipway gc --all`, and deploy again", b.cfg.MinimumFree>>20)
	}
	tmp, err := os.MkdirTemp(bundles, ".tmp-*")
	if err != nil {
		return "", fmt.Errorf("build: %w", err)
	}
	if err := errors.Join(os.Chmod(tmp, 0o755), os.Mkdir(filepath.Join(tmp, "app"), 0o755)); err != nil {
		os.RemoveAll(tmp)
		return "", fmt.Errorf("build: %w", err)
	}
	return tmp, nil
}

// work is one build on its way.
type work struct {
	*Builder
	job    slipway.BuildJob
	dir    string // the bundle being made
	app    string // its source
	log    func(string)
	config graphconfig.Config
	at     string // path of the configuration below app
	bundle slipway.Bundle
	parts  []string // what the digest covers besides the bundle's description
	result slipway.BuildResult
}

func (w *work) fetch(ctx context.Context) error {
	fetcher := w.Fetchers[w.job.Source]
	if fetcher == nil {
		return slipway.Errorf(slipway.CodeBadRequest, "the source %q cannot be built by this installation", w.job.Source)
	}
	w.log("fetching the source")
	commit, err := fetcher.Fetch(ctx, w.job, w.app, w.log)
	if err != nil {
		return err
	}
	w.result.CommitSHA = commit
	return nil
}

// read reads the configuration and checks what it names.
func (w *work) read(context.Context) (err error) {
	if w.config, w.at, err = readConfig(w.app, w.job.ConfigPath); err != nil {
		return err
	}
	if err := prune(w.app, w.at, w.config); err != nil {
		return err
	}
	source, err := hashTree(w.app)
	if err != nil {
		return err
	}
	w.explain()
	w.bundle = manifest(w.config, w.at)
	// Files that a build command makes cannot be checked before it has run.
	if w.result.EnvFile, err = checkFiles(w.app, w.at, w.config, w.job.BuildCommand == "" && w.job.InstallCommand == ""); err != nil {
		return err
	}
	w.parts = append(w.parts, source, w.at)
	return nil
}

func (w *work) install(ctx context.Context) error {
	p := project(w.dir, w.bundle, w.config)
	p.InstallCommand, p.BuildCommand = w.job.InstallCommand, w.job.BuildCommand
	for _, language := range []slipway.Language{slipway.Node, slipway.Python} {
		if !w.needs(language) {
			continue
		}
		toolchain := w.Toolchains[language]
		if toolchain == nil {
			return slipway.Errorf(slipway.CodeInvalid, "this installation builds no %s graphs", language)
		}
		w.log("installing the dependencies of the " + string(language) + " graphs")
		began := w.Clock()
		prepared, err := toolchain.Prepare(ctx, p, w.log)
		if err != nil {
			return err
		}
		w.log(fmt.Sprintf("the %s graphs are ready to run after %s", language, w.Clock().Sub(began).Round(time.Millisecond)))
		w.parts = append(w.parts, string(language), prepared.Key)
		w.bundle.Shared = append(w.bundle.Shared, prepared.Shared...)
		if prepared.Python != nil {
			w.bundle.Python = prepared.Python
		}
		if prepared.Node != nil {
			if w.bundle.Node = prepared.Node; w.config.NodeLoader != "" {
				w.bundle.Node.Loader = w.config.NodeLoader
			}
		}
		p.InstallCommand, p.BuildCommand = "", ""
	}
	_, err := checkFiles(w.app, w.at, w.config, true)
	return err
}

// components builds what browsers load, from the files that the installation has left.
func (w *work) components(ctx context.Context) (err error) {
	if len(w.config.UI) == 0 {
		return nil
	}
	if w.UI == nil {
		return slipway.Errorf(slipway.CodeInvalid, "this installation builds no components of ui")
	}
	w.log("building the components of ui")
	w.bundle.UI, err = w.UI.BundleUI(ctx, project(w.dir, w.bundle, w.config), w.log)
	return err
}

// needs says whether something of the language is installed: for its graphs, or in JavaScript for components of `ui`.
func (w *work) needs(language slipway.Language) bool {
	if language == slipway.Node && len(w.config.UI) > 0 {
		if _, err := os.Stat(filepath.Join(w.app, filepath.FromSlash(path.Dir(w.at)), "package.json")); err == nil {
			return true
		}
	}
	return w.config.Uses(language)
}

// project is what the toolchains get to know.
func project(dir string, bundle slipway.Bundle, c graphconfig.Config) slipway.Project {
	p := slipway.Project{
		Bundle: dir, Dir: path.Clean(strings.TrimPrefix(strings.TrimPrefix(bundle.Dir, "app"), "/")), Dependencies: c.Dependencies,
		PipConfigFile: c.PipConfigFile, PipInstaller: c.PipInstaller, PythonVersion: c.PythonVersion, NodeVersion: c.NodeVersion,
		TypeScript: c.TypeScript() && c.NodeLoader == "", UI: c.UI, UIShared: c.UIShared(),
	}
	if root := c.UVRoot(); root != "" {
		p.Workspace = &slipway.Workspace{Root: root, Package: c.Source.Package}
	}
	for _, file := range c.Files() {
		if !graphconfig.JavaScript(file) {
			p.PythonFiles = append(p.PythonFiles, file)
		}
	}
	return p
}

func manifest(c graphconfig.Config, at string) slipway.Bundle {
	return slipway.Bundle{Version: 1, Shared: []string{}, Graphs: c.Bundle(), Dir: path.Join("app", path.Dir(at)), Config: c.Effective(), Env: c.Env.Values}
}
