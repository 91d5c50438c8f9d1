// Package shelf keeps what builds leave in a data directory: bundles, what they share (layers, tools) and the caches of
// installers. It lists and removes them, and turns them into archives and back, for machines that run what others built.
//
// Whoever uses something sets its modification time first and makes it anew where that fails; whoever removes something takes
// its name away before looking at the time again, and gives the name back if it changed. So neither waits for the other, and
// a crash at any moment loses nothing that is needed: what has lost its name gets it back when the shelf is opened.
package shelf

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/slipway-dev/slipway"
)

// taken begins the names of what is about to be removed.
const taken = ".gone-"

// rooms are the directories of things on the shelf.
func rooms() []string { return []string{"bundles", "layers", "tools", "cache"} }

// Shelf is the shelf of one data directory. It is safe for concurrent use, also with other processes.
type Shelf struct {
	root string

	mu    sync.Mutex
	sizes map[string]int64 // of what never changes, by path
	packs map[string]pack  // what archives of it are, by path
}

var _ slipway.Shelf = (*Shelf)(nil)

// Open opens the shelf of the data directory root and finishes what a crash interrupted.
func Open(root string) (*Shelf, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("open shelf: %w", err)
	}
	s := &Shelf{root: root, sizes: map[string]int64{}, packs: map[string]pack{}}
	for _, room := range rooms() {
		left, _ := filepath.Glob(filepath.Join(root, room, taken+"*"))
		for _, from := range left {
			to := filepath.Join(root, room, strings.TrimPrefix(filepath.Base(from), taken))
			if os.Rename(from, to) != nil { // it was made anew meanwhile, or was being removed
				_ = os.RemoveAll(from)
			}
		}
	}
	return s, nil
}

// List returns everything on the shelf.
func (s *Shelf) List(ctx context.Context) ([]slipway.Shelved, error) {
	var all []slipway.Shelved
	for _, room := range rooms() {
		entries, err := os.ReadDir(filepath.Join(s.root, room))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list shelf: %w", err)
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), ".") || !e.IsDir() {
				continue
			}
			item, err := s.item(ctx, room, e)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("list shelf: %w", err)
			}
			all = append(all, item)
		}
	}
	return all, nil
}

func (s *Shelf) item(ctx context.Context, room string, e fs.DirEntry) (slipway.Shelved, error) {
	item := slipway.Shelved{Path: path.Join(room, e.Name()), Kind: slipway.ShelfKind(room)}
	info, err := e.Info()
	if err != nil {
		return item, err
	}
	item.UsedAt = info.ModTime()
	if item.Size, err = s.size(ctx, item); err != nil || room != "bundles" {
		return item, err
	}
	bundle, err := readBundle(filepath.Join(s.root, item.Path))
	if err != nil {
		return item, nil // not one of ours, or broken: nobody can run it
	}
	item.Needs, item.NeedsUnknown = bundle.Shared, bundle.Shared == nil
	return item, nil
}

// size measures; what is not a cache never changes and is measured once.
func (s *Shelf) size(ctx context.Context, item slipway.Shelved) (int64, error) {
	s.mu.Lock()
	known, ok := s.sizes[item.Path]
	s.mu.Unlock()
	if ok {
		return known, nil
	}
	size, err := Size(ctx, filepath.Join(s.root, item.Path))
	if err == nil && item.Kind != slipway.ShelfCache {
		s.mu.Lock()
		s.sizes[item.Path] = size
		s.mu.Unlock()
	}
	return size, err
}

// Size adds up the disk that everything below dir takes; a file with several names counts for its share.
func Size(ctx context.Context, dir string) (int64, error) {
	var sum int64
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return ctx.Err()
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && !e.IsDir() && st.Nlink > 1 {
			sum += st.Blocks * 512 / int64(st.Nlink)
		} else if ok {
			sum += st.Blocks * 512
		}
		return ctx.Err()
	})
	return sum, err
}

// Has says whether something lies at a path, and counts as a use of it.
func (s *Shelf) Has(at string) bool {
	now := time.Now()
	return os.Chtimes(filepath.Join(s.root, at), now, now) == nil
}

// Remove removes a thing unless it was used after before, and says whether it is gone.
func (s *Shelf) Remove(_ context.Context, at string, before time.Time) (bool, error) {
	if !filepath.IsLocal(at) || path.Dir(path.Dir(at)) != "." {
		return false, fmt.Errorf("remove %q: it is nothing on the shelf", at)
	}
	name := filepath.Join(s.root, at)
	away := filepath.Join(filepath.Dir(name), taken+filepath.Base(name))
	if err := os.RemoveAll(away); err != nil {
		return false, fmt.Errorf("remove %s: %w", at, err)
	}
	err := os.Rename(name, away)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("remove %s: %w", at, err)
	}
	info, err := os.Stat(away)
	if err == nil && info.ModTime().After(before) && os.Rename(away, name) == nil {
		return false, nil
	}
	s.mu.Lock()
	delete(s.sizes, at)
	delete(s.packs, at)
	s.mu.Unlock()
	if err := removeAll(away); err != nil {
		return false, fmt.Errorf("remove %s: %w", at, err)
	}
	return true, nil
}

// removeAll removes also what was made read-only, as package managers do with their stores.
func removeAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			return os.Chmod(name, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}
