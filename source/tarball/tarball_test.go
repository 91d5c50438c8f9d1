package tarball_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/source/tarball"
)

// archive makes a gzip tar of entries; each file is filled with its Size in zeros.
func archive(t *testing.T, entries ...tar.Header) *bytes.Buffer {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for _, h := range entries {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(w, zeros{}, h.Size); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return &out
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func file(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644} }

func TestUnpackRefusesHostileArchives(t *testing.T) {
	t.Parallel()
	sized := func(name string, size int64) tar.Header {
		return tar.Header{Name: name, Typeflag: tar.TypeReg, Size: size}
	}
	many := make([]tar.Header, 101)
	for i := range many {
		many[i] = file(fmt.Sprintf("f%d", i))
	}
	deep := make([]tar.Header, 3)
	for i := range deep {
		deep[i] = file(fmt.Sprintf("%d%s/x", i, strings.Repeat("/d", 50)))
	}
	for name, c := range map[string]struct {
		entries []tar.Header
		code    slipway.Code
		want    string
	}{
		"parent":               {[]tar.Header{file("../x")}, slipway.CodeInvalid, "../x"},
		"parent inside":        {[]tar.Header{file("a/../../x")}, slipway.CodeInvalid, "a/../../x"},
		"parent at the end":    {[]tar.Header{{Name: "a/..", Typeflag: tar.TypeDir}}, slipway.CodeInvalid, "a/.."},
		"windows parent":       {[]tar.Header{file(`..\x`)}, slipway.CodeInvalid, "leads out"},
		"absolute":             {[]tar.Header{file("/etc/x")}, slipway.CodeInvalid, "absolute"},
		"windows absolute":     {[]tar.Header{file(`\x`)}, slipway.CodeInvalid, "absolute"},
		"symlink":              {[]tar.Header{{Name: "x", Linkname: "y", Typeflag: tar.TypeSymlink}}, slipway.CodeInvalid, "link"},
		"through a symlink":    {[]tar.Header{{Name: "x", Linkname: "/tmp", Typeflag: tar.TypeSymlink}, file("x/y")}, slipway.CodeInvalid, "link"},
		"hardlink":             {[]tar.Header{{Name: "x", Linkname: "/etc/passwd", Typeflag: tar.TypeLink}}, slipway.CodeInvalid, "link"},
		"character device":     {[]tar.Header{{Name: "x", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}}, slipway.CodeInvalid, "neither"},
		"block device":         {[]tar.Header{{Name: "x", Typeflag: tar.TypeBlock}}, slipway.CodeInvalid, "neither"},
		"fifo":                 {[]tar.Header{{Name: "x", Typeflag: tar.TypeFifo}}, slipway.CodeInvalid, "neither"},
		"bomb":                 {[]tar.Header{sized("x", 2<<20)}, slipway.CodeTooLarge, "1 MiB"},
		"bomb in pieces":       {[]tar.Header{sized("x", 700<<10), sized("y", 700<<10)}, slipway.CodeTooLarge, "1 MiB"},
		"bomb of one name":     {[]tar.Header{sized("x", 700<<10), sized("x", 700<<10)}, slipway.CodeTooLarge, "1 MiB"},
		"many entries":         {many, slipway.CodeTooLarge, "100 entries"},
		"many directories":     {deep, slipway.CodeTooLarge, "100 entries"},
		"long name":            {[]tar.Header{file(strings.Repeat("a/", 600) + "x")}, slipway.CodeInvalid, "1024"},
		"long part":            {[]tar.Header{file(strings.Repeat("a", 300))}, slipway.CodeInvalid, "cannot be written"},
		"file, then directory": {[]tar.Header{file("x"), file("x/y")}, slipway.CodeInvalid, "twice"},
		"directory, then file": {[]tar.Header{file("x/y"), file("x")}, slipway.CodeInvalid, "twice"},
	} {
		outer := t.TempDir()
		dir := filepath.Join(outer, "in")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		err := tarball.Unpack(t.Context(), archive(t, c.entries...), dir, tarball.Limits{Bytes: 1 << 20, Entries: 100})
		if slipway.ErrorCode(err) != c.code || !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%s: got %v (%s), want %q (%s)", name, err, slipway.ErrorCode(err), c.want, c.code)
		}
		if found, _ := filepath.Glob(filepath.Join(outer, "*")); len(found) != 1 {
			t.Errorf("%s: it wrote outside: %v", name, found)
		}
	}
}

func TestUnpack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run := tar.Header{Name: "./bin/run.sh", Typeflag: tar.TypeReg, Mode: 0o4755, Size: 3}
	err := tarball.Unpack(t.Context(), archive(t,
		tar.Header{Name: "./", Typeflag: tar.TypeDir}, tar.Header{Name: "./a/", Typeflag: tar.TypeDir, Mode: 0}, file("./a/b.py"), run,
		tar.Header{Name: "ünïcode ☃", Typeflag: tar.TypeReg, Size: 1}, tar.Header{Name: "./a/b.py", Typeflag: tar.TypeReg, Mode: 0o755, Size: 5},
	), dir, tarball.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct {
		size int64
		mode os.FileMode
	}{"a/b.py": {5, 0o755}, "bin/run.sh": {3, 0o755}, "ünïcode ☃": {1, 0o644}} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
			continue
		}
		if info.Size() != want.size || info.Mode() != want.mode {
			t.Errorf("%s: got %d bytes, %s, want %d, %s", name, info.Size(), info.Mode(), want.size, want.mode)
		}
	}
}

func TestUnpackDamaged(t *testing.T) {
	t.Parallel()
	whole := archive(t, tar.Header{Name: "x", Typeflag: tar.TypeReg, Size: 100_000}).Bytes()
	for name, raw := range map[string][]byte{"empty": nil, "no gzip": []byte("PK\x03\x04 a zip"), "cut": whole[:len(whole)/2], "no tar": gzipped("hello")} {
		if err := tarball.Unpack(t.Context(), bytes.NewReader(raw), t.TempDir(), tarball.Limits{}); slipway.ErrorCode(err) != slipway.CodeInvalid {
			t.Errorf("%s: got %v, want %s", name, err, slipway.CodeInvalid)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := tarball.Unpack(ctx, bytes.NewReader(whole), t.TempDir(), tarball.Limits{}); err == nil {
		t.Error("unpacked after the end")
	}
}

func gzipped(text string) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = io.WriteString(z, text)
	_ = z.Close()
	return out.Bytes()
}

func FuzzUnpack(f *testing.F) {
	f.Add(gzipped("hello"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		outer := t.TempDir()
		dir := filepath.Join(outer, "in")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		_ = tarball.Unpack(t.Context(), bytes.NewReader(gzipped(string(raw))), dir, tarball.Limits{Bytes: 1 << 20, Entries: 100})
		if found, _ := filepath.Glob(filepath.Join(outer, "*")); len(found) != 1 {
			t.Errorf("it wrote outside: %v", found)
		}
	})
}
