package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// instances knows which agent servers live: each holds a lock on its own file, which the kernel drops with the process.
type instances struct{ dir string }

const lockSuffix = ".lock"

// Register takes the lock of an instance until release is called or the process dies. The caller keeps release: the lock
// goes with it.
func (i instances) Register(id string) (release func() error, err error) {
	if err := os.MkdirAll(i.dir, 0o700); err != nil {
		return nil, err
	}
	f, err := i.take(id)
	if err != nil {
		return nil, err
	}
	i.sweep()
	return func() error { return errors.Join(os.Remove(f.Name()), f.Close()) }, nil
}

// take locks the file of an instance. The sweep of another process may hold it for a moment, or remove it just before.
func (i instances) take(id string) (*os.File, error) {
	for attempt := 0; ; attempt++ {
		f, err := os.OpenFile(i.path(id), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, err
		}
		err = flock(f, syscall.LOCK_EX|syscall.LOCK_NB)
		if errors.Is(err, syscall.EWOULDBLOCK) && attempt < 50 {
			_ = f.Close()
			time.Sleep(2 * time.Millisecond)
			continue
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("lock %s: %w; another server bears this instance id", f.Name(), err), f.Close())
		}
		if inPlace(f) {
			return f, nil
		}
		_ = f.Close()
	}
}

// inPlace says whether an open file is still the one its name leads to. While it is locked that does not change: whoever
// removes or makes such a file holds its lock.
func inPlace(f *os.File) bool {
	ours, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(f.Name())
	return err == nil && os.SameFile(ours, there)
}

// sweep removes the files that killed servers left.
func (i instances) sweep() {
	entries, _ := os.ReadDir(i.dir) // what cannot be read is swept another time
	for _, entry := range entries {
		id, ok := strings.CutSuffix(entry.Name(), lockSuffix)
		if !ok {
			continue
		}
		f, err := os.OpenFile(i.path(id), os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if flock(f, syscall.LOCK_EX|syscall.LOCK_NB) == nil && inPlace(f) {
			_ = os.Remove(f.Name())
		}
		_ = f.Close()
	}
}

// Alive says whether the process that registered the instance still lives.
func (i instances) Alive(id string) (bool, error) {
	f, err := os.OpenFile(i.path(id), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	switch err := flock(f, syscall.LOCK_SH|syscall.LOCK_NB); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return false, nil
}

// AwaitEnd waits until the kernel gives the instance's lock away. After ctx a goroutine goes on waiting for that in the
// background: nothing can take a thread out of the wait.
func (i instances) AwaitEnd(ctx context.Context, id string) error {
	f, err := os.OpenFile(i.path(id), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- errors.Join(flock(f, syscall.LOCK_SH), f.Close()) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// flock locks a file, going on after signals.
func flock(f *os.File, how int) error {
	for {
		if err := syscall.Flock(int(f.Fd()), how); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

func (i instances) path(id string) string { return filepath.Join(i.dir, filepath.Base(id)+lockSuffix) }
