package command

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Sync makes everything written to the file system of dir durable.
func Sync(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	defer f.Close()
	if err := unix.Syncfs(int(f.Fd())); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}
