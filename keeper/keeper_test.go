package keeper_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/keeper"
)

// role makes this binary a starter that waits to be killed.
const role = "KEEPER_TEST_STARTER"

func TestMain(m *testing.M) {
	if keeper.Is(os.Args) {
		os.Exit(keeper.Run())
	}
	if script := os.Getenv(role); script != "" {
		cmd := exec.Command("/bin/sh", "-c", script)
		cmd.Stdout = os.Stdout
		p, err := keeper.Start(keeper.Self, cmd)
		if err == nil {
			err = p.Wait()
		}
		fmt.Println("ended:", err)
		os.Exit(1)
	}
	if runtime.GOOS != "linux" {
		os.Exit(0) // there are no keepers
	}
	os.Exit(m.Run())
}

// escape is shell that starts processes which leave their group and session, have an empty environment and have lost their
// parent, and then says so.
func escape(mark string) string {
	return "sleep " + mark + " & (env -i setsid sh -c 'sleep " + mark + " & env -i setsid sleep " + mark + " & exec sleep " + mark + "' &); " +
		"(setsid nohup sleep " + mark + " >/dev/null 2>&1 </dev/null &); until [ $(pgrep -xfc 'sleep " + mark + "') = 5 ]; do :; done; echo away\n"
}

// running lists the processes whose command line has the text.
func running(t *testing.T, text string) (lines []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(files) == 0 {
		t.Fatal("the system shows no processes in /proc")
	}
	for _, file := range files {
		if raw, err := os.ReadFile(file); err == nil && bytes.Contains(raw, []byte(text)) {
			lines = append(lines, string(bytes.ReplaceAll(raw, []byte{0}, []byte{' '})))
		}
	}
	return lines
}

func gone(t *testing.T, text string) {
	t.Helper()
	if left := running(t, text); len(left) > 0 {
		t.Errorf("still there: %q", left)
	}
}

// start starts a script and returns its output.
func start(t *testing.T, script string, files ...*os.File) (*keeper.Process, *os.File) {
	t.Helper()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = in, in, files
	p, err := keeper.Start(keeper.Self, cmd)
	in.Close()
	if err != nil {
		t.Fatal(err)
	}
	return p, out
}

// hear reads until the script has said the word.
func hear(t *testing.T, out io.Reader, word string) {
	t.Helper()
	var all []byte
	for b := make([]byte, 1); !bytes.HasSuffix(all, []byte(word)); all = append(all, b[0]) {
		if _, err := out.Read(b); err != nil {
			t.Fatalf("it said %q, not %q: %v", all, word, err)
		}
	}
}

func TestWhatAProgramLeavesIsKilledAtItsEnd(t *testing.T) {
	t.Parallel()
	p, out := start(t, escape("91411")+"exit 7")
	hear(t, out, "away")
	err := p.Wait()
	gone(t, "91411")
	var exit *keeper.ExitError
	if !errors.As(err, &exit) || exit.Status.ExitStatus() != 7 || err.Error() != "exit status 7" {
		t.Errorf("got %v, want exit status 7", err)
	}
	if _, err := io.Copy(io.Discard, out); err != nil { // nobody holds its output
		t.Error(err)
	}
}

func TestKillEndsEverything(t *testing.T) {
	t.Parallel()
	p, out := start(t, escape("91422")+"sleep 91422")
	hear(t, out, "away")
	p.Kill()
	p.Kill()
	if err := p.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("got %v, want signal: killed", err)
	}
	gone(t, "91422")
}

func TestADeadStarterEndsEverything(t *testing.T) {
	t.Parallel()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	starter := exec.Command(keeper.Self)
	starter.Env = append(os.Environ(), role+"="+escape("91433")+"sleep 91433")
	starter.Stdout = in
	if err := starter.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	hear(t, out, "away")
	if err := starter.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = starter.Wait()
	if _, err := io.Copy(io.Discard, out); err != nil { // the keeper holds it until the end
		t.Fatal(err)
	}
	gone(t, "91433")
}

