// Package tarball unpacks uploaded source archives (control-plane reference 5).
package tarball

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/slipway-dev/slipway"
)

// Limits bound what an archive may unpack to.
type Limits struct {
	Bytes   int64 // 0 = 2 GiB
	Entries int   // 0 = 100 000
	Name    int   // bytes of one name; 0 = 1024
}

func (l Limits) withDefaults() Limits {
	if l.Bytes == 0 {
		l.Bytes = 2 << 30
	}
	if l.Entries == 0 {
		l.Entries = 100_000
	}
	if l.Name == 0 {
		l.Name = 1024
	}
	return l
}

// Fetcher brings uploaded archives out of a blob store.
type Fetcher struct {
	blobs  slipway.Blob
	limits Limits
}

var _ slipway.SourceFetcher = (*Fetcher)(nil)

// New makes a Fetcher.
func New(blobs slipway.Blob, limits Limits) *Fetcher {
	return &Fetcher{blobs: blobs, limits: limits}
}

// Fetch implements slipway.SourceFetcher.
func (f *Fetcher) Fetch(ctx context.Context, job slipway.BuildJob, dir string, _ func(string)) (string, error) {
	r, err := f.blobs.Open(ctx, job.TarballDigest)
	if err != nil {
		return "", slipway.Errorf(slipway.CodeBadRequest, "the uploaded archive is no longer there: upload it again: %w", err)
	}
	defer r.Close()
	return "", Unpack(ctx, r, dir, f.limits)
}

// Unpack writes a gzip-compressed tar archive below dir. It refuses links, devices, absolute names, ".." and whatever
// exceeds the limits; CodeInvalid or CodeTooLarge with one sentence.
func Unpack(ctx context.Context, r io.Reader, dir string, limits Limits) error {
	limits = limits.withDefaults()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	defer root.Close()
	z, err := gzip.NewReader(r)
	if err != nil {
		return slipway.Errorf(slipway.CodeInvalid, "the source archive is not gzip: upload a .tar.gz: %w", err)
	}
	archive, left := tar.NewReader(z), limits.Bytes
	for n := 0; ; n++ {
		h, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return slipway.Errorf(slipway.CodeInvalid, "the source archive is damaged: %w", err)
		case ctx.Err() != nil:
			return ctx.Err()
		case n >= limits.Entries:
			return slipway.Errorf(slipway.CodeTooLarge, "the source archive has more than %d entries: leave out what is not needed", limits.Entries)
		}
		if err := check(h, limits); err != nil {
			return err
		}
		if left -= h.Size; left < 0 {
			return slipway.Errorf(slipway.CodeTooLarge, "the source archive unpacks to more than %d bytes: leave out what is not needed", limits.Bytes)
		}
		if err := entry(root, h, archive); err != nil {
			return err
		}
	}
}

func check(h *tar.Header, limits Limits) error {
	name := strings.ReplaceAll(h.Name, `\`, "/")
	switch {
	case len(name) > limits.Name:
		return slipway.Errorf(slipway.CodeInvalid, "the source archive has a name of %d bytes: %d is the limit", len(name), limits.Name)
	case strings.HasPrefix(name, "/") || strings.ContainsRune(name, 0):
		return slipway.Errorf(slipway.CodeInvalid, "the source archive has the absolute name %q: use relative ones", h.Name)
	}
	for _, part := range strings.Split(name, "/") {
		if part == ".." {
			return slipway.Errorf(slipway.CodeInvalid, "the source archive has %q, which leads out of it: remove the ..", h.Name)
		}
	}
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeDir, tar.TypeXGlobalHeader:
		return nil
	case tar.TypeSymlink, tar.TypeLink:
		return slipway.Errorf(slipway.CodeInvalid, "the source archive has the link %q: replace it by the file it points to", h.Name)
	}
	return slipway.Errorf(slipway.CodeInvalid, "the source archive has %q, which is neither a file nor a directory: leave it out", h.Name)
}

func entry(root *os.Root, h *tar.Header, r io.Reader) error {
	name := path.Clean(h.Name)
	switch {
	case h.Typeflag == tar.TypeXGlobalHeader || name == ".":
		return nil
	case h.Typeflag == tar.TypeDir:
		return wrap(root.MkdirAll(name, 0o755))
	}
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return wrap(err)
	}
	mode := os.FileMode(0o644)
	if h.Mode&0o111 != 0 {
		mode = 0o755
	}
	f, err := root.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if err != nil {
		return wrap(err)
	}
	_, err = io.Copy(f, r)
	return wrap(errors.Join(err, f.Close()))
}

func wrap(err error) error {
	if err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	return nil
}
