// Package shelf keeps what builds leave in a data directory: bundles, what they share (layers, tools) and the caches of
// installers. It lists and removes them, and turns them into archives and back, for machines that run what others built.
//
// Whoever uses something sets its modification time first and makes it anew where that fails; whoever removes something takes
// its name away before looking at the time again, and gives the name back if it changed. So neither waits for the other. Before
// the first byte of a thing goes, it gets the name of one that is doomed. A crash at any moment loses nothing that is needed:
// when the shelf is opened, what has only lost its name gets it back, and what is doomed goes.
package shelf

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/slipway-dev/slipway"
)

const (
	taken  = ".gone-" // begins the names of what may be removed; it is whole
	doomed = ".dead-" // begins the names of what is being removed; it may be half gone
	making = ".tmp-"  // begins the names of what is being made
)

// The steps of a removal, in order.
const (
	StepTaken    = "taken"    // the thing has lost its name; it is whole, and gets it back if it was used meanwhile
	StepDoomed   = "doomed"   // it is given up
	StepRemoving = "removing" // some of it is gone
)

// rooms are the directories of things on the shelf.
func rooms() []slipway.ShelfKind {
	return []slipway.ShelfKind{slipway.ShelfBundle, slipway.ShelfLayer, slipway.ShelfTool, slipway.ShelfCache}
}

// Shelf is the shelf of one data directory. It is safe for concurrent use, also with other processes.
type Shelf struct {
	// Step, if set before the first use, is called at each step of a removal. Tests of recovery end the process there.
	Step func(step string)
	// MaxBytes and MaxEntries bound what one archive may unpack to.
	MaxBytes, MaxEntries int64

	root string

	mu    sync.Mutex
	sizes map[string]int64 // of what never changes, by path
	packs map[string]pack  // what archives of it are, by path
}

var _ slipway.Shelf = (*Shelf)(nil)

// Open opens the shelf of the data directory root and finishes what a crash interrupted. Nobody may build or fetch artifacts
// there meanwhile.
func Open(root string) (*Shelf, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("open shelf: %w", err)
	}
	s := &Shelf{MaxBytes: 64 << 30, MaxEntries: 4 << 20, root: root, sizes: map[string]int64{}, packs: map[string]pack{}}
	for _, room := range rooms() {
		recoverRoom(filepath.Join(root, string(room)))
	}
	return s, nil
}

// recoverRoom gives names back and removes what is doomed or half made. What cannot be removed now stays for the next time:
// it has no name that anybody looks for.
func recoverRoom(room string) {
	for _, mark := range []string{taken, doomed, making} {
		left, _ := filepath.Glob(filepath.Join(room, mark+"*"))
		for _, from := range left {
			to := filepath.Join(room, strings.TrimPrefix(filepath.Base(from), mark))
			if mark != taken || os.Rename(from, to) != nil { // or it was made anew meanwhile
				_ = removeAll(from)
			}
		}
	}
}

// List returns everything on the shelf of the given kinds, of all if none is given. What has a name that nothing of ours has
// is not on it.
func (s *Shelf) List(ctx context.Context, kinds ...slipway.ShelfKind) ([]slipway.Shelved, error) {
	var all []slipway.Shelved
	for _, room := range rooms() {
		if len(kinds) > 0 && !slices.Contains(kinds, room) {
			continue
		}
		entries, err := os.ReadDir(filepath.Join(s.root, string(room)))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list shelf: %w", err)
		}
		for _, e := range entries {
			if !e.IsDir() || !ours(path.Join(string(room), e.Name())) {
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

// ours says whether something at a path of the shelf may be what a build left.
func ours(at string) bool {
	switch room, name, _ := strings.Cut(at, "/"); slipway.ShelfKind(room) {
	case slipway.ShelfCache:
		return name != "" && !strings.HasPrefix(name, ".") && path.Base(at) == name
	case slipway.ShelfLayer:
		return slipway.ValidPart(at) && (strings.HasPrefix(name, "node-") || strings.HasPrefix(name, "python-"))
	default:
		return slipway.ValidPart(at)
	}
}

func (s *Shelf) item(ctx context.Context, room slipway.ShelfKind, e fs.DirEntry) (slipway.Shelved, error) {
	item := slipway.Shelved{Path: path.Join(string(room), e.Name()), Kind: room}
	info, err := e.Info()
	if err != nil {
		return item, err
	}
	item.UsedAt = info.ModTime()
	if item.Size, err = s.size(ctx, item); err != nil || room != slipway.ShelfBundle {
		return item, err
	}
	bundle, err := readBundle(filepath.Join(s.root, item.Path))
	item.Needs, item.NeedsUnknown = bundle.Shared, err != nil || bundle.Shared == nil
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

// Size adds up the disk that everything below dir takes; a file with several names counts for its share, and what may not be
// looked into for nothing.
func Size(ctx context.Context, dir string) (int64, error) {
	var sum int64
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
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
	if !ours(at) {
		return false, fmt.Errorf("remove %q: it is nothing on the shelf", at)
	}
	name := filepath.Join(s.root, at)
	away, dead := beside(name, taken), beside(name, doomed)
	if err := errors.Join(removeAll(away), removeAll(dead)); err != nil { // of an earlier one that went wrong
		return false, fmt.Errorf("remove %s: %w", at, err)
	}
	if info, err := os.Stat(name); err == nil && info.ModTime().After(before) {
		return false, nil // mostly; whoever uses it from here on is seen below
	}
	err := os.Rename(name, away)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("remove %s: %w", at, err)
	}
	s.step(StepTaken)
	info, err := os.Stat(away)
	if err == nil && info.ModTime().After(before) && os.Rename(away, name) == nil {
		return false, nil
	}
	s.mu.Lock()
	delete(s.sizes, at)
	delete(s.packs, at)
	s.mu.Unlock()
	// What is doomed is so after a power loss too, before any of it goes.
	if err := errors.Join(os.Rename(away, dead), syncFile(filepath.Dir(name))); err != nil {
		return false, fmt.Errorf("remove %s: %w", at, err)
	}
	s.step(StepDoomed)
	if err := s.raze(dead); err != nil {
		return false, fmt.Errorf("remove %s: %w", at, err)
	}
	return true, nil
}

func beside(name, mark string) string {
	return filepath.Join(filepath.Dir(name), mark+filepath.Base(name))
}

func (s *Shelf) step(step string) {
	if s.Step != nil {
		s.Step(step)
	}
}

// raze is removeAll, a part after the other.
func (s *Shelf) raze(dir string) error {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if err := removeAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
		s.step(StepRemoving)
	}
	return removeAll(dir)
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
