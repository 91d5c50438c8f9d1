package keeper

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

const supported = true

// Self is the path of the running program, also after its file was replaced.
const Self = "/proc/self/exe"

const (
	lineFile          = 3  // descriptor of the keeper's end; the program's own files from the fourth on follow it
	setChildSubreaper = 36 // PR_SET_CHILD_SUBREAPER
)

// Run is the main function of a keeper: it runs what it is told, and returns the exit code of this process when that and
// all its descendants are gone.
func Run() int {
	runtime.LockOSThread()                                                                                   // the program dies with the thread that started it
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE) // the line alone says when to end
	line := os.NewFile(lineFile, "line")
	syscall.CloseOnExec(lineFile)
	var o order
	in := json.NewDecoder(line)
	if err := in.Decode(&o); err != nil {
		return 0 // the starter died first
	}
	said := outcome{}
	if pid, err := o.start(); err != nil {
		said.Refused = err.Error()
	} else {
		said.Status = keep(pid, io.MultiReader(in.Buffered(), line))
	}
	if err := json.NewEncoder(line).Encode(said); err != nil {
		return 1
	}
	return 0
}

func (o order) start() (int, error) {
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, setChildSubreaper, 1, 0); errno != 0 {
		return 0, os.NewSyscallError("prctl", errno)
	}
	files := []uintptr{0, 1, 2}
	for fd := lineFile + 1; len(files) < o.Files; fd++ {
		files = append(files, uintptr(fd))
	}
	pid, err := syscall.ForkExec(o.Path, o.Args, &syscall.ProcAttr{
		Dir: o.Dir, Env: o.Env, Files: files, Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	for _, fd := range files[3:] {
		_ = syscall.Close(int(fd)) // the program's alone: who holds the other end sees it end
	}
	if err != nil {
		return 0, &os.PathError{Op: "fork/exec", Path: o.Path, Err: err}
	}
	return pid, nil
}

// keep waits until the program or the line ends, kills every descendant and returns how the program ended. Whoever loses
// their parent becomes a child of this process: no child left is no descendant left.
func keep(program int, line io.Reader) (status syscall.WaitStatus) {
	over := make(chan struct{}, 2)
	go func() {
		_, _ = io.Copy(io.Discard, line)
		over <- struct{}{}
	}()
	none := make(chan struct{})
	reaped := make(chan struct{}, 1)
	go func() {
		defer close(none)
		for {
			var how syscall.WaitStatus
			pid, err := syscall.Wait4(-1, &how, syscall.WALL, nil)
			switch {
			case err == syscall.EINTR:
				continue
			case err != nil:
				return
			case pid == program:
				status = how
				over <- struct{}{}
			}
			select {
			case reaped <- struct{}{}:
			default:
			}
		}
	}()
	<-over
	for {
		for _, pid := range descendants(os.Getpid()) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		select {
		case <-none:
			return status
		case <-reaped:
		case <-time.After(10 * time.Millisecond): // one may be deep in the kernel
		}
	}
}

// descendants lists the living processes below one, the nearest first.
func descendants(of int) (pids []int) {
	below := map[int][]int{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		if pid, parent, ok := family(file); ok {
			below[parent] = append(below[parent], pid)
		}
	}
	for next := []int{of}; len(next) > 0; next = next[1:] {
		pids = append(pids, below[next[0]]...)
		next = append(next, below[next[0]]...)
	}
	return pids
}

// family reads a process's number and its parent's.
func family(file string) (pid, parent int, ok bool) {
	raw, err := os.ReadFile(file)
	name := bytes.LastIndexByte(raw, ')') // of the program, which may hold anything
	if err != nil || name < 0 {
		return 0, 0, false
	}
	fields := bytes.Fields(raw[name+1:])
	if len(fields) < 2 {
		return 0, 0, false
	}
	pid, err = strconv.Atoi(filepath.Base(filepath.Dir(file)))
	if err != nil {
		return 0, 0, false
	}
	parent, err = strconv.Atoi(string(fields[1]))
	return pid, parent, err == nil
}
