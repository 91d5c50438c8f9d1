package cli_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/cli"
	"github.com/spf13/cobra"
)

// control is a control service that answers what the deploy command needs and remembers what it was sent.
type control struct {
	*httptest.Server
	exists  bool
	archive []byte
	patch   map[string]any
	created map[string]any
	status  string
	line    string
}

func newControl(t *testing.T) *control {
	c := &control{status: "DEPLOYED", line: "added 22 packages"}
	mux := http.NewServeMux()
	deployment := func() map[string]any {
		return map[string]any{
			"id": "d1", "name": "desk", "source": "internal_source", "status": "READY", "latest_revision_id": "r1",
			"secrets":       []any{map[string]any{"name": "OLD", "value": "••••••••"}},
			"source_config": map[string]any{"custom_url": "http://x/d/desk"}, "source_revision_config": map[string]any{},
		}
	}
	mux.HandleFunc("GET /v2/deployments", func(w http.ResponseWriter, _ *http.Request) {
		list := []any{}
		if c.exists {
			list = append(list, deployment())
		}
		answer(w, map[string]any{"resources": list, "offset": len(list)})
	})
	mux.HandleFunc("POST /v2/deployments", func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewDecoder(r.Body).Decode(&c.created)
		d := deployment()
		d["secrets"] = []any{}
		answer(w, d)
	})
	mux.HandleFunc("POST /v2/deployments/d1/upload-url", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"upload_url": c.URL + "/up", "object_path": "objects/1"})
	})
	mux.HandleFunc("PUT /up", func(_ http.ResponseWriter, r *http.Request) { c.archive, _ = io.ReadAll(r.Body) })
	mux.HandleFunc("PATCH /v2/deployments/d1", func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewDecoder(r.Body).Decode(&c.patch)
		answer(w, deployment())
	})
	mux.HandleFunc("GET /v2/deployments/d1", func(w http.ResponseWriter, _ *http.Request) { answer(w, deployment()) })
	mux.HandleFunc("GET /v2/deployments/d1/revisions/r1", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"id": "r1", "status": c.status, "status_reason": "npm ci ended with exit code 1"})
	})
	mux.HandleFunc("GET /v2/deployments/d1/revisions/r1/logs", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"logs": []any{map[string]any{"id": "1", "timestamp": 1, "level": "INFO", "message": c.line}}, "next_offset": nil})
	})
	c.Server = httptest.NewServer(mux)
	t.Cleanup(c.Close)
	return c
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// run executes one command line against the control service.
func (c *control) run(args ...string) (string, error) {
	var out bytes.Buffer
	root := &cobra.Command{Use: "slipway", SilenceErrors: true, SilenceUsage: true}
	env := map[string]string{"SLIPWAY_URL": c.URL, "SLIPWAY_API_KEY": "k"}
	root.AddCommand(cli.Commands(root, cli.Environment{
		Version: "test", Getenv: func(k string) string { return env[k] }, Out: &out,
	})...)
	cli.Helpful(root)
	root.SetArgs(args)
	err := root.Execute()
	return out.String(), err
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func names(t *testing.T, archive []byte) []string {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			slices.Sort(found)
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, h.Name)
	}
}

func TestDeployPacksTheDirectoryUnderItsIgnoreRules(t *testing.T) {
	t.Parallel()
	c, dir := newControl(t), filepath.Join(t.TempDir(), "My App")
	write(t, dir, map[string]string{
		"agentgraph.json": `{"graphs":{"a":"./a.mjs:g"}}`, "a.mjs": "x", "node_modules/m/index.js": "x", ".git/HEAD": "x",
		"secret.txt": "x", "out/b": "x", ".gitignore": "out/\n", ".dockerignore": "secret.txt\n",
	})
	if out, err := c.run("deploy", dir, "--secret", "A=1"); err != nil {
		t.Fatalf("deploy: %v\n%s", err, out)
	}
	want := []string{".dockerignore", ".gitignore", "a.mjs", "agentgraph.json"}
	if got := names(t, c.archive); !slices.Equal(got, want) {
		t.Errorf("archive holds %v, want %v", got, want)
	}
	if got := c.created["name"]; got != "my-app" {
		t.Errorf("created %v, want my-app", got)
	}
	config := c.patch["source_revision_config"].(map[string]any)
	if config["agentgraph_config_path"] != "agentgraph.json" || config["source_tarball_path"] != "objects/1" {
		t.Errorf("patched with %v", config)
	}
}

func TestDeployRootsTheArchiveAtTheCommonAncestor(t *testing.T) {
	t.Parallel()
	c, dir := newControl(t), t.TempDir()
	write(t, dir, map[string]string{
		"apps/one/langgraph.json": `{"dependencies":[".","../../libs/shared"],"graphs":{"a":"./a.py:g"}}`, "apps/one/a.py": "x",
		"libs/shared/pyproject.toml": "x", "libs/other/x.py": "x",
	})
	if out, err := c.run("deploy", filepath.Join(dir, "apps/one")); err != nil {
		t.Fatalf("deploy: %v\n%s", err, out)
	}
	want := []string{"apps/one/a.py", "apps/one/langgraph.json", "libs/shared/pyproject.toml"}
	if got := names(t, c.archive); !slices.Equal(got, want) {
		t.Errorf("archive holds %v, want %v", got, want)
	}
	if got := c.patch["source_revision_config"].(map[string]any)["agentgraph_config_path"]; got != "apps/one/langgraph.json" {
		t.Errorf("config path is %v", got)
	}
}

