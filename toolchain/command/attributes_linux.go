package command

import "syscall"

// attributes puts a command into a process group of its own. It dies with the thread that started it: nothing goes on when
// the platform itself is killed.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
