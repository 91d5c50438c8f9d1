//go:build !linux

package supervise

import "syscall"

// socketType is a link's; where it cannot say so itself, its ends are told to close on exec afterwards.
const socketType = syscall.SOCK_STREAM
