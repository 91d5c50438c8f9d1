package tarball_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"testing"

	"github.com/slipway-dev/slipway/source/tarball"
)

func archive(t *testing.T, h tar.Header) *bytes.Buffer {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	if err := w.WriteHeader(&h); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, h.Size)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return &out
}

func TestUnpackRefusesHostileArchives(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]tar.Header{
		"parent":   {Name: "../x", Typeflag: tar.TypeReg},
		"absolute": {Name: "/x", Typeflag: tar.TypeReg},
		"symlink":  {Name: "x", Linkname: "y", Typeflag: tar.TypeSymlink},
		"hardlink": {Name: "x", Linkname: "y", Typeflag: tar.TypeLink},
		"device":   {Name: "x", Typeflag: tar.TypeChar},
		"bomb":     {Name: "x", Typeflag: tar.TypeReg, Size: 2 << 20},
	} {
		dir := t.TempDir()
		if err := tarball.Unpack(t.Context(), archive(t, h), dir, tarball.Limits{Bytes: 1 << 20}); err == nil {
			t.Errorf("%s: unpacked", name)
		}
	}
}

func TestUnpack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := tar.Header{Name: "a/b.py", Typeflag: tar.TypeReg, Size: 3}
	if err := tarball.Unpack(t.Context(), archive(t, h), dir, tarball.Limits{}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "a", "b.py")); err != nil || info.Size() != 3 {
		t.Errorf("got %v, %v, want a file of 3 bytes", info, err)
	}
}
