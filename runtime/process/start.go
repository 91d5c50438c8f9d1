package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/slipway-dev/slipway"
)

const defaultGrace = 180 // seconds, agent-server reference 18

// gate waits for a line on descriptor 3 and then becomes the agent server, in the same process. If slipway dies before it
// has saved the process's number and sent that line, the gate reads the end of the pipe and exits.
const gate = `read -r go <&3 || exit 1; exec 3<&-; exec "$@"`

// start begins a new attempt. The process is let through its gate only when its number is saved, so that a kill of
// slipway at any moment leaves no process that nobody knows.
func (w *workload) start(wl slipway.Workload) error {
	if wl.Image != "" {
		return slipway.Errorf(slipway.CodeInvalid, "this data plane runs deployments as processes of its machine and cannot run the container image %q; "+
			"deploy the source itself (revision_source internal_source or githost), or deploy to a data plane that runs containers", wl.Image)
	}
	bundle := slipway.BundlePath(w.rt.cfg.BundleDir, wl.ArtifactDigest)
	if err := w.fetch(wl.ArtifactDigest, bundle); err != nil {
		return err
	}
	w.begin(wl)
	err := w.attempt(wl, bundle)
	if err != nil {
		w.exited(-1, err.Error())
	}
	return err
}

// fetch brings the bundle to this machine if it is not there.
func (w *workload) fetch(digest, bundle string) error {
	_, err := os.Stat(filepath.Join(bundle, slipway.BundleFile))
	if err == nil {
		return nil
	}
	if w.rt.cfg.Fetch != nil {
		err = w.rt.cfg.Fetch(w.rt.ctx, digest)
	}
	if err == nil {
		return nil
	}
	if code := slipway.ErrorCode(err); w.rt.cfg.Fetch != nil && code != slipway.CodeNotFound && code != slipway.CodeInvalid {
		return fmt.Errorf("fetch artifact %s: %w", digest, err)
	}
	return slipway.Errorf(slipway.CodeInvalid, "the artifact %q is not on this machine; redeploy to build it again: %w", digest, err)
}

func (w *workload) attempt(wl slipway.Workload, bundle string) error {
	if err := w.state.save(w.dir); err != nil {
		return err
	}
	waits, opens, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start agent server: %w", err)
	}
	defer opens.Close()
	cmd, err := w.launch(wl, bundle, waits)
	_ = waits.Close()
	if err != nil {
		return err
	}
	h, err := open(cmd.Process.Pid)
	if err != nil {
		return errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	w.mu.Lock()
	w.state.PID, w.state.PIDStart = h.pid, h.start
	err = w.state.save(w.dir)
	w.mu.Unlock()
	if err == nil {
		_, err = opens.WriteString("go\n")
	}
	if err != nil {
		h.close()
		return errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	w.follow(w.rt.ctx, h, func() (int, string) { return exitOf(cmd) })
	return nil
}

// begin sets the state of the next attempt.
func (w *workload) begin(wl slipway.Workload) {
	w.mu.Lock()
	defer w.mu.Unlock()
	old := w.state
	w.probed, w.failure, w.killed = "", "", ""
	w.state = state{
		DeploymentID: wl.DeploymentID, RevisionID: wl.RevisionID, BootID: w.rt.boot, StartedAt: time.Now().UTC(),
		Attempt: old.Attempt + 1, Grace: graceSeconds(wl.Env), LogStart: size(filepath.Join(w.dir, logFile)),
	}
	if old.Attempt > 0 {
		w.state.Restarts = old.Restarts + 1
	}
	_ = os.Remove(old.readyFile(w.dir))
	_ = os.Remove(w.state.readyFile(w.dir))
}

func (w *workload) launch(wl slipway.Workload, bundle string, waits *os.File) (*exec.Cmd, error) {
	output, err := os.OpenFile(filepath.Join(w.dir, logFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start agent server: %w", err)
	}
	defer output.Close()
	data := w.rt.dataDir(wl.DeploymentID)
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, fmt.Errorf("start agent server: %w", err)
	}
	argv := append(append([]string{}, w.rt.cfg.Command...),
		"--bundle", bundle, "--data", data, "--listen", "127.0.0.1:0", "--ready-file", w.state.readyFile(w.dir))
	cmd := exec.Command("/bin/sh", append([]string{"-c", gate, "slipway"}, argv...)...)
	cmd.ExtraFiles = []*os.File{waits}
	cmd.Dir = w.dir
	cmd.Env = w.rt.cfg.environment(wl)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start agent server: %w", err)
	}
	return cmd, nil
}

func exitOf(cmd *exec.Cmd) (int, string) {
	_ = cmd.Wait() // the state below says what the error would
	ps := cmd.ProcessState
	if ps == nil {
		return -1, ""
	}
	if ws, ok := ps.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return -1, "ended by signal: " + ws.Signal().String()
	}
	return ps.ExitCode(), ""
}

func graceSeconds(env map[string]string) int {
	if n, err := strconv.Atoi(env["BG_JOB_SHUTDOWN_GRACE_PERIOD_SECS"]); err == nil && n >= 0 {
		return min(n, 3600)
	}
	return defaultGrace
}

func size(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
