package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// detached counts the processes that sleep so long.
func detached(seconds string) (n int) {
	for _, p := range processes() {
		if strings.HasPrefix(p.cmdline, "sleep\x00"+seconds+"\x00") {
			n++
		}
	}
	return n
}

// runs waits until so many sleep.
func (m *machine) runs(what, seconds string, want int) {
	m.t.Helper()
	m.eventually(what, func() error {
		if n := detached(seconds); n != want {
			return fmt.Errorf("%d processes, want %d", n, want)
		}
		return nil
	})
}

// TestNothingEscapes builds and runs code that detaches processes with a session and an empty environment of their own: they
// end with a killed platform, with an interrupted build, with a killed agent server and with their deployment.
func TestNothingEscapes(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.up()
	source := m.source("start")
	escape := "(env -i setsid sh -c 'sleep 86501 & exec sleep 86501' &)\nsleep 86501\n"
	check(t, os.WriteFile(filepath.Join(source, "escape.sh"), []byte(escape), 0o644))
	_, err := m.slipway("deploy", source, "--name", "stuck", "--install-command", "sh escape.sh", "--no-wait")
	check(t, err)
	m.runs("the build detaches", "86501", 3)
	m.kill()
	m.runs("the platform is killed", "86501", 0)
	m.up()
	m.runs("the build begins again", "86501", 3)
	_, err = m.slipway("interrupt", "stuck")
	check(t, err)
	m.runs("the build is interrupted", "86501", 0)

	source = m.source("free")
	graphs := filepath.Join(source, "graphs.mjs")
	raw, err := os.ReadFile(graphs)
	check(t, err)
	code := string(raw) + "\nimport { spawn } from \"node:child_process\";\n" +
		"spawn(\"/bin/sh\", [\"-c\", \"sleep 86502 & exec sleep 86502\"], { detached: true, env: {}, stdio: \"ignore\" }).unref();\n"
	check(t, os.WriteFile(graphs, []byte(code), 0o644))
	_, err = m.slipway("deploy", source, "--name", "app")
	check(t, err)
	m.runs("the graphs detach", "86502", 2)
	before := m.servers()
	for _, pid := range before {
		check(t, killPID(pid))
	}
	m.eventually("another agent server serves", func() error {
		if now := m.servers(); len(now) != 1 || now[0] == before[0] {
			return fmt.Errorf("agent servers %v after %v", now, before)
		}
		return m.settled("app", "free")
	})
	m.runs("what the killed one left is gone", "86502", 2)
	_, err = m.slipway("delete", "app", "--purge")
	check(t, err)
	m.runs("the deployment is gone", "86502", 0)
}
