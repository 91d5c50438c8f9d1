package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// handle is a process held by pidfd: signals through it can never reach another process that got the same number.
type handle struct {
	pid   int
	start uint64
	fd    *os.File
}

// open returns a handle of pid. The start time is read after the pidfd was opened, so both speak of the same process.
func open(pid int) (*handle, error) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("open process %d: %w", pid, err)
	}
	h := &handle{pid: pid, fd: os.NewFile(uintptr(fd), "pidfd")}
	st, err := readStat(pid)
	if err != nil {
		h.close()
		return nil, err
	}
	h.start = st.start
	return h, nil
}

// adopt opens pid and returns nil unless it is alive and started at start.
func adopt(pid int, start uint64) *handle {
	h, err := open(pid)
	if err != nil {
		return nil
	}
	st, err := readStat(pid)
	if err != nil || st.state == 'Z' || st.state == 'X' || h.start != start {
		h.close()
		return nil
	}
	return h
}

func (h *handle) close() { _ = h.fd.Close() }

// signal sends sig; a process that is gone is no error.
func (h *handle) signal(sig unix.Signal) error {
	conn, err := h.fd.SyscallConn()
	if err != nil {
		return fmt.Errorf("signal process %d: %w", h.pid, err)
	}
	var sent error
	if err := conn.Control(func(fd uintptr) { sent = unix.PidfdSendSignal(int(fd), sig, nil, 0) }); err != nil {
		return fmt.Errorf("signal process %d: %w", h.pid, err)
	}
	if sent != nil && !errors.Is(sent, unix.ESRCH) {
		return fmt.Errorf("signal process %d: %w", h.pid, sent)
	}
	return nil
}

// wait blocks, without a thread of its own, until the process ended (true) or ctx did (false).
func (h *handle) wait(ctx context.Context) bool {
	stop := context.AfterFunc(ctx, func() { _ = h.fd.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	conn, err := h.fd.SyscallConn()
	if err != nil {
		return false
	}
	err = conn.Read(func(fd uintptr) bool {
		n, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return n > 0
	})
	return err == nil
}

type stat struct {
	state   byte
	session int
	start   uint64
}

func readStat(pid int) (stat, error) {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return stat{}, fmt.Errorf("read process %d: %w", pid, err)
	}
	// The name stands in parentheses and may hold anything, also parentheses; fields are counted from its end.
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) < 20 {
		return stat{}, fmt.Errorf("read process %d: malformed stat", pid)
	}
	session, _ := strconv.Atoi(string(fields[3]))
	start, _ := strconv.ParseUint(string(fields[19]), 10, 64)
	return stat{state: fields[0][0], session: session, start: start}, nil
}

func pids() []int {
	entries, _ := os.ReadDir("/proc")
	var all []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			all = append(all, pid)
		}
	}
	return all
}

// killSession kills whatever lives in the session that leader, started at start, once made, until nothing is left of it.
// A worker that is stuck in the kernel makes it give up after a few seconds.
func killSession(leader int, start uint64) {
	if leader <= 1 {
		return
	}
	for pause := time.Millisecond; pause < 2*time.Second; pause += pause/2 + time.Millisecond {
		if st, err := readStat(leader); err == nil && st.start != start {
			return // the number went to somebody else, so nothing of the old session is left
		}
		if !killMembers(leader) {
			return
		}
		time.Sleep(pause)
	}
}

// killMembers reports whether there was somebody to kill.
func killMembers(session int) bool {
	found := false
	for _, pid := range pids() {
		if st, err := readStat(pid); err != nil || st.session != session || st.state == 'Z' || st.state == 'X' {
			continue
		}
		found = true
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	return found
}
