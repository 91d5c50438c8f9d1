package command

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
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

// Layer returns root/key, letting fill make it in a temporary directory when it is not there yet. Two builds that make the
// same layer at once both succeed.
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
	if err := os.Rename(dir, path); err != nil {
		if _, there := os.Stat(path); there != nil {
			return "", fmt.Errorf("make layer: %w", err)
		}
	}
	return path, nil
}
