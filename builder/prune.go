package builder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/graphconfig"
)

// prune removes what does not belong to the application: what is always out, and what .dockerignore names in the
// directories of the configuration, of its local dependencies and of its uv workspace (control-plane reference 7, ignore
// rules). What .gitignore names, git and uploading clients have left out already; a file that is tracked all the same stays.
func prune(app, at string, c graphconfig.Config) error {
	root, err := os.OpenRoot(app)
	if err != nil {
		return fmt.Errorf("prune the source: %w", err)
	}
	defer root.Close()
	dirs := append([]string{".", c.UVRoot()}, c.Local()...)
	for i := range dirs {
		dirs[i] = path.Join(path.Dir(at), dirs[i])
	}
	slices.Sort(dirs)
	for _, dir := range slices.Compact(dirs) {
		if !fs.ValidPath(dir) {
			continue // the checks tell what is wrong with it
		}
		if err := pruneDir(root, dir, at); err != nil {
			return err
		}
	}
	return checkLinks(root)
}

// checkLinks refuses symbolic links that lead out of the source: what builds and the platform read and write through them
// would be files of this machine.
func checkLinks(root *os.Root) error {
	return fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.Type()&fs.ModeSymlink == 0 {
			return err
		}
		to, err := root.Readlink(name)
		if err != nil {
			return fmt.Errorf("check links: %w", err)
		}
		_, follow := root.Stat(name)
		if filepath.IsAbs(to) || !filepath.IsLocal(filepath.Join(filepath.Dir(name), to)) || follow != nil && !errors.Is(follow, fs.ErrNotExist) {
			return slipway.Errorf(slipway.CodeInvalid, "the source has the link %q to %q, which does not lead to a file of the source: replace it by what it points to", name, to)
		}
		return nil
	})
}

func pruneDir(root *os.Root, dir, at string) error {
	inside, err := fs.Sub(root.FS(), dir)
	if err != nil {
		return fmt.Errorf("prune the source: %w", err)
	}
	if info, err := root.Stat(dir); err != nil || !info.IsDir() {
		return nil
	}
	out, err := graphconfig.ReadIgnore(inside, ".dockerignore").Excluded(root.FS(), dir)
	if err != nil {
		return fmt.Errorf("prune the source: %w", err)
	}
	for _, name := range out {
		if err := root.RemoveAll(name); err != nil {
			return fmt.Errorf("prune the source: %w", err)
		}
	}
	if _, err := root.Stat(at); err != nil {
		return slipway.Errorf(slipway.CodeInvalid, "%s is left out by %s: the graph configuration must be part of the source", at, path.Join(dir, ".dockerignore"))
	}
	return nil
}
