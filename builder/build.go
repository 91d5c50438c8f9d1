package builder

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/graphconfig"
)

// minimumFree is how many bytes of disk a build needs before it begins.
const minimumFree = 512 << 20

// build makes the bundle of a job in a temporary directory and gives it its name.
func (b *Builder) build(ctx context.Context, job slipway.BuildJob, log func(string)) (slipway.BuildResult, error) {
	var result slipway.BuildResult
	bundles := filepath.Join(b.cfg.Root, "bundles")
	if err := os.MkdirAll(bundles, 0o755); err != nil {
		return result, fmt.Errorf("build: %w", err)
	}
	var disk syscall.Statfs_t
	if err := syscall.Statfs(bundles, &disk); err == nil && disk.Bavail*uint64(disk.Bsize) < minimumFree {
		return result, slipway.Errorf(slipway.CodeUnavailable, "less than %d MiB of disk are free: free some and deploy again", minimumFree>>20)
	}
	tmp, err := os.MkdirTemp(bundles, ".tmp-*")
	if err != nil {
		return result, fmt.Errorf("build: %w", err)
	}
	defer os.RemoveAll(tmp)
	app := filepath.Join(tmp, "app")
	if err := errors.Join(os.Chmod(tmp, 0o755), os.Mkdir(app, 0o755)); err != nil {
		return result, fmt.Errorf("build: %w", err)
	}
	fetcher := b.Fetchers[job.Source]
	if fetcher == nil {
		return result, slipway.Errorf(slipway.CodeBadRequest, "the source %q cannot be built by this installation", job.Source)
	}
	log("fetching the source")
	if result.CommitSHA, err = fetcher.Fetch(ctx, job, app, log); err != nil {
		return result, err
	}
	source, err := hashTree(app)
	if err != nil {
		return result, err
	}
	config, at, err := readConfig(app, job.ConfigPath)
	if err != nil {
		return result, err
	}
	for _, w := range config.Warnings {
		log(at + ": " + w)
	}
	if result.EnvFile, err = checkFiles(app, at, config); err != nil {
		return result, err
	}
	bundle := manifest(config, at)
	keys, err := b.install(ctx, job, tmp, config, &bundle, log)
	if err != nil {
		return result, err
	}
	result.ArtifactDigest, err = finish(bundles, tmp, bundle, source, at, keys)
	log("bundle " + result.ArtifactDigest)
	return result, err
}

func manifest(c graphconfig.Config, at string) slipway.Bundle {
	bundle := slipway.Bundle{Version: 1, Graphs: map[string]slipway.BundleGraph{}, Dir: path.Join("app", path.Dir(at)), Config: c.Raw, Env: c.Env.Values}
	for id, g := range c.Graphs {
		spec := g.Spec
		if file, ok := g.File(); ok {
			if spec = file + ":" + g.Attribute; !strings.HasPrefix(spec, "../") {
				spec = "./" + spec
			}
		}
		bundle.Graphs[id] = slipway.BundleGraph{Spec: spec, Language: g.Language, Description: g.Description}
	}
	return bundle
}

func (b *Builder) install(ctx context.Context, job slipway.BuildJob, tmp string, c graphconfig.Config, bundle *slipway.Bundle, log func(string)) (string, error) {
	p := slipway.Project{
		Bundle: tmp, Dir: strings.TrimPrefix(strings.TrimPrefix(bundle.Dir, "app"), "/"), Dependencies: c.Dependencies,
		PipConfigFile: c.PipConfigFile, PythonVersion: c.PythonVersion, NodeVersion: c.NodeVersion, TypeScript: c.TypeScript(),
		InstallCommand: job.InstallCommand, BuildCommand: job.BuildCommand,
	}
	var keys string
	for _, language := range []slipway.Language{slipway.Node, slipway.Python} {
		if !c.Uses(language) {
			continue
		}
		log("installing the " + string(language) + " dependencies")
		prepared, err := b.Toolchains[language].Prepare(ctx, p, log)
		if err != nil {
			return "", err
		}
		keys += string(language) + prepared.Key
		if prepared.Python != nil {
			bundle.Python = prepared.Python
		}
		if prepared.Node != nil {
			bundle.Node = prepared.Node
		}
	}
	return keys, nil
}

// finish writes bundle.json and moves the bundle to its name, unless the same bundle is there already.
func finish(bundles, tmp string, bundle slipway.Bundle, parts ...string) (string, error) {
	raw, err := json.MarshalIndent(bundle, "", "  ")
	if err != nil {
		return "", fmt.Errorf("write bundle: %w", err)
	}
	if err := os.WriteFile(filepath.Join(tmp, slipway.BundleFile), raw, 0o644); err != nil {
		return "", fmt.Errorf("write bundle: %w", err)
	}
	sum := sha256.New()
	for _, p := range append(parts, string(raw)) {
		fmt.Fprintf(sum, "%d:%s", len(p), p)
	}
	digest := "sha256:" + hex.EncodeToString(sum.Sum(nil))
	target := slipway.BundlePath(bundles, digest)
	if _, err := os.Stat(target); err == nil {
		return digest, nil
	}
	if err := os.Rename(tmp, target); err != nil {
		if _, there := os.Stat(target); there != nil {
			return "", fmt.Errorf("store bundle: %w", err)
		}
	}
	return digest, nil
}

// hashTree hashes names, modes and contents.
func hashTree(dir string) (string, error) {
	sum := sha256.New()
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(dir, name)
		info, err := e.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%d:%s %o %d:", len(rel), rel, info.Mode(), info.Size())
		if e.Type()&fs.ModeSymlink != 0 {
			to, err := filepath.EvalSymlinks(name)
			if err != nil || to != dir && !strings.HasPrefix(to, dir+string(filepath.Separator)) {
				return slipway.Errorf(slipway.CodeInvalid, "the link %q of the source leads out of it or nowhere: remove it", rel)
			}
			fmt.Fprint(sum, to[len(dir):])
			return nil
		}
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(sum, f)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read source: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
