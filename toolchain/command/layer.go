package command

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Key hashes everything that determines a layer.
func Key(parts ...string) string {
	sum := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(sum, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Layer returns root/key, letting fill make it in a temporary directory of scratch when it is not there yet. It is durable
// once it has its name. Two builds that make the same layer at once both succeed. Its modification time says when it was
// last used: whoever cleans up looks at it again after taking the layer's name away, and gives the name back if it changed.
func Layer(root, key, scratch string, fill func(dir string) error) (string, error) {
	path, now := filepath.Join(root, key), time.Now()
	if os.Chtimes(path, now, now) == nil {
		return path, nil
	}
	if err := errors.Join(os.MkdirAll(root, 0o755), os.MkdirAll(scratch, 0o755)); err != nil {
		return "", fmt.Errorf("make layer: %w", err)
	}
	dir, err := os.MkdirTemp(scratch, ".tmp-*")
	if err != nil {
		return "", fmt.Errorf("make layer: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := errors.Join(os.Chmod(dir, 0o755), fill(dir)); err != nil {
		return "", err
	}
	if err := Sync(dir); err != nil {
		return "", err
	}
	if err := os.Rename(dir, path); err != nil {
		if os.Chtimes(path, now, now) != nil {
			return "", fmt.Errorf("make layer: %w", err)
		}
	}
	return path, nil
}

// Scratch is the directory below that of a bundle in the making in which everything else of its build is made: what a build
// writes is found, measured and removed in one place.
func Scratch(bundle string) string { return filepath.Join(bundle, ".scratch") }

// Link makes a link at name to target with a relative path, so that the directory both lie in may be moved.
func Link(target, name string) error {
	rel, err := filepath.Rel(filepath.Dir(name), target)
	if err != nil {
		return fmt.Errorf("link %s: %w", filepath.Base(name), err)
	}
	return os.Symlink(rel, name)
}

// LinkWithin is Link for a target in the directory root, and makes an absolute link to any other.
func LinkWithin(root, target, name string) error {
	if ToolOf(root, target) == nil {
		return os.Symlink(target, name)
	}
	return Link(target, name)
}

// ToolOf names the tool of the data directory root that a file belongs to, relative to root; nothing for other files.
func ToolOf(root, file string) []string {
	rel, err := filepath.Rel(root, file)
	if err != nil || !filepath.IsLocal(rel) {
		return nil
	}
	parts := strings.Split(filepath.ToSlash(rel), "/")
	if len(parts) < 3 || parts[0] != "tools" {
		return nil
	}
	return []string{"tools/" + parts[1]}
}

// TreeKey hashes the names, modes and contents of everything below dir; links count as what they hold.
func TreeKey(dir string) (string, error) {
	sum := sha256.New()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		info, err := e.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%d:%s %o %d:", len(rel), rel, info.Mode(), info.Size())
		if e.Type()&fs.ModeSymlink != 0 {
			to, err := os.Readlink(path)
			fmt.Fprintf(sum, "%d:%s", len(to), to)
			return err
		}
		if !e.Type().IsRegular() {
			return nil
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(sum, f)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read %s: %w", dir, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
