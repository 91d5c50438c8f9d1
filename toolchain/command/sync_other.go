//go:build !linux

package command

import "syscall"

// Sync makes everything written to the file system of dir durable.
func Sync(string) error {
	syscall.Sync()
	return nil
}
