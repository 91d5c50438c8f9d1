package supervise

import "syscall"

// attributes puts a worker into a process group of its own and lets the kernel kill it when the server dies.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
