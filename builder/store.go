package builder

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/slipway-dev/slipway"
)

// scratch is where toolchains make, inside the bundle being made, what is not part of it.
const scratch = ".scratch"

// finish writes bundle.json and moves the bundle to its name, unless the same bundle is there already. Once it returns, the
// bundle survives a power loss.
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
	target, now := slipway.BundlePath(bundles, digest), time.Now()
	if os.Chtimes(target, now, now) == nil { // also tells whoever cleans up that it is needed
		return digest, nil
	}
	if err := os.RemoveAll(filepath.Join(tmp, scratch)); err != nil {
		return "", fmt.Errorf("store bundle: %w", err)
	}
	if err := syncTree(tmp); err != nil {
		return "", fmt.Errorf("store bundle: %w", err)
	}
	if err := os.Rename(tmp, target); err != nil {
		if os.Chtimes(target, now, now) != nil {
			return "", fmt.Errorf("store bundle: %w", err)
		}
	}
	if err := syncFile(bundles); err != nil {
		return "", fmt.Errorf("store bundle: %w", err)
	}
	return digest, nil
}

// syncTree makes the files and directories below dir durable; what links lead to is durable already.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() && !e.Type().IsRegular() {
			return err
		}
		return syncFile(name)
	})
}

func syncFile(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// hashTree hashes names, modes and contents of a source, and refuses what leads out of it.
func hashTree(dir string) (string, error) {
	sum := sha256.New()
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", fmt.Errorf("read source: %w", err)
	}
	err = filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(dir, name)
		info, err := e.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%d:%s %o %d:", len(rel), rel, info.Mode(), info.Size())
		switch {
		case e.Type()&fs.ModeSymlink != 0:
			to, err := filepath.EvalSymlinks(name)
			if err != nil || to != dir && !strings.HasPrefix(to, dir+string(filepath.Separator)) {
				return slipway.Errorf(slipway.CodeInvalid, "the link %q of the source leads out of it or nowhere: remove it", rel)
			}
			fmt.Fprint(sum, to[len(dir):])
			return nil
		case !e.Type().IsRegular():
			return slipway.Errorf(slipway.CodeInvalid, "%q of the source is neither a file nor a directory: remove it", rel)
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
