package layouts_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
)

// layout is one application of testdata and what its graphs answer to {"text": "hi"}.
type layout struct {
	name    string // directory of testdata
	config  string // path of the configuration; "" = found
	install string // the deployment's commands
	build   string
	locked  string // directory whose uv.lock is made first: it names the registry of the machine that made it
	asked   string // `configurable.who` of the run
	shows   string // in the build log
	answers map[string]string
}

func agent(answer string) map[string]string { return map[string]string{"agent": answer} }

// quick are the layouts of `make test`; slow needs more than about 20 seconds each where nothing is cached (`make
// test-layouts`).
func quick() []layout {
	return []layout{
		{name: "py-requirements", answers: agent("requirements hi")},
		{name: "py-src-layout", answers: agent("src hi"), shows: "a project built by setuptools"},
		{name: "py-flat-hatch", answers: agent("hatch hi"), shows: "a project built by hatch"},
		{name: "py-poetry-core", answers: agent("poetry hi"), shows: "a project built by poetry-core"},
		{name: "py-setup", answers: agent("setup hi")},
		{name: "py-module", answers: agent("my_agent.graphs.main hi"), shows: "my_agent.graphs.main:graph"},
		{name: "py-factories", asked: "you", answers: map[string]string{"sync": "sync you hi", "async": "async hi", "context": "context hi"}},
		{name: "py-config-subfolder", config: "deploy/production/langgraph.json", answers: agent("subfolder hi")},
		{name: "py-parent", config: "apps/one/langgraph.json", answers: agent("parent hi")},
		{name: "py-monorepo", answers: map[string]string{"one": "monorepo one hi", "two": "monorepo two hi"}},
		{name: "py-uv-workspace", config: "packages/agent/langgraph.json", locked: ".", answers: agent("workspace more hi"), shows: "uv workspace ../.."},
		{name: "py-uv-project", locked: ".", answers: agent("uv hi")},
		{name: "py-env", answers: agent("env 3 true hi"), shows: "COUNT, ON, WHO"},
		{name: "js-npm", answers: agent("npm hi"), shows: "$ npm ci"},
		{name: "js-default-commonjs", asked: "you", answers: map[string]string{"agent": "commonjs hi", "lazy": "lazy you hi"}},
		{name: "ts-paths", answers: agent("paths typed hi")},
		{name: "mixed", answers: map[string]string{"py": "mixed python hi", "py2": "other python hi", "js": "mixed typescript hi", "js2": "other javascript hi"}},
	}
}

func TestLayouts(t *testing.T) {
	t.Parallel()
	for _, l := range quick() {
		t.Run(l.name, func(t *testing.T) { l.check(t) })
	}
}

// check builds the layout, serves it and asks each of its graphs.
func (l layout) check(t *testing.T) {
	t.Parallel()
	shared.slots <- struct{}{}
	defer func() { <-shared.slots }()
	source := l.source(t)
	began := time.Now()
	bundle, log := l.make(t, source)
	took := time.Since(began)
	if !strings.Contains(log, l.shows) {
		t.Errorf("the build log does not show %q:\n%s", l.shows, log)
	}
	url := serve(t, bundle)
	for id, want := range l.answers {
		if got := ask(t, url, id, l.asked); got != want {
			t.Errorf("graph %s answers %q, want %q", id, got, want)
		}
	}
	t.Logf("built in %s", took.Round(time.Millisecond))
}

// source is the directory of the layout, a copy with its uv.lock where it needs one.
func (l layout) source(t *testing.T) string {
	t.Helper()
	dir := filepath.Join("testdata", l.name)
	if l.locked == "" {
		return dir
	}
	copied := t.TempDir()
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	run(t, filepath.Join(copied, l.locked), uv(t), "lock", "--quiet", "--cache-dir", filepath.Join(shared.cache, "uv"))
	return copied
}

// uv is the uv of this machine, else the one that builds install; the first build makes it.
func uv(t *testing.T) string {
	t.Helper()
	shared.uv.Lock()
	defer shared.uv.Unlock()
	if at, err := exec.LookPath("uv"); err == nil {
		return at
	}
	pattern := filepath.Join(shared.cache, "tools", "uv-*", "bin", "uv")
	if found, _ := filepath.Glob(pattern); len(found) > 0 {
		return found[0]
	}
	layout{name: "py-requirements"}.make(t, filepath.Join("testdata", "py-requirements"))
	found, _ := filepath.Glob(pattern)
	if len(found) == 0 {
		t.Fatal("the builder installed no uv")
	}
	return found[0]
}

func run(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", filepath.Base(name), args, err, out)
	}
}

// make builds a source with the real installers and returns the bundle's directory and the log.
func (l layout) make(t *testing.T, source string) (bundle, log string) {
	t.Helper()
	o := shared.factory.build(slipway.BuildJob{
		Source: slipway.SourceInternalSource, RevisionID: t.Name(), RepoURL: source, ConfigPath: l.config, InstallCommand: l.install, BuildCommand: l.build,
	})
	if o.reason != "" {
		t.Fatalf("the build failed: %s\n%s", o.reason, strings.Join(o.log, "\n"))
	}
	return slipway.BundlePath(filepath.Join(shared.factory.root, "bundles"), o.made.ArtifactDigest), strings.Join(o.log, "\n")
}

// serve starts an agent server on a bundle and returns its address.
func serve(t *testing.T, bundle string) string {
	t.Helper()
	dir := t.TempDir()
	ready := filepath.Join(dir, "ready")
	var out bytes.Buffer
	cmd := exec.Command(shared.slipway, "serve", "--bundle", bundle, "--data", dir, "--listen", "127.0.0.1:0", "--ready-file", ready)
	cmd.Env = append(os.Environ(), secrets(t, bundle)...)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("the agent server said:\n%s", out.String())
		}
	})
	for {
		raw, err := os.ReadFile(ready)
		var at struct{ Endpoint string }
		if err == nil && json.Unmarshal(raw, &at) == nil {
			return at.Endpoint
		}
		select {
		case <-ended:
			t.Fatalf("the agent server ended: %s", out.String())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// secrets are the variables of the layout's .env file, which the control service keeps as secrets.
func secrets(t *testing.T, bundle string) []string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(bundle, "app", ".env"))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(raw)), "\n")
}

// ask runs a graph without a thread and returns its answer.
func ask(t *testing.T, url, graph, who string) string {
	t.Helper()
	body := fmt.Sprintf(`{"assistant_id": %q, "input": {"text": "hi"}, "config": {"configurable": {"who": %q}}}`, graph, who)
	client := http.Client{Timeout: time.Minute}
	response, err := client.Post(url+"/runs/wait", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	var state struct{ Answer string }
	if err != nil || response.StatusCode != http.StatusOK || json.Unmarshal(raw, &state) != nil {
		t.Fatalf("graph %s: %s, %v: %s", graph, response.Status, err, raw)
	}
	if state.Answer == "" {
		t.Logf("graph %s: %s", graph, raw)
	}
	return state.Answer
}
