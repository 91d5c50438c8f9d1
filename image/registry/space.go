package registry

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
)

// fileCost is what every file counts beyond its size, so that a flood of small ones comes to an end.
const fileCost = 4096

func cost(size int64) int64 { return size + fileCost }

// space is the directory of one tenant.
type space struct {
	dir   string
	limit int64 // bytes, of all files together

	used atomic.Int64 // bytes of all files, those being written included

	mu   sync.Mutex
	held map[string]bool // uploads that a request works on
}

// openSpace makes the directory of a tenant if it is missing and counts what lies there. Files that a crash left half
// written are removed.
func openSpace(dir string, cfg Config) (*space, error) {
	s := &space{dir: dir, limit: cfg.MaxTenant, held: map[string]bool{}}
	if err := os.RemoveAll(s.path("tmp")); err != nil {
		return nil, fmt.Errorf("open registry: %w", err)
	}
	for _, part := range []string{"blobs", "uploads", "repositories", "tmp"} {
		if err := os.MkdirAll(s.path(part), 0o700); err != nil {
			return nil, fmt.Errorf("open registry: %w", err)
		}
	}
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			s.used.Add(cost(info.Size()))
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("count registry: %w", err)
	}
	return s, nil
}

func (s *space) path(parts ...string) string {
	return filepath.Join(append([]string{s.dir}, parts...)...)
}

func (s *space) blob(digest string) string { return s.path("blobs", digest[len("sha256:"):]) }

func (s *space) uploadFile(id string) string { return s.path("uploads", id) }

func (s *space) manifest(name, digest string) string {
	return s.path("repositories", directory(name), "manifests", digest[len("sha256:"):])
}

func (s *space) tag(name, tag string) string {
	return s.path("repositories", directory(name), "tags", tag)
}

// reserve counts n bytes about to be written, or refuses them.
func (s *space) reserve(n int64) error {
	if s.used.Add(n) > s.limit {
		s.used.Add(-n)
		return refusal{http.StatusForbidden, denied, fmt.Sprintf("the tenant's images take all of the %d bytes they may; ask the operator for more", s.limit)}
	}
	return nil
}

func (s *space) release(n int64) { s.used.Add(-n) }

// hold gives an upload to one request at a time.
func (s *space) hold(id string) (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[id] {
		return nil, refusal{http.StatusConflict, uploadBad, "another request writes to this upload; let it end first"}
	}
	s.held[id] = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.held, id)
	}, nil
}

// write puts a small file in place, whole and durable, or not at all.
func (s *space) write(path string, content []byte) error {
	if err := s.reserve(cost(int64(len(content)))); err != nil {
		return err
	}
	old, err := os.Stat(path)
	replaced := err == nil
	if err := s.replace(path, content); err != nil {
		s.release(cost(int64(len(content))))
		return err
	}
	if replaced {
		s.release(cost(old.Size()))
	}
	return nil
}

func (s *space) replace(path string, content []byte) error {
	f, err := os.CreateTemp(s.path("tmp"), "*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = s.place(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // best effort: the next start removes what is left
	}
	return err
}

// place moves a synced file to where it belongs and makes that durable.
func (s *space) place(from, to string) error {
	dir := filepath.Dir(to)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	for ; len(dir) >= len(s.dir); dir = filepath.Dir(dir) {
		if err := syncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
