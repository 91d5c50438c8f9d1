package local_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/bus/bustest"
	"github.com/slipway-dev/slipway/bus/local"
)

func open(t *testing.T, dir, name string) *local.Bus {
	t.Helper()
	b, err := local.Open(dir, name, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func TestConformance(t *testing.T) {
	t.Parallel()
	bustest.Run(t, func(t *testing.T) func(string) agent.Bus {
		deep := filepath.Join(t.TempDir(), strings.Repeat("deep-directory/", 20))
		return func(name string) agent.Bus { return open(t, deep, name) }
	})
}

func TestSocketOfTheDeadIsRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	dead := filepath.Join(dir, "dead.sock")
	if err := os.WriteFile(dead, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	hourAgo := time.Now().Add(-time.Hour)
	if err := os.Chtimes(dead, hourAgo, hourAgo); err != nil {
		t.Fatal(err)
	}
	open(t, dir, "alive")
	if _, err := os.Stat(dead); !os.IsNotExist(err) {
		t.Errorf("socket of a dead peer: got %v, want it gone", err)
	}
}

func TestCloseRemovesTheSocketAndFreesTheName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := open(t, dir, "one").Close(); err != nil {
		t.Fatal(err)
	}
	open(t, dir, "one")
}
