package supervise

import "syscall"

// socketType makes the ends of a link close on exec from the first moment.
const socketType = syscall.SOCK_STREAM | syscall.SOCK_CLOEXEC
