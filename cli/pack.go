package cli

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/slipway-dev/slipway/graphconfig"
)

// maxArchive is the largest source tarball the control service takes, warnArchive where uploads get slow (control-plane
// reference 5), both in bytes of the compressed archive.
const (
	maxArchive  = 209715200
	warnArchive = 50 << 20
)

// archive is a packed directory, ready to be uploaded.
type archive struct {
	file   *os.File // positioned at its start
	size   int64    // bytes
	files  int
	config string // path of the graph configuration inside the archive, with slashes
}

func (a *archive) close() {
	_ = a.file.Close()
	_ = os.Remove(a.file.Name())
}

// findConfig returns the absolute path of the graph configuration of dir.
func findConfig(dir, given string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(abs); err != nil || !info.IsDir() {
		return "", fmt.Errorf("%s is not a directory; name the one that holds your graph configuration", dir)
	}
	names := []string{"agentgraph.json", "langgraph.json"}
	if given != "" {
		names = []string{given}
	}
	for _, name := range names {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(abs, name)
		}
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s holds no %s; create one, or name it with --config", dir, strings.Join(names, " or "))
}

// pack writes the configuration's directory and every local dependency into a gzipped tarball rooted at their common
// ancestor (control-plane reference 5, 7).
func pack(config string, p *progress) (*archive, error) {
	roots, ignores, err := packRoots(config)
	if err != nil {
		return nil, err
	}
	top := commonAncestor(roots)
	inside, err := filepath.Rel(top, config)
	if err != nil {
		return nil, err
	}
	file, err := os.CreateTemp("", "slipway-*.tar.gz")
	if err != nil {
		return nil, fmt.Errorf("cannot make a temporary file for the archive: %w", err)
	}
	a := &archive{file: file, config: filepath.ToSlash(inside)}
	if err := a.write(top, roots, ignores, p); err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}

// packRoots lists the directories an application consists of, and the names of their ignore files.
func packRoots(config string) (roots, ignores []string, err error) {
	raw, err := os.ReadFile(config)
	if err != nil {
		return nil, nil, err
	}
	c, err := graphconfig.Parse(raw)
	if err != nil {
		return nil, nil, fmt.Errorf("%s is not a valid graph configuration: %w", filepath.Base(config), err)
	}
	for _, dep := range c.Local() {
		if info, err := os.Stat(filepath.Join(filepath.Dir(config), filepath.FromSlash(dep))); err != nil || !info.IsDir() {
			return nil, nil, fmt.Errorf("dependencies of %s names %q, which is not a directory; correct it or remove it", filepath.Base(config), dep)
		}
	}
	ignores = []string{".dockerignore", ".gitignore"}
	if c.UVRoot() != "" {
		ignores = ignores[:1]
	}
	return applicationDirs(filepath.Dir(config), c), ignores, nil
}

func commonAncestor(dirs []string) string {
	top := dirs[0]
	for _, dir := range dirs[1:] {
		for top != dir && !strings.HasPrefix(dir, strings.TrimSuffix(top, "/")+"/") {
			top = filepath.Dir(top)
		}
	}
	return top
}

func (a *archive) write(top string, roots, ignores []string, p *progress) error {
	bounded := &boundedWriter{w: a.file, left: maxArchive}
	zipped := gzip.NewWriter(bounded)
	w := &packer{tar: tar.NewWriter(zipped), top: top, done: map[string]bool{}, progress: p}
	sort.Strings(roots)
	for _, root := range roots {
		if err := w.root(root, ignores); err != nil {
			return err
		}
	}
	if !w.done[filepath.FromSlash(a.config)] {
		return fmt.Errorf("%s is left out by .gitignore or .dockerignore; it must be in the archive", a.config)
	}
	if err := errors.Join(w.tar.Close(), zipped.Close()); err != nil {
		return err
	}
	a.size, a.files = bounded.written, len(w.done)
	if a.size > warnArchive {
		p.warn("the archive has %s; leave out what the graph does not need with .dockerignore", size(a.size))
	}
	_, err := a.file.Seek(0, io.SeekStart)
	return err
}

// packer adds files to a tarball.
type packer struct {
	tar      *tar.Writer
	top      string
	done     map[string]bool // paths below top already written
	progress *progress
}

// root adds one directory under its own ignore rules.
func (w *packer) root(root string, ignores []string) error {
	rules := graphconfig.ReadIgnore(os.DirFS(root), ignores...)
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("cannot read %s: %w", path, err)
		}
		rel, _ := filepath.Rel(root, path)
		rel = filepath.ToSlash(rel)
		switch {
		case rel == ".":
			return nil
		case entry.IsDir() && rules.Prune(rel):
			return filepath.SkipDir
		case entry.IsDir() || rules.Match(rel, false):
			return nil
		}
		return w.file(path)
	})
}

// file adds one regular file; links are followed if they lead to a regular file, and anything else is left out.
func (w *packer) file(path string) error {
	rel, err := filepath.Rel(w.top, path)
	if err != nil || w.done[rel] {
		return err
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		w.progress.warn("%s is not a regular file and is left out", rel)
		return nil
	}
	if filepath.Base(path) == ".env" {
		w.progress.warn("%s goes into the archive; list it in .gitignore if it should not", rel)
	}
	w.done[rel] = true
	header := &tar.Header{
		Name: filepath.ToSlash(rel), Mode: int64(info.Mode().Perm()), Size: info.Size(), ModTime: info.ModTime(), Typeflag: tar.TypeReg,
	}
	if err := w.tar.WriteHeader(header); err != nil {
		return err
	}
	return w.content(path, info.Size())
}

func (w *packer) content(path string, size int64) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", path, err)
	}
	defer f.Close()
	if _, err := io.CopyN(w.tar, f, size); err != nil {
		return fmt.Errorf("%s changed while it was read (%w); try again", path, err)
	}
	return nil
}

// boundedWriter refuses to grow beyond the archive's bound.
type boundedWriter struct {
	w             io.Writer
	left, written int64
}

func (b *boundedWriter) Write(p []byte) (int, error) {
	if int64(len(p)) > b.left {
		return 0, fmt.Errorf("the archive is larger than %s; leave out what the graph does not need with .dockerignore", size(maxArchive))
	}
	n, err := b.w.Write(p)
	b.left -= int64(n)
	b.written += int64(n)
	return n, err
}

func size(bytes int64) string {
	switch {
	case bytes >= 1<<20:
		return fmt.Sprintf("%.1f MB", float64(bytes)/(1<<20))
	case bytes >= 1<<10:
		return fmt.Sprintf("%.1f kB", float64(bytes)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", bytes)
}
