package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Servers that start together sweep each other's files at the same time; each must end up alive.
func TestServersThatStartTogetherAreAllAlive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openAgent(t, filepath.Join(dir, "agent.db"))
	left := filepath.Join(dir, "instances", "killed.lock")
	if err := os.MkdirAll(filepath.Dir(left), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for n := range 100 {
		all.Go(func() {
			release, err := s.Register(context.Background(), fmt.Sprint("i", n))
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { _ = release() }) // holding it keeps the lock; a forgotten one goes with the garbage
		})
	}
	all.Wait()
	files, err := os.ReadDir(filepath.Dir(left))
	if err != nil || len(files) != 100 {
		t.Errorf("got %d lock files (%v), want 100", len(files), err)
	}
}
