package command_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/keeper"
	"github.com/slipway-dev/slipway/toolchain/command"
)

func TestMain(m *testing.M) {
	if keeper.Is(os.Args) {
		os.Exit(keeper.Run())
	}
	os.Exit(m.Run())
}

func run(t *testing.T, ctx context.Context, script string, log func(string)) error {
	t.Helper()
	dir := t.TempDir()
	return command.Run(ctx, command.Command{Dir: dir, Home: filepath.Join(dir, "home"), Keep: keeper.Self, Args: []string{"sh", "-c", script}, Show: script}, log)
}

// alive counts the processes whose command line has the text.
func alive(t *testing.T, text string) int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(files) == 0 {
		t.Fatal("the system shows no processes in /proc, so what was left running cannot be told")
	}
	n := 0
	for _, file := range files {
		if raw, err := os.ReadFile(file); err == nil && bytes.Contains(raw, []byte(text)) {
			n++
		}
	}
	return n
}

func TestRunKillsWhatACommandLeaves(t *testing.T) {
	t.Parallel()
	script := "sleep 86411 & setsid sleep 86411 & (env -i setsid sh -c 'sleep 86411 & sleep 86411' &) ; " +
		"until [ $(pgrep -xfc 'sleep 86411') = 4 ]; do :; done; echo started"
	var lines []string
	if err := run(t, t.Context(), script, func(l string) { lines = append(lines, l) }); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(lines, "|"); got != "started" {
		t.Errorf("got %q, want %q", got, "started")
	}
	if n := alive(t, "86411"); n != 0 {
		t.Errorf("%d processes are left", n)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	why := errors.New("the lease is lost")
	ctx, cancel := context.WithCancelCause(t.Context())
	err := run(t, ctx, "setsid sleep 86422 & (env -i setsid sleep 86422 &) ; until [ $(pgrep -xfc 'sleep 86422') = 2 ]; do :; done; echo ready; sleep 86422", func(string) { cancel(why) })
	if !errors.Is(err, why) {
		t.Errorf("got %v, want %v", err, why)
	}
	if n := alive(t, "86422"); n != 0 {
		t.Errorf("%d processes are left", n)
	}
}

func TestRunSaysWhyInOneSentence(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		"echo hello; exit 3": "`echo hello; exit 3` failed with exit code 3: hello",
		"exit 4":             "`exit 4` failed with exit code 4",
		"echo 'Error: x is wrong'; echo '    at f (a.js:1)'; echo; echo 'Node.js v20'; exit 1":                                                                "exit code 1: Error: x is wrong",
		"printf 'npm error code E404\\nnpm error 404 Not Found - GET u\\nnpm error 404\\nnpm error A complete log of this run can be found in: l\\n'; exit 1": "1: npm error 404 Not Found - GET u",
		"printf '  × No solution found:\\n  ╰─▶ Because a was not\\n      found, bad.\\n'; exit 1":                                                            "1: No solution found: Because a was not found, bad.",
		"kill -9 $$": "by signal killed",
	} {
		err := run(t, t.Context(), script, func(string) {})
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("got %v, want %q at its end", err, want)
		}
	}
	err := command.Run(t.Context(), command.Command{Dir: t.TempDir(), Home: t.TempDir(), Args: []string{"no-such-program-here"}}, func(string) {})
	if slipway.ErrorCode(err) != slipway.CodeInvalid || !strings.Contains(err.Error(), "not installed") {
		t.Errorf("got %v", err)
	}
}

func TestRunHidesThePlatformsEnvironment(t *testing.T) {
	t.Setenv("SLIPWAY_MASTER_KEY", "canary")
	var out strings.Builder
	if err := run(t, t.Context(), "env", func(l string) { out.WriteString(l) }); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "canary") || !strings.Contains(out.String(), "CI=1") {
		t.Errorf("got the environment %q", out.String())
	}
}

func TestRunKeepsLongLinesWhole(t *testing.T) {
	t.Parallel()
	var lines []string
	if err := run(t, t.Context(), "head -c 200000 /dev/zero | tr '\\0' x; echo secret; head -c 3000000 /dev/zero | tr '\\0' y; echo; echo end", func(l string) { lines = append(lines, l) }); err != nil {
		t.Fatal(err)
	}
	if len(lines) != 3 || len(lines[0]) != 200006 || !strings.HasSuffix(lines[0], "secret") || len(lines[1]) != 1<<20 || lines[2] != "end" {
		t.Errorf("got %d lines", len(lines))
	}
}

// TestReapEndsWhatAKilledPlatformLeft stands for a platform that was killed in a build: nobody waits for the command.
func TestReapEndsWhatAKilledPlatformLeft(t *testing.T) {
	t.Parallel()
	root, other := t.TempDir(), t.TempDir()
	ready := make(chan string, 2)
	ended := make(chan error, 2)
	for _, r := range []string{root, other} {
		go func() {
			c := command.Command{Dir: r, Home: r, Root: r, Args: []string{"sh", "-c", "setsid sleep 86466 & echo ready; wait"}}
			ended <- command.Run(t.Context(), c, func(line string) { ready <- line })
		}()
	}
	<-ready
	<-ready
	command.Reap(root)
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "by signal killed") {
		t.Errorf("got %v, want it killed", err)
	}
	if len(ended) > 0 {
		t.Error("the command of another data directory was killed as well")
	}
	command.Reap(other)
	<-ended
}
