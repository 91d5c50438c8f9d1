//go:build !linux

package supervise

import "syscall"

// socketType is a link's; where it cannot say so itself, its ends are told to close on exec afterwards.
const socketType = syscall.SOCK_STREAM

// attributes puts a worker into a process group of its own; it notices the server's death by the end of its link.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
