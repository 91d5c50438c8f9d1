package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/slipway-dev/slipway"
)

// failure is what git said when it failed.
type failure struct {
	command string
	text    string
	cause   error
}

func (f *failure) Error() string { return fmt.Sprintf("git %s failed: %s", f.command, f.text) }
func (f *failure) Unwrap() error { return f.cause }

// git runs one git command in the working tree. It ends with ctx or at the size limit, with all its children.
func (c checkout) git(ctx context.Context, args ...string) (string, error) {
	limited, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	cmd := exec.CommandContext(limited, "git", slices.Concat(hardened(), c.lent.settings(), args)...)
	cmd.Dir, cmd.Env = c.dir, c.environment()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		if limited.Err() != nil {
			return "", context.Cause(limited)
		}
		return "", fmt.Errorf("git cannot be started, is it installed? %w", err)
	}
	go c.watch(limited, stop)
	err := cmd.Wait()
	if err == nil {
		err = c.bound()
		return out.String(), err
	}
	if limited.Err() != nil {
		return "", context.Cause(limited)
	}
	return "", &failure{command: args[0], text: c.lent.hide(c.said(errs.String())), cause: err}
}

func hardened() []string {
	return []string{
		"-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "credential.helper=", "-c", "init.defaultBranch=main",
		"-c", "init.templateDir=", "-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "advice.detachedHead=false",
		"-c", "http.lowSpeedLimit=100", "-c", "http.lowSpeedTime=60", "-c", "submodule.recurse=false",
	}
}

func (c checkout) environment() []string {
	protocols := "https:ssh"
	if c.from.file {
		protocols += ":file"
	}
	if c.from.plain {
		protocols += ":http"
	}
	env := []string{
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=true", "SSH_ASKPASS=true",
		"GIT_ALLOW_PROTOCOL=" + protocols, "GIT_LFS_SKIP_SMUDGE=1", "LC_ALL=C",
	}
	for _, name := range []string{
		"PATH", "HOME", "TMPDIR", "SSH_AUTH_SOCK", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY",
		"SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO",
	} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return append(env, c.lent.environment()...)
}

// watch stops a command that writes more than is allowed.
func (c checkout) watch(ctx context.Context, stop context.CancelCauseFunc) {
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := c.bound(); err != nil {
				stop(err)
				return
			}
		}
	}
}

// bound checks the size of the working tree with its repository.
func (c checkout) bound() error {
	var size int64
	_ = filepath.WalkDir(c.dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil // it went away meanwhile
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
		if size > c.cfg.MaxBytes {
			return filepath.SkipAll
		}
		return nil
	})
	if size > c.cfg.MaxBytes {
		return slipway.Errorf(slipway.CodeTooLarge, "the repository %s has more than %d MiB: leave out what is not needed", c.from.shown, c.cfg.MaxBytes>>20)
	}
	return nil
}

// hostRefused is ssh's answer to a host whose key is not the one it should have.
const hostRefused = "Host key verification failed."

// said returns what git complained about in one line, without credentials.
func (c checkout) said(stderr string) string {
	stderr = strings.ReplaceAll(stderr, c.from.url, c.from.shown)
	var lines []string
	for line := range strings.Lines(stderr) {
		line = strings.TrimSpace(line)
		if text, ok := strings.CutPrefix(line, "fatal: "); ok {
			lines = append(lines, text)
		} else if text, ok := strings.CutPrefix(line, "error: "); ok {
			lines = append(lines, text)
		} else if strings.Contains(line, "Permission denied (") || line == hostRefused || strings.HasPrefix(line, "Load key ") {
			lines = append(lines, strings.ReplaceAll(line, c.lent.dir, "")) // ssh's own words
		}
	}
	if len(lines) == 0 {
		return strings.Join(strings.Fields(stderr), " ")
	}
	return strings.Join(lines, "; ")
}

// explain turns a failed fetch into a sentence that names the value and the remedy.
func (c checkout) explain(ctx context.Context, what ref, err error) error {
	var f *failure
	if !errors.As(err, &f) {
		return err
	}
	has := func(texts ...string) bool {
		for _, t := range texts {
			if strings.Contains(f.text, t) {
				return true
			}
		}
		return false
	}
	switch {
	case has(hostRefused):
		return slipway.Errorf(slipway.CodeBadRequest, "the host of the repository %s has a key that is not among the known hosts given for it: "+
			"compare what ssh-keyscan prints with what the host publishes, and give the integration that (%s)", c.from.shown, f.text)
	case has("Permission denied (", "Load key ") && c.lent.PrivateKey != "":
		return slipway.Errorf(slipway.CodeBadRequest, "the host of the repository %s does not accept the integration's deploy key: "+
			"add its public half to the repository's deploy keys, or give the integration another (%s)", c.from.shown, f.text)
	case has("find remote ref", "not our ref", "unadvertised object"):
		return c.missing(ctx, what)
	case has("resolve host", "Connection refused", "Connection timed out", "Could not connect", "Failed to connect", "Network is unreachable"):
		return slipway.Errorf(slipway.CodeUnavailable, "the host of the repository %s cannot be reached: check repo_url and the network (%s)", c.from.shown, f.text)
	case has("ould not read Username", "Authentication failed", "Permission denied", "terminal prompts disabled"):
		return slipway.Errorf(slipway.CodeBadRequest, "the repository %s does not exist or needs credentials that this machine does not have: check repo_url (%s)", c.from.shown, f.text)
	case has("not found", "does not exist", "not appear to be a git repository", "not a git repository"):
		return slipway.Errorf(slipway.CodeBadRequest, "the repository %s does not exist: check repo_url (%s)", c.from.shown, f.text)
	}
	return slipway.Errorf(slipway.CodeBadRequest, "%s of the repository %s cannot be fetched: %s", what, c.from.shown, f.text)
}
