package supervise

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/slipway-dev/slipway/keeper"
)

// maxLine bounds one line of a worker's output; a longer one is cut into several.
const maxLine = 64 << 10

// process is a worker's process with its end of the link and its output.
type process struct {
	kept   *keeper.Process
	conn   net.Conn
	outs   []*os.File
	output sync.WaitGroup
	exited chan struct{}
	err    error // of Wait; valid once exited is closed

	mu   sync.Mutex
	last string // last line of standard error
}

// lastWords is how long a dead worker's link is read on.
const lastWords = time.Second

func (p *Pool) spawn(id string, program Program) (*process, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer func() { _ = theirs.Close() }()
	proc := &process{conn: ours, exited: make(chan struct{})}
	cmd := exec.Command(program.Argv[0], program.Argv[1:]...) //nolint:gosec // the bundle's own interpreter
	cmd.Dir = program.Dir
	cmd.Env = append(append([]string{}, program.Env...), "SLIPWAY_WORKER_FD=3")
	cmd.ExtraFiles = []*os.File{theirs}
	childEnds, err := proc.pipes(p, id, program)
	if err != nil {
		_ = ours.Close()
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = childEnds[0], childEnds[1]
	proc.kept, err = keeper.Start(p.cfg.Keep, cmd)
	for _, f := range childEnds {
		_ = f.Close()
	}
	if err != nil {
		_ = ours.Close()
		proc.output.Wait()
		return nil, fmt.Errorf("start %s: %w", strings.Join(program.Argv, " "), err)
	}
	go func() {
		proc.err = proc.kept.Wait()
		close(proc.exited)
		// What the worker said before is still read. Without a keeper, a process it started may hold the link open.
		_ = ours.SetReadDeadline(time.Now().Add(lastWords))
	}()
	return proc, nil
}

func socketPair() (net.Conn, *os.File, error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, socketType, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make a socket pair: %w", err)
	}
	for _, fd := range fds {
		syscall.CloseOnExec(fd) // a worker forked later would keep this one's link open beyond its death
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "worker link"), os.NewFile(uintptr(fds[1]), "worker end")
	defer func() { _ = ours.Close() }() // FileConn duplicates it
	conn, err := net.FileConn(ours)
	if err != nil {
		_ = theirs.Close()
		return nil, nil, fmt.Errorf("open the link: %w", err)
	}
	return conn, theirs, nil
}

// pipes opens standard output and error and reads their lines; it returns the child's ends.
func (proc *process) pipes(p *Pool, id string, program Program) ([]*os.File, error) {
	var childEnds []*os.File
	for _, s := range []struct{ level, logger string }{{"info", "stdout"}, {"error", "stderr"}} {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, fmt.Errorf("open a pipe: %w", err)
		}
		childEnds = append(childEnds, w)
		proc.outs = append(proc.outs, r)
		line := Line{WorkerID: id, Language: program.Language, Level: s.level, Logger: s.logger}
		proc.output.Go(func() { proc.read(r, line, p.lines) })
	}
	return childEnds, nil
}

func (proc *process) read(r *os.File, line Line, lines func(Line)) {
	defer func() { _ = r.Close() }()
	in := bufio.NewReaderSize(r, maxLine)
	for {
		b, err := in.ReadSlice('\n')
		if len(b) > 0 {
			line.Text = strings.ToValidUTF8(strings.TrimRight(string(b), "\r\n"), "\uFFFD")
			if line.Logger == "stderr" && strings.TrimSpace(line.Text) != "" {
				proc.mu.Lock()
				proc.last = line.Text
				proc.mu.Unlock()
			}
			lines(line)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// explain adds the last line of standard error to a reason.
func (proc *process) explain(reason string) string {
	proc.mu.Lock()
	defer proc.mu.Unlock()
	if proc.last == "" {
		return reason
	}
	return reason + ": " + proc.last
}

// kill ends the worker at once, with whatever it started.
func (proc *process) kill() { proc.kept.Kill() }

// end waits a moment for the process to go by itself, so that its own exit code is seen, then kills it with
// whatever it started and releases everything.
func (proc *process) end() error {
	timer := time.NewTimer(500 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-proc.exited:
	case <-timer.C:
	}
	proc.kill()
	<-proc.exited
	_ = proc.conn.Close()
	for _, r := range proc.outs {
		_ = r.SetReadDeadline(time.Now().Add(time.Second)) // without a keeper, somebody who left the group may hold the pipe
	}
	proc.output.Wait()
	return proc.err
}
