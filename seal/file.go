package seal

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// OpenFile reads the master key from a file, or makes the file, mode 0600, with a fresh key. Whoever loses the file loses
// every secret; a damaged one is an error, never replaced.
func OpenFile(path string) (*Key, error) {
	master, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if master, err = create(path); errors.Is(err, fs.ErrExist) {
			master, err = os.ReadFile(path)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("master key: %w", err)
	}
	k, err := New(master)
	if err != nil {
		return nil, fmt.Errorf("master key %s: %w; restore the file from a backup", path, err)
	}
	return k, nil
}

// create writes the key beside its place and links it there, so that nobody ever sees half a key or replaces one.
func create(path string) ([]byte, error) {
	master := make([]byte, KeySize)
	if _, err := rand.Read(master); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".master-*")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	if _, err := f.Write(master); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return nil, err
	}
	if err := os.Link(f.Name(), path); err != nil {
		return nil, err
	}
	return master, syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
