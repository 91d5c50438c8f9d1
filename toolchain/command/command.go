// Package command runs installers and build commands with a scrubbed environment and ends them with all their children.
package command

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/keeper"
)

// Command is one program to run.
type Command struct {
	Dir  string
	Home string   // the build's home directory, kept between builds for caches
	Root string   // the data directory of the platform; names what Reap ends
	Keep string   // program of the keeper (package keeper) that it runs below; "" = none
	Env  []string // over the scrubbed base
	Args []string
	Show string // how messages name the command; "" = Args
	// Rename holds pairs of texts: the first of each, a path of this machine, is shown as the second in output and messages.
	Rename []string
}

// String names the command in messages.
func (c Command) String() string {
	if c.Show != "" {
		return c.Show
	}
	return strings.Join(c.Args, " ")
}

// Run runs the command to its end, giving every line of output to log. When the command or ctx ends, every process that it
// started is killed, whatever it did to get away, and so it is when this process dies; without a keeper, only those that
// stayed in its process group or kept its environment. The error is one sentence: the command, how it ended, and the line of
// its output that says most.
func Run(ctx context.Context, c Command, log func(line string)) error {
	if err := os.MkdirAll(c.Home, 0o755); err != nil {
		return fmt.Errorf("run %s: %w", c, err)
	}
	out, in, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("run %s: %w", c, err)
	}
	defer out.Close()
	mark := markOf(c.Root) + rand.Text()
	process, err := c.start(in, mark)
	in.Close()
	if err != nil {
		return failure(ctx, c, err, nil)
	}
	tail, names := make(chan []string, 1), strings.NewReplacer(c.Rename...)
	go func() { tail <- follow(out, names, log) }()
	stop := context.AfterFunc(ctx, process.Kill)
	err = process.Wait()
	stop()
	end(mark)
	_ = out.SetReadDeadline(time.Now().Add(time.Second)) // nobody should hold the pipe any more
	return failure(ctx, c, err, <-tail)
}

// start finds the program in the PATH of the command, not of this process, and starts it.
func (c Command) start(in *os.File, mark string) (*keeper.Process, error) {
	cmd := &exec.Cmd{Path: c.Args[0], Args: c.Args, Dir: c.Dir, Env: append(append(Base(c.Home), c.Env...), mark), Stdout: in, Stderr: in}
	if !strings.Contains(c.Args[0], "/") {
		at, err := Look(c.Args[0], cmd.Env)
		if err != nil {
			return nil, err
		}
		cmd.Path = at
	}
	return keeper.Start(c.Keep, cmd)
}

// Look finds a program in the last PATH of an environment.
func Look(name string, env []string) (string, error) {
	var path string
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	for dir := range strings.SplitSeq(path, ":") {
		at := dir + "/" + name
		if info, err := os.Stat(at); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return at, nil
		}
	}
	return "", exec.ErrNotFound
}

func failure(ctx context.Context, c Command, err error, last []string) error {
	var exit *keeper.ExitError
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("`%s` was stopped: %w", c, context.Cause(ctx))
	case err == nil:
		return nil
	case errors.Is(err, exec.ErrNotFound):
		return slipway.Errorf(slipway.CodeInvalid, "`%s` cannot run: %s is not installed on this machine", c, c.Args[0])
	case !errors.As(err, &exit):
		return fmt.Errorf("run %s: %w", c, err)
	}
	how := fmt.Sprintf("with exit code %d", exit.Status.ExitStatus())
	if exit.Status.Signaled() {
		how = "by signal " + exit.Status.Signal().String()
	}
	if why := reason(last); why != "" {
		return slipway.Errorf(slipway.CodeInvalid, "`%s` failed %s: %s", c, how, why)
	}
	return slipway.Errorf(slipway.CodeInvalid, "`%s` failed %s", c, how)
}
