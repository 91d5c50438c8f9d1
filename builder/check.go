package builder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/graphconfig"
)

// spellings returns the path itself and, if it bears one of the usual names, its sibling of the other name: the two are one
// name in two dialects (control-plane reference, aliases).
func spellings(wanted string) []string {
	all := []string{wanted}
	dir, base := path.Split(wanted)
	if usual := graphconfig.FileNames(); slices.Contains(usual, base) {
		for _, name := range usual {
			if name != base {
				all = append(all, dir+name)
			}
		}
	}
	return all
}

// readConfig finds and parses the graph configuration; at is its path below app.
func readConfig(app, wanted string) (c graphconfig.Config, at string, err error) {
	names := graphconfig.FileNames()
	if wanted != "" {
		names = spellings(path.Clean(wanted))
	}
	root, err := os.OpenRoot(app)
	if err != nil {
		return c, "", fmt.Errorf("read configuration: %w", err)
	}
	defer root.Close()
	for _, name := range names {
		raw, err := root.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return c, "", slipway.Errorf(slipway.CodeInvalid, "the graph configuration %q cannot be read: %w", name, err)
		}
		if c, err = graphconfig.Parse(raw); err != nil {
			return c, "", slipway.Errorf(slipway.CodeInvalid, "the graph configuration %s is not valid: %w", name, err)
		}
		return c, name, nil
	}
	return c, "", slipway.Errorf(slipway.CodeInvalid, "the source has no graph configuration %s: add it, or correct agentgraph_config_path%s", strings.Join(names, " or "), meant(app, names[0]))
}

// checkFiles holds the configuration to the files of the source and reads its .env file; the result is nil without one. The
// files that hold code are checked only where strict: an install or build command may still make them.
func checkFiles(app, at string, c graphconfig.Config, strict bool) (map[string]string, error) {
	root, err := os.OpenRoot(app)
	if err != nil {
		return nil, fmt.Errorf("check files: %w", err)
	}
	defer root.Close()
	if err := c.FindingsIn(root.FS(), at, strict).Err(); err != nil {
		return nil, slipway.Errorf(slipway.CodeInvalid, "%s: %w", at, err)
	}
	if c.Env.File == "" {
		return nil, nil
	}
	raw, err := root.ReadFile(path.Join(path.Dir(at), c.Env.File))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // it is kept out of git and archives, and clients have made its variables secrets
	}
	if err != nil {
		return nil, slipway.Errorf(slipway.CodeInvalid, "%s: env names the file %q, which cannot be read: make it a readable file below the source or remove env", at, c.Env.File)
	}
	values, err := graphconfig.ParseEnvFile(string(raw))
	if err != nil {
		return nil, slipway.Errorf(slipway.CodeInvalid, "%s: env names the file %q, which cannot be read: %w", at, c.Env.File, err)
	}
	return values, nil
}

// explain tells what the configuration comes to at the head of the build log. What is wrong is told by the checks.
func (w *work) explain() {
	root, err := os.OpenRoot(w.app)
	if err != nil {
		return
	}
	defer root.Close()
	e := w.config.Explain(root.FS(), w.at, nil, graphconfig.Commands{Install: w.job.InstallCommand, Build: w.job.BuildCommand})
	e.Errors = nil
	for _, line := range e.Lines() {
		w.log(line)
	}
}

// meant suggests a file of the source with a similar name.
func meant(app, wanted string) string {
	var files []string
	_ = filepath.WalkDir(app, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() && (e.Name() == "node_modules" || e.Name() == ".git") {
			return fs.SkipDir
		}
		if rel, err := filepath.Rel(app, name); err == nil && !e.IsDir() {
			files = append(files, filepath.ToSlash(rel))
		}
		return nil
	})
	if near := graphconfig.Nearest(wanted, files); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}
