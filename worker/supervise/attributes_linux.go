package supervise

import "syscall"

// socketType makes the ends of a link close on exec from the first moment.
const socketType = syscall.SOCK_STREAM | syscall.SOCK_CLOEXEC

// attributes puts a worker into a process group of its own and lets the kernel kill it when the server dies.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
