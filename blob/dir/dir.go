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
	"strings"
	"time"

	"github.com/slipway-dev/slipway"
)

// abandoned is how long an unfinished write may rest before it counts as interrupted; another process may be writing it.
const abandoned = time.Hour

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
	taken, _ := filepath.Glob(filepath.Join(path, ".gone-*"))
	for _, f := range taken { // interrupted before it was known whether they are needed
		name := strings.TrimPrefix(filepath.Base(f), ".gone-")
		if _, err := root.Stat(name); errors.Is(err, fs.ErrNotExist) {
			_ = root.Rename(filepath.Base(f), name)
		} else if err == nil { // the same bytes were stored anew
			_ = root.Remove(filepath.Base(f))
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
	if !slipway.ValidDigest(digest) {
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
	if !slipway.ValidDigest(digest) {
		return nil
	}
	if err := b.root.Remove(strings.TrimPrefix(digest, "sha256:")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete blob: %w", err)
	}
	return nil
}

// Touch implements slipway.Blob.
func (b *Blobs) Touch(_ context.Context, digest string) error {
	missing := slipway.Errorf(slipway.CodeNotFound, "there is no blob %q", digest)
	if !slipway.ValidDigest(digest) {
		return missing
	}
	now := time.Now()
	err := b.root.Chtimes(strings.TrimPrefix(digest, "sha256:"), now, now)
	if errors.Is(err, fs.ErrNotExist) {
		return missing
	}
	if err != nil {
		return fmt.Errorf("touch blob: %w", err)
	}
	return nil
}

// Expire implements slipway.Blob. It takes the name away before it looks when the bytes were last needed, so that whoever
// needs them meanwhile either is seen or finds nothing and stores them again.
func (b *Blobs) Expire(_ context.Context, digest string, before time.Time) (bool, error) {
	if !slipway.ValidDigest(digest) {
		return true, nil
	}
	name := strings.TrimPrefix(digest, "sha256:")
	taken := ".gone-" + name
	if info, err := b.root.Stat(name); err == nil && info.ModTime().After(before) {
		return false, nil // mostly; whoever needs it from here on is seen below
	}
	err := b.root.Rename(name, taken)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("expire blob: %w", err)
	}
	info, err := b.root.Stat(taken)
	if err == nil && info.ModTime().After(before) {
		return false, b.root.Rename(taken, name)
	}
	if err := b.root.Remove(taken); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("expire blob: %w", err)
	}
	return true, b.sync()
}

// List implements slipway.Blob.
func (b *Blobs) List(ctx context.Context, fn func(slipway.BlobInfo) error) error {
	entries, err := fs.ReadDir(b.root.FS(), ".")
	if err != nil {
		return fmt.Errorf("list blobs: %w", err)
	}
	for _, e := range entries {
		digest := "sha256:" + e.Name()
		info, err := e.Info()
		if err != nil || !slipway.ValidDigest(digest) {
			continue
		}
		if err := errors.Join(ctx.Err(), fn(slipway.BlobInfo{Digest: digest, Size: info.Size(), UsedAt: info.ModTime()})); err != nil {
			return err
		}
	}
	return nil
}