// A process that forks and ends again and again is a moving target.
func TestARunawayIsCaught(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "runaway-91444.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nsetsid \"$0\" &\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	p, out := start(t, script+"; "+script+"; "+script+"; echo away; sleep 91444")
	hear(t, out, "away")
	p.Kill()
	_ = p.Wait()
	gone(t, "91444")
}

// A long-lived program's lost children leave no zombies with the keeper.
func TestLostChildrenAreReaped(t *testing.T) {
	t.Parallel()
	p, out := start(t, "for i in 1 2 3 4 5 6 7 8; do (true &); done; until [ \"$(ps -o stat= --ppid $PPID | grep -c Z)\" = 0 ]; do :; done; echo away")
	hear(t, out, "away")
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
}

// Only its line tells a keeper what to do: signals to whoever seems to belong to a service do not.
func TestAKeeperOutlivesFriendlySignals(t *testing.T) {
	t.Parallel()
	p, out := start(t, "kill -TERM $PPID; kill -INT $PPID; kill -HUP $PPID; echo away; kill -SEGV $$")
	hear(t, out, "away")
	if err := p.Wait(); err == nil || !strings.HasPrefix(err.Error(), "signal: segmentation fault") {
		t.Errorf("got %v, want the program's own signal", err)
	}
}

func TestTheProgramDiesWithItsKeeper(t *testing.T) {
	t.Parallel()
	p, out := start(t, "kill -KILL $PPID; exec sleep 91466")
	if err := p.Wait(); err == nil || !strings.Contains(err.Error(), "its keeper ended before it") {
		t.Errorf("got %v", err)
	}
	if _, err := io.Copy(io.Discard, out); err != nil {
		t.Fatal(err)
	}
	gone(t, "91466")
}

func TestTheProgramGetsItsFilesAlone(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, out := start(t, "echo through >&3; exec 3>&-; ls -l /proc/self/fd | grep -c socket; echo away", w)
	w.Close()
	if raw, err := io.ReadAll(r); err != nil || string(raw) != "through\n" { // ends although program and keeper live
		t.Errorf("got %q, %v", raw, err)
	}
	hear(t, out, "0\naway") // the keeper's line is not among them
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
}

func TestTheProgramGetsItsEnvironmentAndDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command("/bin/sh", "-c", "pwd; echo $GOMEMLIMIT $GOMAXPROCS.; env | grep TWICE")
	cmd.Dir, cmd.Env, cmd.Stdout = dir, []string{"TWICE=first", "TWICE=last", "GOMEMLIMIT=nonsense", "LONG=" + strings.Repeat("x", 100_000)}, in
	p, err := keeper.Start(keeper.Self, cmd)
	in.Close()
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := io.ReadAll(out)
	if err := p.Wait(); err != nil || string(raw) != dir+"\nnonsense .\nTWICE=last\n" {
		t.Errorf("got %q, %v", raw, err)
	}
}

func TestWhatCannotStartSaysWhy(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{"/no/such/program": "no such file or directory", "/etc/passwd": "permission denied"} {
		p, err := keeper.Start(keeper.Self, &exec.Cmd{Path: path, Args: []string{path}})
		if err == nil {
			err = p.Wait()
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v, want %q in it", path, err, want)
		}
	}
	if p, err := keeper.Start("/no/such/keeper", exec.Command("/bin/true")); err == nil || !strings.Contains(err.Error(), "start a keeper") {
		t.Errorf("got %v, %v", p, err)
	}
}

func TestWithoutAKeeperTheGroupIsEnded(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("/bin/sh", "-c", "sleep 91477 & sleep 91477")
	p, err := keeper.Start("", cmd)
	if err != nil {
		t.Fatal(err)
	}
	p.Kill()
	var exit *keeper.ExitError
	if err := p.Wait(); !errors.As(err, &exit) || exit.Status.Signal() != syscall.SIGKILL {
		t.Errorf("got %v", err)
	}
	for end := time.Now().Add(time.Minute); len(running(t, "91477")) > 0 && time.Now().Before(end); {
		runtime.Gosched()
	}
	gone(t, "91477")
}
