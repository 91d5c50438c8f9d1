package e2e_test

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/slipway-dev/slipway/cli"
)

// TestGeneratedTypeScriptClient generates a client from /openapi.json, has it type-checked strictly together with a
// program that uses it, and runs that against the platform.
func TestGeneratedTypeScriptClient(t *testing.T) {
	t.Parallel()
	modules, err := installed("testdata/generated/ts", "package-lock.json", func(into string) error {
		return command(into, "npm", "ci", "--no-audit", "--no-fund")
	})
	check(t, err)
	m, dir := newMachine(t), project(t, "testdata/generated/ts")
	check(t, os.Symlink(filepath.Join(modules, "node_modules"), filepath.Join(dir, "node_modules")))
	m.up()
	m.describe(filepath.Join(dir, "openapi.json"))
	m.in(dir, "node_modules/.bin/openapi-typescript", "openapi.json", "-o", "schema.d.ts")
	agentServer(t, filepath.Join(dir, "agent.json"))
	m.in(dir, "node_modules/.bin/openapi-typescript", "agent.json", "-o", "agent-schema.d.ts")
	m.in(dir, "node_modules/.bin/tsc", "-p", ".")
	m.in(dir, "node", "out/drive.js")
}

// TestGeneratedPythonClient does the same in Python; a warning of the generator is a defect of the description.
func TestGeneratedPythonClient(t *testing.T) {
	t.Parallel()
	tools, err := installed("testdata/generated/py", "requirements.txt", func(into string) error {
		if err := command(into, "python3", "-m", "venv", "venv"); err != nil {
			return err
		}
		return command(into, "venv/bin/python", "-m", "pip", "install", "-q", "-r", "requirements.txt")
	})
	check(t, err)
	m, dir := newMachine(t), project(t, "testdata/generated/py")
	m.up()
	m.describe(filepath.Join(dir, "openapi.json"))
	m.in(dir, filepath.Join(tools, "venv/bin/openapi-python-client"), "generate", "--path", "openapi.json", "--config", "config.yml",
		"--meta", "none", "--output-path", "slipway_client", "--fail-on-warning")
	m.in(dir, filepath.Join(tools, "venv/bin/python"), "-W", "error", "drive.py")
	agentServer(t, filepath.Join(dir, "agent.json"))
	m.in(dir, filepath.Join(tools, "venv/bin/openapi-python-client"), "generate", "--path", "agent.json", "--config", "config.yml",
		"--meta", "none", "--output-path", "agent_client", "--fail-on-warning")
}

// agentServer saves the agent server's description of its interface.
func agentServer(t *testing.T, path string) {
	t.Helper()
	raw, err := os.ReadFile("../openapi/agent.json")
	check(t, err)
	check(t, os.WriteFile(path, raw, 0o644))
}

// project copies a client project to where it may be built.
func project(t *testing.T, from string) string {
	t.Helper()
	dir := t.TempDir()
	check(t, os.CopyFS(dir, os.DirFS(from)))
	return dir
}

// describe saves the platform's description of its interface.
func (m *machine) describe(path string) {
	m.t.Helper()
	res, err := http.Get(m.url + "/openapi.json")
	check(m.t, err)
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	check(m.t, err)
	check(m.t, os.WriteFile(path, raw, 0o644))
}

// in runs a program of a client project, which finds the platform in its environment.
func (m *machine) in(dir, name string, args ...string) {
	m.t.Helper()
	key, err := cli.ReadCredentials(m.data)
	check(m.t, err)
	if !filepath.IsAbs(name) && filepath.Base(name) != name {
		name = filepath.Join(dir, name)
	}
	cmd := exec.CommandContext(m.t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, m.environ("SLIPWAY_URL="+m.url, "SLIPWAY_API_KEY="+key.APIKey)
	if out, err := cmd.CombinedOutput(); err != nil {
		m.t.Fatalf("%s %v: %v\n%s", filepath.Base(name), args, err, out)
	}
}
