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
)

// Key hashes everything that determines a layer.
func Key(parts ...string) string {
	sum := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(sum, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Layer returns root/key, letting fill make it in a temporary directory when it is not there yet. It is durable once it has
// its name. Two builds that make the same layer at once both succeed.
func Layer(root, key string, fill func(dir string) error) (string, error) {
	path := filepath.Join(root, key)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return "", fmt.Errorf("make layer: %w", err)
	}
	dir, err := os.MkdirTemp(root, ".tmp-*")
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
		if _, there := os.Stat(path); there != nil {
			return "", fmt.Errorf("make layer: %w", err)
		}
	}
	return path, nil
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
