package seal_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/seal"
)

func TestIssuerKeysAreMadeOnceAndRotate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "issuer.json")
	var wg sync.WaitGroup
	ids := make([]string, 8)
	for i := range ids {
		wg.Add(1)
		go func() {
			defer wg.Done()
			k, err := seal.OpenIssuerKeys(path, time.Now)
			if err != nil {
				t.Error(err)
				return
			}
			ring, err := k.Ring()
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = ring.Current().ID
		}()
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("two first keys: %v", ids)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	a, _ := seal.OpenIssuerKeys(path, time.Now)
	b, _ := seal.OpenIssuerKeys(path, time.Now)
	fresh, err := a.Rotate()
	if err != nil {
		t.Fatal(err)
	}
	ring, err := b.Ring()
	if err != nil || len(ring) != 2 || ring.Current().ID != fresh.ID || ring[1].ID != ids[0] {
		t.Errorf("the other holder sees %d keys, %v", len(ring), err)
	}
}

func TestDamagedIssuerKeysAreAnErrorAndStay(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "{", "[]", `[{"seed":"AAAA"}]`} {
		path := filepath.Join(t.TempDir(), "issuer.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := seal.OpenIssuerKeys(path, time.Now); err == nil {
			t.Errorf("%q is taken for keys", text)
		}
		if got, _ := os.ReadFile(path); string(got) != text {
			t.Errorf("%q was replaced by %q", text, got)
		}
	}
}
