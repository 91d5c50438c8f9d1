// Package tarball unpacks uploaded source archives (control-plane reference 5).
package tarball

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"

	"github.com/slipway-dev/slipway"
)

// Limits bound what an archive may unpack to.
type Limits struct {
	Bytes   int64 // 0 = 2 GiB
	Entries int   // 0 = 100 000
	Name    int   // bytes of one name; 0 = 1024
	Ratio   int64 // how many times its own size it may unpack to, from 64 MiB on; 0 = 200
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
	if l.Ratio == 0 {
		l.Ratio = 200
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
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	defer root.Close()
	packed := &counter{r: r}
	z, err := gzip.NewReader(packed)
	if err != nil {
		return slipway.Errorf(slipway.CodeInvalid, "the source archive is not gzip: upload a .tar.gz: %w", err)
	}
	limits = limits.withDefaults()
	u := unpacking{ctx: ctx, root: root, limits: limits, packed: packed, left: limits.Bytes, made: map[string]bool{".": true}, names: map[string]string{}}
	for archive := tar.NewReader(reader{&u, z}); ; {
		h, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case slipway.ErrorCode(err) == slipway.CodeTooLarge:
			return err
		case err != nil:
			return slipway.Errorf(slipway.CodeInvalid, "the source archive is damaged: %w", err)
		}
		if err := u.entry(h, archive); err != nil {
			return err
		}
	}
}

// unpacking is an archive on its way.
type unpacking struct {
	ctx     context.Context
	root    *os.Root
	limits  Limits
	packed  *counter
	read    int64             // bytes that came out of the compression
	left    int64             // bytes that files may still have
	entries int               // that came, with the directories that they needed
	made    map[string]bool   // directories
	names   map[string]string // as they came, by what is the same on other systems
}

// entry writes one entry. A later entry replaces an earlier file of the same name, as tar does it.
func (u *unpacking) entry(h *tar.Header, r io.Reader) error {
	if err := check(h, u.limits); err != nil {
		return err
	}
	if u.left -= h.Size; u.left < 0 {
		return slipway.Errorf(slipway.CodeTooLarge, "the source archive unpacks to more than %d MiB: leave out what is not needed", u.limits.Bytes>>20)
	}
	if err := u.count(); err != nil {
		return err
	}
	name := path.Clean(h.Name)
	if err := u.distinct(name); err != nil {
		return err
	}
	switch {
	case h.Typeflag == tar.TypeXGlobalHeader:
		return nil
	case h.Typeflag == tar.TypeDir || name == ".":
		return u.directory(h.Name, name)
	}
	if err := u.directory(h.Name, path.Dir(name)); err != nil {
		return err
	}
	return u.file(h, name, r)
}

func (u *unpacking) count() error {
	if u.entries++; u.entries > u.limits.Entries {
		return slipway.Errorf(slipway.CodeTooLarge, "the source archive has more than %d entries: leave out what is not needed", u.limits.Entries)
	}
	return nil
}

// directory makes a directory with its parents, each counting as an entry.
func (u *unpacking) directory(entry, name string) error {
	if u.made[name] {
		return nil
	}
	if err := u.directory(entry, path.Dir(name)); err != nil {
		return err
	}
	if err := u.count(); err != nil {
		return err
	}
	if err := u.root.Mkdir(name, 0o755); err != nil {
		return refused(entry, err)
	}
	u.made[name] = true
	return nil
}

func (u *unpacking) file(h *tar.Header, name string, r io.Reader) error {
	mode := os.FileMode(0o644)
	if h.Mode&0o111 != 0 {
		mode = 0o755
	}
	if info, err := u.root.Lstat(name); err == nil && info.Mode().IsRegular() {
		if err := u.root.Remove(name); err != nil {
			return refused(h.Name, err)
		}
	}
	f, err := u.root.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_EXCL, mode)
	if err != nil {
		return refused(h.Name, err)
	}
	_, err = io.Copy(f, r)
	if err = errors.Join(err, f.Close()); u.ctx.Err() != nil {
		return context.Cause(u.ctx)
	}
	if slipway.ErrorCode(err) == slipway.CodeTooLarge {
		return err
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, gzip.ErrChecksum) {
		return slipway.Errorf(slipway.CodeInvalid, "the source archive ends within %q: upload it again: %w", h.Name, err)
	}
	return refused(h.Name, err)
}

// refused says why an entry cannot be written.
func refused(name string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return slipway.Errorf(slipway.CodeUnavailable, "the disk is full: free some and deploy again: %w", err)
	case errors.Is(err, fs.ErrExist):
		return slipway.Errorf(slipway.CodeInvalid, "the source archive has %q twice, as a file and as a directory: leave one out", name)
	}
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return slipway.Errorf(slipway.CodeInvalid, "the source archive has %q, which cannot be written: %w", name, err)
}

// counter counts the bytes of the archive itself.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// slack is how many bytes may come out of the compression, whatever went in.
const slack = 64 << 20

// reader is what comes out of the compression. It ends with the context, and where so much comes out of so little that it
// can only be meant to fill the disk: also what no entry accounts for is counted.
type reader struct {
	u *unpacking
	r io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if err := r.u.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := r.r.Read(p)
	if r.u.read += int64(n); r.u.read > slack && r.u.read/r.u.limits.Ratio > r.u.packed.n {
		return n, slipway.Errorf(slipway.CodeTooLarge, "the source archive unpacks to more than %d times its size: leave out what is not needed", r.u.limits.Ratio)
	}
	return n, err
}
