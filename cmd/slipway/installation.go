package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/slipway-dev/slipway/cli"
)

// installation is a data directory and what is kept there.
type installation struct {
	dir string
}

// running is what a started platform leaves in its data directory for `slipway down` and `slipway up --detach`.
type running struct {
	PID int    `json:"pid"`
	URL string `json:"url"`
}

func (i installation) path(parts ...string) string {
	return filepath.Join(append([]string{i.dir}, parts...)...)
}

// prepare makes the data directory, readable by its owner only.
func (i installation) prepare() error {
	if err := os.MkdirAll(i.dir, 0o700); err != nil {
		return fmt.Errorf("cannot make the data directory %s: %w; name another with --data-dir", i.dir, err)
	}
	return nil
}

// lockPatience is how long `slipway up` waits for a platform that is just ending: the kernel gives a killed process's lock
// back only when the last of its threads is gone.
const lockPatience = time.Second

// lock takes the data directory for this process; the kernel gives it back however the process ends.
func (i installation) lock() (*os.File, error) {
	if i.held() {
		i.awaitReleased(lockPatience)
	}
	f, err := os.OpenFile(i.path("lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open the lock of %s: %w", i.dir, err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if r, err := i.running(); err == nil {
			return nil, fmt.Errorf("slipway already runs in %s, at %s; stop it with `slipway down`, or choose another --data-dir", i.dir, r.URL)
		}
		return nil, fmt.Errorf("slipway already runs in %s; stop it with `slipway down`, or choose another --data-dir", i.dir)
	}
	return f, nil
}

// held says whether a platform holds the lock.
func (i installation) held() bool {
	f, err := os.OpenFile(i.path("lock"), os.O_RDWR, 0o600)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

// awaitReleased waits until no platform holds the lock, at most for limit.
func (i installation) awaitReleased(limit time.Duration) bool {
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if !i.held() {
			return true
		}
	}
	return false
}

func (i installation) running() (running, error) {
	raw, err := os.ReadFile(i.path("running.json"))
	if err != nil {
		return running{}, err
	}
	var r running
	return r, json.Unmarshal(raw, &r)
}

func (i installation) saveRunning(r running) error { return i.writeJSON("running.json", r) }

func (i installation) saveCredentials(c cli.Credentials) error {
	return i.writeJSON(cli.CredentialsFile, c)
}

// writeJSON replaces a file of the data directory atomically, readable by its owner only.
func (i installation) writeJSON(name string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	tmp := i.path(name + ".new")
	if err := os.WriteFile(tmp, append(raw, '\n'), 0o600); err != nil {
		return fmt.Errorf("cannot write %s: %w", i.path(name), err)
	}
	return os.Rename(tmp, i.path(name))
}
