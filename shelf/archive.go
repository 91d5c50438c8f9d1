package shelf

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/slipway-dev/slipway"
)

// pack is what an archive of a thing on the shelf is.
type pack struct {
	digest string
	size   int64
}

// Packed returns digest and size of the archive of what lies at a path of the shelf. The same content makes the same
// archive.
func (s *Shelf) Packed(ctx context.Context, at string) (digest string, size int64, err error) {
	s.mu.Lock()
	known, ok := s.packs[at]
	s.mu.Unlock()
	if ok {
		return known.digest, known.size, nil
	}
	sum, counted := sha256.New(), &counter{}
	if err := s.Pack(ctx, at, io.MultiWriter(sum, counted)); err != nil {
		return "", 0, err
	}
	known = pack{"sha256:" + hex.EncodeToString(sum.Sum(nil)), counted.n}
	s.mu.Lock()
	s.packs[at] = known
	s.mu.Unlock()
	return known.digest, known.size, nil
}

type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

// Pack writes the archive of what lies at a path of the shelf.
func (s *Shelf) Pack(ctx context.Context, at string, w io.Writer) error {
	compressed, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return fmt.Errorf("pack %s: %w", at, err)
	}
	archive, root := tar.NewWriter(compressed), filepath.Join(s.root, at)
	err = filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || name == root {
			return err
		}
		return add(archive, root, name, e)
	})
	if err := errors.Join(err, archive.Close(), compressed.Close()); err != nil {
		return fmt.Errorf("pack %s: %w", at, err)
	}
	return nil
}

// add writes one entry. The times of files are kept, since Python's compiled files hold those of their sources; owners are
// not.
func add(archive *tar.Writer, root, name string, e fs.DirEntry) error {
	info, err := e.Info()
	if err != nil {
		return err
	}
	link := ""
	if e.Type()&fs.ModeSymlink != 0 {
		if link, err = os.Readlink(name); err != nil {
			return err
		}
	}
	rel, _ := filepath.Rel(root, name)
	header := &tar.Header{Name: filepath.ToSlash(rel), Linkname: link, Mode: int64(info.Mode().Perm()), Format: tar.FormatPAX}
	switch {
	case e.IsDir():
		header.Typeflag, header.Name = tar.TypeDir, header.Name+"/"
	case link != "":
		header.Typeflag = tar.TypeSymlink
	case e.Type().IsRegular():
		header.Typeflag, header.Size, header.ModTime = tar.TypeReg, info.Size(), info.ModTime().Truncate(1e9)
	default:
		return fmt.Errorf("%s is neither file, directory nor link", rel)
	}
	if err := archive.WriteHeader(header); err != nil || header.Typeflag != tar.TypeReg {
		return err
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(archive, f)
	return err
}

// Unpack makes what lies at a path of the shelf from its archive, which must have the digest, unless it is there. It is
// durable and whole once it has its name. CodeInvalid: it is not that archive, or unpacks to more than it may.
func (s *Shelf) Unpack(ctx context.Context, at, digest string, r io.Reader) error {
	if !slipway.ValidPart(at) {
		return slipway.Errorf(slipway.CodeInvalid, "%q is no place on the shelf", at)
	}
	name := filepath.Join(s.root, at)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return fmt.Errorf("unpack %s: %w", at, err)
	}
	dir, err := os.MkdirTemp(filepath.Dir(name), ".tmp-*")
	if err != nil {
		return fmt.Errorf("unpack %s: %w", at, err)
	}
	defer os.RemoveAll(dir)
	if err := errors.Join(os.Chmod(dir, 0o755), s.extract(ctx, dir, digest, r)); err != nil {
		return fmt.Errorf("unpack %s: %w", at, err)
	}
	if path.Dir(at) == "bundles" {
		if err := adopt(dir); err != nil {
			return err
		}
	}
	if err := os.Rename(dir, name); err != nil {
		if _, there := os.Stat(name); there != nil {
			return fmt.Errorf("unpack %s: %w", at, err)
		}
	}
	return syncFile(filepath.Dir(name))
}

// extract unpacks into dir and nowhere else, whatever the archive says.
func (s *Shelf) extract(ctx context.Context, dir, digest string, r io.Reader) error {
	sum := sha256.New()
	source := io.TeeReader(r, sum)
	compressed, err := gzip.NewReader(source)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	archive := tar.NewReader(compressed)
	for entries, bytes := int64(1), int64(0); ; entries++ {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			if bytes += header.Size; bytes > s.MaxBytes || entries > s.MaxEntries {
				return slipway.Errorf(slipway.CodeInvalid, "the archive unpacks to more than %d bytes or %d entries, which is the limit", s.MaxBytes, s.MaxEntries)
			}
			err = errors.Join(ctx.Err(), place(root, header, archive))
		}
		if err != nil {
			return err
		}
	}
	if _, err := io.Copy(io.Discard, source); err != nil {
		return err
	}
	if got := "sha256:" + hex.EncodeToString(sum.Sum(nil)); got != digest {
		return slipway.Errorf(slipway.CodeInvalid, "the archive is %s, not %s: it was altered on its way", got, digest)
	}
	return nil
}

func place(root *os.Root, header *tar.Header, content io.Reader) error {
	name := strings.TrimSuffix(header.Name, "/")
	switch header.Typeflag {
	case tar.TypeDir:
		return root.Mkdir(name, fs.FileMode(header.Mode).Perm()|0o700)
	case tar.TypeSymlink:
		return root.Symlink(header.Linkname, name)
	case tar.TypeReg:
		f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fs.FileMode(header.Mode).Perm()|0o400)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, content)
		return errors.Join(err, f.Sync(), f.Close(), root.Chtimes(name, header.ModTime, header.ModTime))
	}
	return fmt.Errorf("%s is neither file, directory nor link", name)
}

func syncFile(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
