package shelf_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/shelf"
)

func digest(raw []byte) string {
	sum := sha256.Sum256(raw)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func packed(t *testing.T, s *shelf.Shelf, at string) []byte {
	t.Helper()
	var out bytes.Buffer
	check(t, s.Pack(t.Context(), at, &out))
	return out.Bytes()
}

func TestArchivesCarryEverything(t *testing.T) {
	t.Parallel()
	root, other := t.TempDir(), t.TempDir()
	put(t, root, map[string]string{
		"layers/node-1/bin/run": "#!/bin/sh\n", "layers/node-1/lib/a.js": "a", "layers/node-1/empty/": "", "layers/node-1/" + strings.Repeat("long/", 40) + "x": "deep",
	})
	check(t, os.Chmod(filepath.Join(root, "layers/node-1/bin/run"), 0o755))
	check(t, os.Symlink("../lib/a.js", filepath.Join(root, "layers/node-1/bin/link")))
	check(t, os.Symlink("../../tools/outside", filepath.Join(root, "layers/node-1/dangling")))
	at := time.Date(2020, 5, 6, 7, 8, 9, 0, time.UTC)
	check(t, os.Chtimes(filepath.Join(root, "layers/node-1/lib/a.js"), at, at))
	s := open(t, root)
	raw := packed(t, s, "layers/node-1")
	if again := packed(t, s, "layers/node-1"); !bytes.Equal(raw, again) {
		t.Error("the same content makes two archives")
	}
	name, size, err := s.Packed(t.Context(), "layers/node-1")
	if err != nil || name != digest(raw) || size != int64(len(raw)) {
		t.Errorf("Packed = %s, %d, %v, want %s, %d", name, size, err, digest(raw), len(raw))
	}
	far := open(t, other)
	for range 2 { // the second finds it there
		check(t, far.Unpack(t.Context(), "layers/node-1", name, bytes.NewReader(raw)))
	}
	if got := packed(t, far, "layers/node-1"); !bytes.Equal(got, raw) {
		t.Errorf("what arrives packs to %d other bytes; it is %q", len(got), tree(t, other))
	}
	info, err := os.Stat(filepath.Join(other, "layers/node-1/lib/a.js"))
	check(t, err)
	run, err := os.Stat(filepath.Join(other, "layers/node-1/bin/run"))
	check(t, err)
	if !info.ModTime().Equal(at) || run.Mode().Perm() != 0o755 {
		t.Errorf("time %s, mode %s", info.ModTime(), run.Mode())
	}
	if got := paths(list(t, far)); !slices.Equal(got, []string{"layers/node-1"}) {
		t.Errorf("on the other shelf is %q", got)
	}
}

// archive makes one of entries.
func archive(t *testing.T, entries ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	w := tar.NewWriter(compressed)
	for _, h := range entries {
		content := ""
		if h.Typeflag == tar.TypeReg {
			content, h.Size = "evil", 4
		}
		h.Mode = 0o755
		check(t, w.WriteHeader(&h))
		if content != "" {
			_, err := w.Write([]byte(content))
			check(t, err)
		}
	}
	check(t, w.Close())
	check(t, compressed.Close())
	return out.Bytes()
}

func TestHostileArchivesLeaveNothing(t *testing.T) {
	t.Parallel()
	file := func(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeReg} }
	link := func(name, to string) tar.Header {
		return tar.Header{Name: name, Linkname: to, Typeflag: tar.TypeSymlink}
	}
	good := archive(t, file("a"))
	for name, c := range map[string]struct {
		at, digest string
		raw        []byte
	}{
		"above":              {raw: archive(t, file("../../evil"))},
		"absolute":           {raw: archive(t, file("/tmp/shelf-evil"))},
		"through a link":     {raw: archive(t, link("out", "../../.."), file("out/evil"))},
		"through a chain":    {raw: archive(t, link("a", "b"), link("b", "../.."), file("a/evil"))},
		"over a link":        {raw: archive(t, link("a", "../../evil"), file("a"))},
		"twice":              {raw: archive(t, file("a"), file("a"))},
		"hard link":          {raw: archive(t, tar.Header{Name: "a", Linkname: "/etc/passwd", Typeflag: tar.TypeLink})},
		"device":             {raw: archive(t, tar.Header{Name: "a", Typeflag: tar.TypeChar})},
		"pipe":               {raw: archive(t, tar.Header{Name: "a", Typeflag: tar.TypeFifo})},
		"no directory":       {raw: archive(t, file("missing/a"))},
		"altered":            {raw: good, digest: digest([]byte("other"))},
		"more behind":        {raw: append(slices.Clone(good), "more"...), digest: digest(good)},
		"cut":                {raw: good[:len(good)-12], digest: digest(good)},
		"no archive":         {raw: []byte("hello")},
		"nothing":            {raw: nil},
		"elsewhere":          {raw: good, at: "deployments/d1"},
		"elsewhere, hidden":  {raw: good, at: "layers/../blobs"},
		"no bundle":          {raw: good, at: bundle(1)},
		"a half-made bundle": {raw: archive(t, file(slipway.BundleFile)), at: bundle(1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			above := t.TempDir()
			root := filepath.Join(above, "data")
			put(t, root, map[string]string{"layers/node-2/kept": "kept", "bundles/": "", "deployments/": ""})
			before := tree(t, above)
			if c.at == "" {
				c.at = "layers/node-1"
			}
			if c.digest == "" {
				c.digest = digest(c.raw)
			}
			if err := open(t, root).Unpack(t.Context(), c.at, c.digest, bytes.NewReader(c.raw)); err == nil {
				t.Error("it was taken")
			}
			if after := tree(t, above); !slices.Equal(after, before) {
				t.Errorf("left %q, want %q", after, before)
			}
			if _, err := os.Stat("/tmp/shelf-evil"); err == nil {
				t.Error("it wrote where it pleased")
			}
		})
	}
}

