//go:build !linux

package command

import "syscall"

// attributes puts a command into a process group of its own.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
