package layouts_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// shared is set once, before any test runs.
var shared struct {
	slipway string // the binary under test
	cache   string // downloads and tools, kept between test runs
	factory *factory
	slots   chan struct{} // held by each layout while it is built and served
	uv      sync.Mutex    // held while uv is installed
}

// concurrency is how many layouts are built and served at once.
const concurrency = 3

func TestMain(m *testing.M) {
	code, err := prepared(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "layouts:", err)
		code = 1
	}
	os.Exit(code)
}

func prepared(m *testing.M) (int, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return 1, err
	}
	dir, err := os.MkdirTemp("", "slipway-layouts-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	shared.cache = filepath.Join(cache, "slipway-test")
	shared.slipway, shared.slots = filepath.Join(dir, "slipway"), make(chan struct{}, concurrency)
	build := exec.Command("go", "build", "-o", shared.slipway, "./cmd/slipway")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		return 1, fmt.Errorf("%w: %s", err, out)
	}
	var stop func()
	shared.factory, stop = startFactory(filepath.Join(dir, "data"), shared.cache)
	defer stop()
	return m.Run(), nil
}
