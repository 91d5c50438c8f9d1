package process_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/runtime/runtimetest"
)

func signalContext() context.Context { return context.Background() }

func (l *lines) take(_ context.Context, entries []slipway.LogEntry) error {
	l.mu.Lock()
	l.all = append(l.all, entries...)
	l.mu.Unlock()
	select {
	case l.grown <- struct{}{}:
	default:
	}
	return nil
}

// await waits until n lines hold text.
func (l *lines) await(t *testing.T, text string, n int) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for l.has(text) < n {
		select {
		case <-l.grown:
		case <-deadline:
			t.Fatalf("got %d lines with %q, want %d", l.has(text), text, n)
		}
	}
}

func ready(t *testing.T, h *harness, w slipway.Workload) slipway.Observed {
	t.Helper()
	if err := h.rt.Ensure(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	return runtimetest.Await(t, h.rt, w, "ready", runtimetest.InPhase(slipway.PhaseReady))
}

func TestSecretsReachTheEnvironmentAndNothingElse(t *testing.T) {
	t.Setenv("PLATFORM_SECRET", "platform-value")
	h := open(t)
	w := h.Workload(t, "d1", runtimetest.Good)
	ready(t, h, w)
	h.sink.await(t, "token [redacted]", 1)
	h.sink.await(t, "plain text with [redacted]", 1)
	env, _ := os.ReadFile(filepath.Join(h.root, "deployments", "d1", "env.json"))
	if !bytes.Contains(env, []byte("TOKEN=s3cr3t-value")) || bytes.Contains(env, []byte("platform-value")) {
		t.Errorf("environment of the workload: %s", env)
	}
	state, _ := os.ReadFile(filepath.Join(h.root, "run", w.RevisionID, "state.json"))
	if bytes.Contains(state, []byte("s3cr3t")) {
		t.Errorf("state holds a secret: %s", state)
	}
	if n := h.sink.has("s3cr3t"); n != 0 {
		t.Errorf("%d log lines hold the secret", n)
	}
	all, _ := h.rt.Observe(t.Context(), "d1")
	if got := strings.Join(all[0].LastLines, "\n"); strings.Contains(got, "s3cr3t") || !strings.Contains(got, "hello from") {
		t.Errorf("last lines: %s", got)
	}
}

func TestLogsAreNeitherLostNorDoubledOverARestart(t *testing.T) {
	t.Parallel()
	h := open(t)
	w := h.Workload(t, "d1", runtimetest.Good)
	w.Env["LINES"] = "20000"
	ready(t, h, w)
	h.sink.await(t, "hello", 1)
	for range 5 {
		h.Restart(t)
		if _, err := h.rt.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := h.rt.Ensure(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	h.sink.await(t, "line 19999", 1)
	if got := h.sink.has("line "); got != 20000 {
		t.Errorf("got %d lines, want 20000", got)
	}
}

func TestTheLastWordsOfARemovedWorkloadAreDelivered(t *testing.T) {
	t.Parallel()
	h := open(t)
	w := h.Workload(t, "d1", runtimetest.Good)
	ready(t, h, w)
	if err := h.rt.Drain(t.Context(), "d1", w.RevisionID); err != nil {
		t.Fatal(err)
	}
	runtimetest.Await(t, h.rt, w, "exited", runtimetest.InPhase(slipway.PhaseExited))
	if err := h.rt.Remove(t.Context(), "d1", w.RevisionID); err != nil {
		t.Fatal(err)
	}
	if h.sink.has("bye without a line end") != 1 {
		t.Error("the last line was not delivered before remove returned")
	}
}

func TestRemoveLeavesNoOrphan(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"remove", "crash"} {
		h := open(t)
		w := h.Workload(t, "d1", runtimetest.Good)
		w.Env["CHILD"] = "1"
		ready(t, h, w)
		data, err := os.ReadFile(filepath.Join(h.root, "deployments", "d1", "child.pid"))
		if err != nil {
			t.Fatal(err)
		}
		child, _ := strconv.Atoi(string(data))
		if how == "crash" {
			h.Kill(t, w.RevisionID)
			runtimetest.Await(t, h.rt, w, "exited", runtimetest.InPhase(slipway.PhaseExited))
		} else if err := h.rt.Remove(t.Context(), "d1", w.RevisionID); err != nil {
			t.Fatal(err)
		}
		if alive(child) {
			t.Errorf("%s: the worker lives on", how)
		}
	}
}

func alive(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !bytes.Contains(data, []byte(") Z "))
}

func TestAWorkloadThatFailsItsHealthChecksIsKilled(t *testing.T) {
	t.Parallel()
	h := open(t)
	w := h.Workload(t, "d1", runtimetest.Good)
	w.Env["SICK"] = "1"
	if err := h.rt.Ensure(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	o := runtimetest.Await(t, h.rt, w, "exited", runtimetest.InPhase(slipway.PhaseExited))
	if !strings.Contains(o.Probe, "3 failed health checks") || !strings.Contains(o.Probe, "503") {
		t.Errorf("probe: got %q", o.Probe)
	}
}

// TestKillOfThePlatform kills -9 a platform at many moments around a start; the next one must know every process.
func TestKillOfThePlatform(t *testing.T) {
	t.Parallel()
	self, _ := os.Executable()
	for i := range 25 {
		h := open(t)
		w := h.Workload(t, "d1", runtimetest.Good)
		text, _ := json.Marshal(w)
		cmd := exec.Command(self, "platform", h.root, string(text))
		out, _ := cmd.StdoutPipe()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		scan := bufio.NewScanner(out)
		scan.Scan()
		if got := scan.Text(); got != "starting" {
			t.Fatalf("platform says %q", got)
		}
		time.Sleep(time.Duration(i) * 200 * time.Microsecond) // the moment of the kill, not a synchronisation
		_ = cmd.Process.Signal(syscall.SIGKILL)
		_ = cmd.Wait()
		if _, err := h.rt.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := len(processesOf(h.root))
		ready(t, h, w)
		if got := processesOf(h.root); len(got) != 1 {
			t.Errorf("kill %d: %d agent servers run (%d before), want 1: %v", i, len(got), before, got)
		}
		h.removeAll()
		if got := processesOf(h.root); len(got) != 0 {
			t.Errorf("kill %d: %v left", i, got)
		}
	}
}

// processesOf returns the agent servers below root that are alive.
func processesOf(root string) []int {
	entries, _ := os.ReadDir("/proc")
	var out []int
	for _, e := range entries {
		line, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if pid, _ := strconv.Atoi(e.Name()); err == nil && bytes.Contains(line, []byte(filepath.Join(root, "run")+"/")) && alive(pid) {
			out = append(out, pid)
		}
	}
	return out
}

func TestStopEndsEverythingAndLeavesTheRecords(t *testing.T) {
	t.Parallel()
	h := open(t)
	good, stubborn := h.Workload(t, "d1", runtimetest.Good), h.Workload(t, "d1", runtimetest.Stubborn)
	ready(t, h, good)
	ready(t, h, stubborn)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := h.rt.Stop(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	h.Restart(t)
	found, err := h.rt.Recover(t.Context())
	if err != nil || len(found) != 2 {
		t.Fatalf("recover: %v, %v", found, err)
	}
	for _, o := range found {
		if o.Phase != slipway.PhaseExited {
			t.Errorf("after stop: %+v", o)
		}
	}
	if got := processesOf(h.root); len(got) != 0 {
		t.Errorf("%v still run", got)
	}
}

func TestTheLogsPlaceOnDiskIsBounded(t *testing.T) {
	t.Parallel()
	h := open(t)
	w := h.Workload(t, "d1", runtimetest.Good)
	w.Env["LINES"] = "100000"
	ready(t, h, w)
	h.sink.await(t, "line 99999", 1)
	// Offset and hole follow the sink; a restart waits for the tailer, so that both are in place.
	h.Restart(t)
	var st syscall.Stat_t
	if err := syscall.Stat(filepath.Join(h.root, "run", w.RevisionID, "output.log"), &st); err != nil {
		t.Fatal(err)
	}
	if onDisk := st.Blocks * 512; st.Size < 3<<20 || onDisk > 1<<20 {
		t.Errorf("%d bytes were written, %d are on disk, want at most 1 MiB", st.Size, onDisk)
	}
	if _, err := h.rt.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := h.rt.Ensure(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	all, err := h.rt.Observe(t.Context(), "d1")
	if err != nil || len(all) != 1 || len(all[0].LastLines) != slipway.MaxLastLines || all[0].LastLines[slipway.MaxLastLines-1] != "line 99999" {
		t.Errorf("after the hole was made: %+v, %v", all, err)
	}
}

func TestAnExitWhileThePlatformIsAwayIsSaidToBeUnknown(t *testing.T) {
	t.Parallel()
	h := open(t)
	w := h.Workload(t, "d1", runtimetest.Good)
	ready(t, h, w)
	pid := h.pid(t, w.RevisionID)
	h.rt.Close()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for alive(pid) {
		time.Sleep(time.Millisecond) // nobody tells: the platform is away
	}
	h.begin()
	found, err := h.rt.Recover(t.Context())
	if err != nil || len(found) != 1 {
		t.Fatalf("recover: %v, %v", found, err)
	}
	if o := found[0]; o.Phase != slipway.PhaseExited || o.ExitCode != -1 || !strings.Contains(o.Probe, "exit code unknown") {
		t.Errorf("recovered %+v", o)
	}
	ready(t, h, w)
}

func TestAnImageIsRefusedWithWhatToDo(t *testing.T) {
	t.Parallel()
	h := open(t)
	w := h.Workload(t, "d1", runtimetest.Good)
	w.Image = "registry.test/acme/agent@sha256:" + strings.Repeat("a", 64)
	err := h.rt.Ensure(t.Context(), w)
	if slipway.ErrorCode(err) != slipway.CodeInvalid || !strings.Contains(err.Error(), w.Image) || !strings.Contains(err.Error(), "internal_source") {
		t.Errorf("%v, want CodeInvalid that names the image and a remedy", err)
	}
}