func TestDeployKeepsStoredSecretsAndAddsTheGiven(t *testing.T) {
	t.Parallel()
	c, dir := newControl(t), t.TempDir()
	c.exists = true
	write(t, dir, map[string]string{
		"agentgraph.json": `{"graphs":{"a":"./a.mjs:g"}}`, "prod.env": "# keys\nexport B=\"two words\"\nEMPTY=\nC=3 # three\n",
	})
	if out, err := c.run("deploy", dir, "--env-file", filepath.Join(dir, "prod.env"), "--secret", "C=4"); err != nil {
		t.Fatalf("deploy: %v\n%s", err, out)
	}
	got, _ := json.Marshal(c.patch["secrets"])
	want := `[{"name":"B","value":"two words"},{"name":"C","value":"4"},{"name":"OLD","value":"••••••••"}]`
	if string(got) != want {
		t.Errorf("secrets are %s, want %s", got, want)
	}
}

func TestDeployFailsWithReasonAndLastLines(t *testing.T) {
	t.Parallel()
	c, dir := newControl(t), t.TempDir()
	c.status = "BUILD_FAILED"
	write(t, dir, map[string]string{"agentgraph.json": `{"graphs":{"a":"./a.mjs:g"}}`})
	out, err := c.run("deploy", dir)
	if err == nil || !strings.Contains(err.Error(), "npm ci ended with exit code 1") {
		t.Errorf("error is %v, want the reason", err)
	}
	if !strings.Contains(out, "added 22 packages") {
		t.Errorf("output lacks the last log lines:\n%s", out)
	}
}

func TestDeployPrintsOneJSONEventPerLine(t *testing.T) {
	t.Parallel()
	c, dir := newControl(t), t.TempDir()
	write(t, dir, map[string]string{"agentgraph.json": `{"graphs":{"a":"./a.mjs:g"}}`})
	out, err := c.run("deploy", dir, "--json")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var last map[string]any
	for _, line := range lines {
		last = nil
		if err := json.Unmarshal([]byte(line), &last); err != nil {
			t.Fatalf("not JSON: %q", line)
		}
	}
	if last["event"] != "result" || last["status"] != "succeeded" {
		t.Errorf("last event is %v", last)
	}
}

func TestTheResultIsTheLastEvent(t *testing.T) {
	t.Parallel()
	c, dir := newControl(t), t.TempDir()
	write(t, dir, map[string]string{"agentgraph.json": `{"graphs":{"a":"./a.mjs:g"}}`})
	for _, c.status = range []string{"BUILD_FAILED", "DEPLOY_FAILED"} {
		out, err := c.run("deploy", dir, "--json")
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if err == nil || !strings.Contains(lines[len(lines)-1], `"event":"result"`) {
			t.Errorf("%s: last line %q, error %v; want the result", c.status, lines[len(lines)-1], err)
		}
		if n := strings.Count(out, "added 22"); c.status == "BUILD_FAILED" && n != 1 {
			t.Errorf("the build log came %d times, want once", n)
		}
	}
}

func TestLogLinesDoNotSteerTheTerminal(t *testing.T) {
	t.Parallel()
	c := newControl(t)
	c.exists, c.line = true, "red \x1b[31mtext\x07\rover\nsecond\n"
	out, err := c.run("logs", "desk", "--build")
	if err != nil || strings.ContainsAny(out, "\x1b\x07\r") || !strings.Contains(out, "red [31mtextover\n    second\n") {
		t.Errorf("logs = %q, %v", out, err)
	}
}

func TestMistakesAreExplained(t *testing.T) {
	t.Parallel()
	c, dir := newControl(t), t.TempDir()
	write(t, dir, map[string]string{
		"broken/agentgraph.json": "{\n  \"graphs\": oops\n}", "empty/x": "",
		"dep/agentgraph.json":     `{"dependencies":["./gone"],"graphs":{"a":"./gone/a.py:g"}}`,
		"ignored/agentgraph.json": `{"graphs":{"a":"./a.mjs:g"}}`, "ignored/.gitignore": "*.json\n",
	})
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"deploy", filepath.Join(dir, "broken")}, "line 2, column 13"},
		{[]string{"deploy", filepath.Join(dir, "empty")}, "holds no agentgraph.json or langgraph.json"},
		{[]string{"deploy", filepath.Join(dir, "dep")}, `"gone", which is not a directory`},
		{[]string{"deploy", filepath.Join(dir, "ignored")}, "is left out by .gitignore"},
		{[]string{"deploy", filepath.Join(dir, "gone")}, "is not a directory"},
		{[]string{"deploy", dir, "--ref", "main"}, "--ref goes with --repo"},
		{[]string{"deploy", dir, "--secret", "nonsense"}, "KEY=VALUE"},
		{[]string{"get", "nobody"}, `there is no deployment named "nobody"`},
		{[]string{"get"}, "see `slipway get --help`"},
		{[]string{"lisst"}, "list; see `slipway --help`"},
		{[]string{"secrets", "put"}, "see `slipway secrets --help`"},
		{[]string{"list", "--bogus"}, "unknown flag: --bogus; see `slipway list --help`"},
	} {
		_, err := c.run(test.args...)
		if err == nil || !strings.Contains(cli.Message(err), test.want) {
			t.Errorf("%v: error is %v, want %q", test.args, err, test.want)
		}
	}
}

func TestNoServerIsExplained(t *testing.T) {
	t.Parallel()
	c := newControl(t)
	c.Close()
	_, err := c.run("list")
	if err == nil || !strings.Contains(cli.Message(err), "slipway up") {
		t.Errorf("error is %v, want the remedy", err)
	}
}
