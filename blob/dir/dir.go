// Package dir keeps blobs as files of one directory.
package dir

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/slipway-dev/slipway"
)

// abandoned is how long an unfinished write may rest before it counts as interrupted; another process may be writing it.
const abandoned = time.Hour

var digestForm = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// Blobs implements slipway.Blob in a directory; several processes may share it.
type Blobs struct {
	path string
	root *os.Root
}

var _ slipway.Blob = (*Blobs)(nil)

// Open makes the directory where it is missing and removes what interrupted writes left.
func Open(path string) (*Blobs, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("open blobs: %w", err)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("open blobs: %w", err)
	}
	left, _ := filepath.Glob(filepath.Join(path, ".put-*"))
	for _, f := range left {
		if info, err := os.Stat(f); err == nil && time.Since(info.ModTime()) > abandoned {
			_ = os.Remove(f)
		}
	}
	return &Blobs{path: path, root: root}, nil
}

// Close releases the directory.
func (b *Blobs) Close() error { return b.root.Close() }

// Put implements slipway.Blob: the bytes and their name are synced before it returns.
func (b *Blobs) Put(ctx context.Context, r io.Reader, limit int64) (string, int64, error) {
	f, err := os.CreateTemp(b.path, ".put-*")
	if err != nil {
		return "", 0, fmt.Errorf("put blob: %w", err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, sum), io.LimitReader(reader{ctx, r}, limit+1))
	switch {
	case err != nil:
		return "", 0, fmt.Errorf("put blob: %w", err)
	case n > limit:
		return "", 0, slipway.Errorf(slipway.CodeTooLarge, "more than %d bytes were sent: the limit is %d", limit, limit)
	}
	name := hex.EncodeToString(sum.Sum(nil))
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return "", 0, fmt.Errorf("put blob: %w", err)
	}
	if err := os.Rename(f.Name(), filepath.Join(b.path, name)); err != nil {
		return "", 0, fmt.Errorf("put blob: %w", err)
	}
	return "sha256:" + name, n, b.sync()
}

func (b *Blobs) sync() error {
	d, err := os.Open(b.path)
	if err != nil {
		return fmt.Errorf("put blob: %w", err)
	}
	return errors.Join(d.Sync(), d.Close())
}

type reader struct {
	ctx context.Context
	r   io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

// Open implements slipway.Blob.
func (b *Blobs) Open(_ context.Context, digest string) (io.ReadCloser, error) {
	missing := slipway.Errorf(slipway.CodeNotFound, "there is no blob %q", digest)
	if !digestForm.MatchString(digest) {
		return nil, missing
	}
	f, err := b.root.Open(strings.TrimPrefix(digest, "sha256:"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missing
	}
	if err != nil {
		return nil, fmt.Errorf("open blob: %w", err)
	}
	return f, nil
}

// Delete implements slipway.Blob.
func (b *Blobs) Delete(_ context.Context, digest string) error {
	if !digestForm.MatchString(digest) {
		return nil
	}
	if err := b.root.Remove(strings.TrimPrefix(digest, "sha256:")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete blob: %w", err)
	}
	return nil
}

// List implements slipway.Blob.
func (b *Blobs) List(ctx context.Context, fn func(digest string, size int64) error) error {
	entries, err := fs.ReadDir(b.root.FS(), ".")
	if err != nil {
		return fmt.Errorf("list blobs: %w", err)
	}
	for _, e := range entries {
		digest := "sha256:" + e.Name()
		info, err := e.Info()
		if err != nil || !digestForm.MatchString(digest) {
			continue
		}
		if err := errors.Join(ctx.Err(), fn(digest, info.Size())); err != nil {
			return err
		}
	}
	return nil
}