func TestUnpackIsBounded(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := open(t, root)
	s.MaxBytes, s.MaxEntries = 10, 4
	entry := func(n string) tar.Header { return tar.Header{Name: n, Typeflag: tar.TypeReg} }
	for name, raw := range map[string][]byte{
		"bytes":   archive(t, entry("a"), entry("b"), entry("c")),
		"entries": archive(t, tar.Header{Name: "1/", Typeflag: tar.TypeDir}, tar.Header{Name: "2/", Typeflag: tar.TypeDir}, tar.Header{Name: "3/", Typeflag: tar.TypeDir}, tar.Header{Name: "4/", Typeflag: tar.TypeDir}, tar.Header{Name: "5/", Typeflag: tar.TypeDir}),
	} {
		if err := s.Unpack(t.Context(), "layers/node-1", digest(raw), bytes.NewReader(raw)); slipway.ErrorCode(err) != slipway.CodeInvalid {
			t.Errorf("too many %s: %v, want CodeInvalid", name, err)
		}
	}
	raw := archive(t, entry("a"), entry("b"))
	check(t, s.Unpack(t.Context(), "layers/node-1", digest(raw), bytes.NewReader(raw)))
	if got := tree(t, root); !slices.Equal(got, []string{"layers", "layers/node-1", "layers/node-1/a", "layers/node-1/b"}) {
		t.Errorf("there is %q", got)
	}
}

func TestPipesAreNotPacked(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	put(t, root, map[string]string{"layers/node-1/a": "a"})
	check(t, os.Symlink("/etc/passwd", filepath.Join(root, "layers/node-1/link")))
	s := open(t, root)
	if raw := packed(t, s, "layers/node-1"); bytes.Contains(raw, []byte("root:")) {
		t.Error("a link was followed")
	}
	if err := s.Pack(t.Context(), "layers/node-9", &bytes.Buffer{}); err == nil {
		t.Error("what is not there was packed")
	}
}

func TestPackagesOfAnArtifact(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	put(t, root, map[string]string{
		bundle(1) + "/bundle.json": `{"shared":["layers/python-1","layers/node-1","tools/tsx-1"]}`, bundle(2) + "/bundle.json": `{}`,
		"layers/python-1/venv/lib/python3.11/site-packages/idna-3.10.dist-info/METADATA": "", "layers/python-1/venv/lib/python3.11/site-packages/six.py": "",
		"layers/node-1/node_modules/left-pad/package.json": `{"name":"left-pad","version":"1.3.0"}`, "layers/node-1/node_modules/@langchain/core/package.json": `{"name":"@langchain/core","version":"1.0.1"}`,
		"layers/node-1/node_modules/broken/package.json": `{`, "layers/node-1/node_modules/left-pad/node_modules/deep/package.json": `{"name":"deep","version":"9"}`,
	})
	s := open(t, root)
	got := s.Packages("sha256:" + filepath.Base(bundle(1)))
	want := map[string]string{"python idna": "3.10", "node left-pad": "1.3.0", "node @langchain/core": "1.0.1"}
	if len(got) != len(want) {
		t.Errorf("got %v", got)
	}
	for name, version := range want {
		if got[name] != version {
			t.Errorf("%s is %q, want %q", name, got[name], version)
		}
	}
	for _, n := range []int{2, 3} {
		if got := s.Packages("sha256:" + filepath.Base(bundle(n))); got != nil {
			t.Errorf("of an artifact that does not tell: %v, want nil", got)
		}
	}
}
