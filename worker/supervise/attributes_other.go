//go:build !linux

package supervise

import "syscall"

// attributes puts a worker into a process group of its own; it notices the server's death by the end of its link.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
