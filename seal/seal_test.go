package seal_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/slipway-dev/slipway/seal"
)

func key(t *testing.T) *seal.Key {
	t.Helper()
	k, err := seal.OpenFile(filepath.Join(t.TempDir(), "master.key"))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestSealedValueOpensOnlyInItsPlace(t *testing.T) {
	t.Parallel()
	k := key(t)
	sealed, err := k.Seal("t", "d", "NAME", "canary-value")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(sealed, []byte("canary")) {
		t.Error("the sealed value shows its content")
	}
	if got, err := k.Open("t", "d", "NAME", sealed); err != nil || got != "canary-value" {
		t.Errorf("Open = %q, %v", got, err)
	}
	for _, place := range [][3]string{{"x", "d", "NAME"}, {"t", "x", "NAME"}, {"t", "d", "X"}, {"td", "", "NAME"}} {
		if got, err := k.Open(place[0], place[1], place[2], sealed); err == nil {
			t.Errorf("Open at %v = %q, want an error", place, got)
		}
	}
	if _, err := key(t).Open("t", "d", "NAME", sealed); err == nil {
		t.Error("another key opens the value")
	}
}

func TestAnyAlteredByteFails(t *testing.T) {
	t.Parallel()
	k := key(t)
	sealed, _ := k.Seal("t", "d", "N", "")
	for i := range sealed {
		altered := bytes.Clone(sealed)
		altered[i] ^= 1
		if _, err := k.Open("t", "d", "N", altered); err == nil {
			t.Fatalf("byte %d altered, still opens", i)
		}
		if _, err := k.Open("t", "d", "N", sealed[:i]); err == nil {
			t.Fatalf("cut to %d bytes, still opens", i)
		}
	}
}

func TestSameValueSealsDifferently(t *testing.T) {
	t.Parallel()
	k := key(t)
	a, _ := k.Seal("t", "d", "N", "v")
	b, _ := k.Seal("t", "d", "N", "v")
	if bytes.Equal(a, b) {
		t.Error("two sealings are equal: equal secrets could be told")
	}
}

func TestKeyFileIsMadeOnceAndPrivate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "master.key")
	ids := make([]string, 8)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			k, err := seal.OpenFile(path)
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = k.ID()
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("two keys: %v", ids)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode = %v, %v, want 0600", info.Mode(), err)
	}
	entries, _ := os.ReadDir(filepath.Dir(path))
	if len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}

func TestDamagedKeyFileIsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "master.key")
	if err := os.WriteFile(path, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := seal.OpenFile(path)
	if err == nil || !strings.Contains(err.Error(), "restore") {
		t.Errorf("err = %v, want one with a remedy", err)
	}
}
