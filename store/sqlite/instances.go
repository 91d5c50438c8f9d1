package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// instances knows which agent servers live: each holds a lock on its own file, which the kernel drops with the process.
type instances struct{ dir string }

// Register takes the lock of an instance until release is called or the process dies.
func (i instances) Register(id string) (release func() error, err error) {
	if err := os.MkdirAll(i.dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(i.path(id), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w; another server bears this instance id", f.Name(), err), f.Close())
	}
	return func() error { return errors.Join(os.Remove(f.Name()), f.Close()) }, nil
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
	switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return false, nil
}

func (i instances) path(id string) string { return filepath.Join(i.dir, filepath.Base(id)+".lock") }
