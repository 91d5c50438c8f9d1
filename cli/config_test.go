package cli_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestConfigCheckExplains(t *testing.T) {
	t.Parallel()
	c, dir := newControl(t), t.TempDir()
	c.Close() // it needs no server
	write(t, dir, map[string]string{
		"apps/one/agentgraph.json":   `{"python_version": "3.12", "dependencies": [".", "../../libs/shared"], "graphs": {"a": "./a.py:g"}, "base_image": "x"}`,
		"apps/one/a.py":              "",
		"libs/shared/pyproject.toml": "[build-system]\nbuild-backend = \"hatchling.build\"\n",
		"bad/langgraph.json":         `{"graphs": {"a": "./gone.mjs:g", "b": "nonsense"}, "node_version": "18", "grahps": {}}`,
		"apps/js/agentgraph.json":    `{"graphs": {"a": "./dist/a.mjs:g"}}`, "apps/js/package.json": "{}",
	})
	for _, path := range []string{filepath.Join(dir, "apps/one"), filepath.Join(dir, "apps/one/agentgraph.json")} {
		out, err := c.run("config", "check", path)
		for _, want := range []string{"graph configuration apps/one/agentgraph.json", "graph a: ./a.py:g (python)", "Python 3.12", "a project built by hatch", "ignored: base_image (x)"} {
			if err != nil || !strings.Contains(out, want) {
				t.Errorf("%s: %v, want %q in:\n%s", path, err, want, out)
			}
		}
	}
	out, err := c.run("config", "check", filepath.Join(dir, "bad"))
	if err == nil || !strings.Contains(err.Error(), "langgraph.json would be refused: 3 errors") {
		t.Errorf("got %v, want that it would be refused", err)
	}
	for _, want := range []string{`graphs.b is "nonsense"`, `node_version is "18"`, `"gone.mjs"`, `did you mean "graphs"?`} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in:\n%s", want, out)
		}
	}
	out, err = c.run("config", "check", filepath.Join(dir, "bad"), "--json")
	var e struct {
		Valid  bool
		Errors []struct{ Key, Message string }
	}
	if json.Unmarshal([]byte(out), &e) != nil || err == nil || e.Valid || len(e.Errors) != 3 || e.Errors[0].Key == "" {
		t.Errorf("got %v, %s", err, out)
	}
	if _, err = c.run("config", "check", filepath.Join(dir, "apps/js")); err == nil {
		t.Error("a file that is not there passed")
	}
	if out, err = c.run("config", "check", filepath.Join(dir, "apps/js"), "--build-command", "npm run build"); err != nil || !strings.Contains(out, "`npm run build` in ") {
		t.Errorf("with a command that makes it: %v\n%s", err, out)
	}
	if _, err = c.run("config", "check", filepath.Join(dir, "nowhere")); err == nil || !strings.Contains(err.Error(), "is not a directory") {
		t.Errorf("got %v", err)
	}
}

func TestDeployPacksTheWholeUVWorkspace(t *testing.T) {
	t.Parallel()
	c, dir := newControl(t), t.TempDir()
	write(t, dir, map[string]string{
		"packages/agent/agentgraph.json": `{"python_version": "3.11", "source": {"kind": "uv", "root": "../.."}, "graphs": {"a": "./a.py:g"}}`, "packages/agent/a.py": "x",
		"packages/lib/pyproject.toml": "x", "pyproject.toml": "x", "uv.lock": "x", ".dockerignore": "docs\n!docs/kept.md\n", ".gitignore": "uv.lock\n", "docs/a.md": "x", "docs/kept.md": "x",
	})
	if out, err := c.run("deploy", filepath.Join(dir, "packages/agent")); err != nil {
		t.Fatalf("deploy: %v\n%s", err, out)
	}
	want := []string{".dockerignore", ".gitignore", "docs/kept.md", "packages/agent/a.py", "packages/agent/agentgraph.json", "packages/lib/pyproject.toml", "pyproject.toml", "uv.lock"}
	got := names(t, c.archive)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("archive holds %v, want %v", got, want)
	}
	if got := c.patch["source_revision_config"].(map[string]any)["agentgraph_config_path"]; got != "packages/agent/agentgraph.json" {
		t.Errorf("config path is %v", got)
	}
}

func TestDeployRefusesWhatTheServerWouldRefuse(t *testing.T) {
	t.Parallel()
	c, dir := newControl(t), t.TempDir()
	write(t, dir, map[string]string{"agentgraph.json": `{"graphs": {"a": "nonsense"}, "node_version": 1}`})
	_, err := c.run("deploy", dir)
	if err == nil || !strings.Contains(err.Error(), "graphs.a") || !strings.Contains(err.Error(), "node_version") || c.archive != nil {
		t.Errorf("got %v, want all that is wrong and no upload", err)
	}
}
