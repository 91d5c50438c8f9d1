// Package keeper starts programs that are not trusted to clean up after themselves, and ends them with everything they
// started: children that left their group and session, cleared their environment and outlived their parents too.
//
// The program runs below a keeper, a process of this binary that adopts whoever loses their parent (Linux: a child
// subreaper). Keeper and starter hold the ends of one line. When the program ends, or the line does because the starter
// says so or died in whatever way, the keeper kills all its descendants and ends when none is left.
package keeper

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// Name is the argv[0] of a keeper.
const Name = "slipway-keeper"

// patience is how long a keeper may take to kill what it keeps. One that is stopped or starved never would.
const patience = 30 * time.Second

// order is what a keeper is told to run.
type order struct {
	Path  string
	Args  []string
	Dir   string
	Env   []string
	Files int // that the program gets; the line comes after them
}

// outcome is what a keeper says at its end.
type outcome struct {
	Status  syscall.WaitStatus
	Refused string // why the program could not be started
}

// Process is a program that was started.
type Process struct {
	cmd  *exec.Cmd
	line *net.UnixConn // nil = it has no keeper
	once sync.Once
}

// Start starts cmd below a keeper, which is the program at the path keeper: one whose main gives Is and Run a chance. It
// uses cmd's path, arguments, directory, environment and files, and nothing else of it. An empty path, or a system without
// subreapers, means no keeper: then the program's process group is all that Kill reaches.
func Start(keeper string, cmd *exec.Cmd) (*Process, error) {
	if keeper == "" || !supported {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		return &Process{cmd: cmd}, cmd.Start()
	}
	ours, theirs, err := pair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	own := exec.Command(keeper)
	own.Args, own.Dir, own.Env = []string{Name, filepath.Base(cmd.Args[0])}, "/", []string{"GOMAXPROCS=2"}
	own.Stdin, own.Stdout, own.Stderr = cmd.Stdin, cmd.Stdout, cmd.Stderr
	own.ExtraFiles = append([]*os.File{theirs}, cmd.ExtraFiles...)
	own.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // whoever kills the starter's session leaves the keeper its work
	if err := own.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start a keeper: %w", err), ours.Close())
	}
	p := &Process{cmd: own, line: ours}
	o := order{Path: cmd.Path, Args: cmd.Args, Dir: cmd.Dir, Env: cmd.Environ(), Files: 3 + len(cmd.ExtraFiles)}
	if err := json.NewEncoder(ours).Encode(o); err != nil {
		p.Kill()
		return nil, errors.Join(fmt.Errorf("tell a keeper what to run: %w", err), p.Wait())
	}
	return p, nil
}

// Kill ends the program and everything it started. It returns at once; Wait says when nothing is left.
func (p *Process) Kill() {
	if p.line == nil {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		return
	}
	p.once.Do(func() {
		_ = p.line.CloseWrite()
		time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
	})
}

// Wait returns how the program ended, once it and everything it started has: nil, or an *ExitError. Without a keeper
// it waits for the program alone. It is called once.
func (p *Process) Wait() error {
	if p.line == nil {
		return plain(p.cmd.Wait())
	}
	raw, _ := io.ReadAll(p.line)
	err := p.cmd.Wait()
	p.once.Do(func() {})
	_ = p.line.Close()
	var said outcome
	switch {
	case json.Unmarshal(raw, &said) != nil:
		return fmt.Errorf("its keeper ended before it: %w", errors.Join(err))
	case said.Refused != "":
		return errors.New(said.Refused)
	case said.Status != 0:
		return &ExitError{said.Status}
	}
	return nil
}

// ExitError says that a program ended with another exit code than 0, or by a signal.
type ExitError struct{ Status syscall.WaitStatus }

// Error says it in the words of os/exec.
func (e *ExitError) Error() string {
	if e.Status.Signaled() {
		return "signal: " + e.Status.Signal().String()
	}
	return fmt.Sprintf("exit status %d", e.Status.ExitStatus())
}

func plain(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok {
			return &ExitError{status}
		}
	}
	return err
}

// pair makes a line: our end, and the file that is the keeper's.
func pair() (*net.UnixConn, *os.File, error) {
	syscall.ForkLock.RLock() // a process forked in between would hold the line open
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, fmt.Errorf("make a line to a keeper: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "line"), os.NewFile(uintptr(fds[1]), "keeper's end")
	defer ours.Close() // FileConn duplicates it
	conn, err := net.FileConn(ours)
	if err != nil {
		theirs.Close()
		return nil, nil, fmt.Errorf("make a line to a keeper: %w", err)
	}
	return conn.(*net.UnixConn), theirs, nil
}

// Is says whether this process was started to be a keeper.
func Is(args []string) bool { return len(args) > 0 && args[0] == Name }
