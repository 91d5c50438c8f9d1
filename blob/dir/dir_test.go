package dir_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/blob/blobtest"
	"github.com/slipway-dev/slipway/blob/dir"
)

func open(t *testing.T, path string) *dir.Blobs {
	t.Helper()
	b, err := dir.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func TestConformance(t *testing.T) {
	t.Parallel()
	blobtest.Run(t, func(t *testing.T) slipway.Blob { return open(t, filepath.Join(t.TempDir(), "blobs")) })
}

func TestBlobsOutliveTheProcess(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	digest, _, err := open(t, path).Put(t.Context(), strings.NewReader("x"), 10)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, path).Open(t.Context(), digest); err != nil {
		t.Error(err)
	}
}

func TestLinksAreNotFollowed(t *testing.T) {
	t.Parallel()
	path, outside := t.TempDir(), filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	name := strings.Repeat("a", 64)
	if err := os.Symlink(outside, filepath.Join(path, name)); err != nil {
		t.Fatal(err)
	}
	if r, err := open(t, path).Open(t.Context(), "sha256:"+name); err == nil {
		r.Close()
		t.Error("a link out of the directory was followed")
	}
}

func TestInterruptedWritesAreRemoved(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	left, running := filepath.Join(path, ".put-123"), filepath.Join(path, ".put-456")
	for _, file := range []string{left, running} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(left, time.Time{}, time.Now().Add(-2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	b := open(t, path)
	if _, err := os.Stat(running); err != nil {
		t.Errorf("another process's write was removed: %v", err)
	}
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want it removed", err)
	}
	if err := b.List(context.Background(), func(i slipway.BlobInfo) error { return errors.New(i.Digest) }); err != nil {
		t.Error(err)
	}
}

// A removal that was interrupted before it was known whether the bytes are needed gives them their name back, unless they
// were stored anew; neither another's files nor directories count as blobs.
func TestInterruptedRemovalsAreUndone(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	taken, anew := strings.Repeat("a", 64), strings.Repeat("b", 64)
	for name, content := range map[string]string{".gone-" + taken: "kept", ".gone-" + anew: "old", anew: "new", "README": "foreign"} {
		if err := os.WriteFile(filepath.Join(path, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b := open(t, path)
	for name, want := range map[string]string{taken: "kept", anew: "new"} {
		raw, err := os.ReadFile(filepath.Join(path, name))
		if err != nil || string(raw) != want {
			t.Errorf("%s holds %q, %v, want %q", name[:4], raw, err, want)
		}
	}
	n := 0
	if err := b.List(t.Context(), func(slipway.BlobInfo) error { n++; return nil }); err != nil || n != 2 {
		t.Errorf("%d blobs are listed, %v, want 2", n, err)
	}
	if left, _ := filepath.Glob(filepath.Join(path, ".gone-*")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}
