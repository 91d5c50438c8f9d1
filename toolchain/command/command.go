// Package command runs installers and build commands with a scrubbed environment and kills all their children.
package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/slipway-dev/slipway"
)

// lastLines is how many lines of output a failure repeats.
const lastLines = 5

// Command is one program to run.
type Command struct {
	Dir  string
	Home string   // the build's home directory, kept between builds for caches
	Env  []string // over the scrubbed base
	Args []string
}

// Run runs the command to its end, giving every line of output to log. When ctx ends it kills the whole process group.
// The error is one sentence with the reason and the last lines.
func Run(ctx context.Context, c Command, log func(line string)) error {
	if err := os.MkdirAll(c.Home, 0o755); err != nil {
		return fmt.Errorf("run %s: %w", c.Args[0], err)
	}
	cmd := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...)
	cmd.Dir, cmd.Env = c.Dir, append(Base(c.Home), c.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 2 * time.Second
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	tail := make(chan []string, 1)
	go func() { tail <- follow(out, log) }()
	err := cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what the command left behind
	}
	_ = in.Close()
	last := <-tail
	return failure(ctx, c, err, last)
}

func failure(ctx context.Context, c Command, err error, last []string) error {
	name := strings.Join(c.Args, " ")
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("`%s` was stopped: %w", name, context.Cause(ctx))
	case err == nil:
		return nil
	case errors.Is(err, exec.ErrNotFound):
		return slipway.Errorf(slipway.CodeInvalid, "`%s` cannot run: %s is not installed on this machine", name, c.Args[0])
	}
	return slipway.Errorf(slipway.CodeInvalid, "`%s` failed (%w): %s", name, err, strings.Join(last, " | "))
}

// follow logs the lines and returns the last ones that are not empty.
func follow(r io.Reader, log func(string)) []string {
	var last []string
	lines := bufio.NewReaderSize(r, slipway.MaxLogLine)
	for {
		raw, _, err := lines.ReadLine()
		if err != nil {
			return last
		}
		line := strings.TrimRight(string(raw), "\r ")
		if line == "" {
			continue
		}
		log(line)
		if last = append(last, line); len(last) > lastLines {
			last = last[1:]
		}
	}
}

// Base is the environment of every command: nothing of the platform's own.
func Base(home string) []string {
	env := []string{"HOME=" + home, "CI=1", "NO_COLOR=1", "GIT_TERMINAL_PROMPT=0", "npm_config_update_notifier=false"}
	for _, name := range []string{
		"PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
		"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "npm_config_registry", "NPM_CONFIG_REGISTRY", "PIP_INDEX_URL",
		"PIP_TRUSTED_HOST", "PIP_CERT", "UV_INDEX_URL", "UV_DEFAULT_INDEX", "REQUESTS_CA_BUNDLE", "NPM_CONFIG_USERCONFIG", "npm_config_userconfig", "PIP_CONFIG_FILE",
		"UV_CONFIG_FILE",
	} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}
