package builder_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/builder"
	"github.com/slipway-dev/slipway/keeper"
	"github.com/slipway-dev/slipway/toolchain/node"
	"github.com/slipway-dev/slipway/toolchain/python"
)

// factory builds with the real installers. Its downloads are kept between test runs.
type factory struct {
	t    *testing.T
	root string
	tool map[slipway.Language]slipway.Toolchain
	ui   slipway.UIBundler
}

func newFactory(t *testing.T) factory {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	cache, root := filepath.Join(cache, "slipway-test"), t.TempDir()
	tools := filepath.Join(cache, "tools")
	javascript := node.New(node.Config{Root: root, Cache: cache, Tools: tools, Keep: keeper.Self})
	return factory{t: t, root: root, ui: javascript, tool: map[slipway.Language]slipway.Toolchain{
		slipway.Node:   javascript,
		slipway.Python: python.New(python.Config{Root: root, Cache: cache, Tools: tools, Keep: keeper.Self}),
	}}
}

// logbook keeps the log lines of one build.
type logbook struct {
	queue
	mu    sync.Mutex
	lines []string
}

func (l *logbook) Log(_ context.Context, _ slipway.BuildJob, entries []slipway.LogEntry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range entries {
		l.lines = append(l.lines, e.Message)
	}
	return nil
}

// made is what came of a build.
type made struct {
	report
	bundle string // directory
	log    string
	took   time.Duration
}

// build builds files; the job may say more.
func (f factory) build(files fetcher, job slipway.BuildJob) made {
	f.t.Helper()
	l := &logbook{queue: queue{jobs: make(chan slipway.BuildJob, 1), done: make(chan report, 1)}}
	job.Source = slipway.SourceInternalSource
	b := builder.New(builder.Config{Root: f.root}, builder.Deps{
		Queue: l, Clock: time.Now, Log: slog.New(slog.DiscardHandler), Toolchains: f.tool, UI: f.ui,
		Fetchers: map[slipway.Source]slipway.SourceFetcher{slipway.SourceInternalSource: files},
	})
	ctx, cancel := context.WithCancel(f.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	began := time.Now()
	l.jobs <- job
	m := made{report: <-l.done, took: time.Since(began)}
	cancel()
	<-ended
	m.bundle = slipway.BundlePath(filepath.Join(f.root, "bundles"), m.result.ArtifactDigest)
	m.log = strings.Join(l.lines, "\n")
	return m
}

// must builds what has to succeed.
func (f factory) must(files fetcher, job slipway.BuildJob) made {
	f.t.Helper()
	m := f.build(files, job)
	if m.reason != "" {
		f.t.Fatalf("the build failed: %s\n%s", m.reason, m.log)
	}
	return m
}

// python runs code as the bundle's worker would.
func (f factory) python(m made, code string) string {
	f.t.Helper()
	b := f.describe(m)
	return f.run(filepath.Join(m.bundle, b.Dir), filepath.Join(m.bundle, b.Python.Interpreter), "-c", code)
}

// node runs code as the bundle's worker would.
func (f factory) node(m made, code string) string {
	f.t.Helper()
	b := f.describe(m)
	args := []string{b.Node.Interpreter, "--input-type=module", "-e", code}
	if b.Node.Loader != "" {
		args = append([]string{args[0], "--import", "file://" + b.Node.Loader}, args[1:]...)
	}
	return f.run(filepath.Join(m.bundle, b.Dir), args...)
}

func (f factory) describe(m made) (b slipway.Bundle) {
	f.t.Helper()
	raw, err := os.ReadFile(filepath.Join(m.bundle, slipway.BundleFile))
	if err != nil {
		f.t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &b); err != nil {
		f.t.Fatal(err)
	}
	return b
}

func (f factory) run(dir string, args ...string) string {
	f.t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		f.t.Fatalf("%v: %v: %s", args[:1], err, out)
	}
	return strings.TrimSpace(string(out))
}

// file is one file of a source.
func file(content string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(content), Mode: 0o644} }

// with returns the files with one changed.
func with(files fetcher, name, content string) fetcher {
	changed := fetcher{name: file(content)}
	for n, f := range files {
		if n != name {
			changed[n] = f
		}
	}
	return changed
}

func TestPythonRequirements(t *testing.T) {
	t.Parallel()
	f := newFactory(t)
	files := fetcher{
		"agentgraph.json":       file(`{"python_version": "3.11", "dependencies": [".", "idna==3.10"], "graphs": {"a": "./agent.py:graph"}}`),
		"agent.py":              file("import helper, jsonpointer, idna\ngraph = helper.WHO\n"),
		"helper.py":             file("WHO = 'one'\n"),
		"requirements.txt":      file("-r more/requirements.txt\n"),
		"more/requirements.txt": file("jsonpointer==3.0.0\n"),
	}
	first := f.must(files, slipway.BuildJob{})
	if got := f.python(first, "import agent; print(agent.graph)"); got != "one" {
		t.Errorf("got %q, want %q", got, "one")
	}
	second := f.must(with(files, "helper.py", "WHO = 'two'\n"), slipway.BuildJob{})
	if got := f.python(second, "import agent; print(agent.graph)"); got != "two" {
		t.Errorf("got %q, want %q", got, "two")
	}
	if !strings.Contains(second.log, "nothing to install") || second.result.ArtifactDigest == first.result.ArtifactDigest {
		t.Errorf("changed code made an installation or no new bundle:\n%s", second.log)
	}
	t.Logf("built in %s, again with other code in %s", first.took, second.took)
	third := f.must(with(files, "more/requirements.txt", "jsonpointer==2.4\n"), slipway.BuildJob{})
	if got := f.python(third, "import importlib.metadata as m; print(m.version('jsonpointer'))"); got != "2.4" {
		t.Errorf("an included requirements file changed: got %q, want %q", got, "2.4")
	}
	broken := f.build(with(files, "requirements.txt", "no-such-distribution-anywhere==1.2.3\n"), slipway.BuildJob{})
	if !strings.Contains(broken.reason, "no-such-distribution-anywhere") || strings.Contains(broken.reason, "\n") {
		t.Errorf("got the reason %q", broken.reason)
	}
	t.Log(broken.reason)
}

const pyproject = `[project]
name = "my-agent"
version = "1.2.3"
dependencies = ["jsonpointer==3.0.0"]
[project.scripts]
hello = "my_agent.graph:main"
[project.entry-points."slipway.test"]
one = "my_agent.graph:main"
[build-system]
requires = ["setuptools>=61"]
build-backend = "setuptools.build_meta"
`

func TestPythonProjects(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ project, where, backend string }{
		"src layout":  {".", "src/my_agent", "setuptools"},
		"flat layout": {"libs/mine", "my_agent", "setuptools"},
		"hatchling":   {".", "src/my_agent", "hatchling"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFactory(t)
			project := pyproject
			if c.backend == "hatchling" {
				project = strings.NewReplacer("setuptools>=61", "hatchling", "setuptools.build_meta", "hatchling.build").Replace(project)
			}
			module := filepath.Join(c.project, c.where)
			files := fetcher{
				"agentgraph.json":                          file(`{"python_version": "3.11", "dependencies": ["./` + c.project + `"], "graphs": {"a": "./` + module + `/graph.py:graph"}}`),
				filepath.Join(c.project, "pyproject.toml"): file(project),
				filepath.Join(module, "__init__.py"):       file(""),
				filepath.Join(module, "graph.py"):          file("import jsonpointer\nfrom . import who\ngraph = who.WHO\ndef main(): return 'main ' + graph\n"),
				filepath.Join(module, "who.py"):            file("WHO = 'one'\n"),
			}
			const ask = "import importlib.metadata as m, my_agent.graph as g; e, = m.entry_points(group='slipway.test'); print(m.version('my-agent'), g.graph, e.load()())"
			first := f.must(files, slipway.BuildJob{})
			if got, want := f.python(first, ask), "1.2.3 one main one"; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			second := f.must(with(files, filepath.Join(module, "who.py"), "WHO = 'two'\n"), slipway.BuildJob{})
			if got, want := f.python(second, ask), "1.2.3 two main two"; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if !strings.Contains(second.log, "nothing to install") {
				t.Errorf("changed code made an installation:\n%s", second.log)
			}
			if got := f.python(second, "import my_agent.graph as g; print(g.__file__)"); !strings.HasPrefix(got, second.bundle+"/app/") {
				t.Errorf("the package is imported from %q, want it from the bundle %q", got, second.bundle)
			}
			t.Logf("built in %s, again with other code in %s", first.took, second.took)
		})
	}
}

func TestPythonPlainDirectories(t *testing.T) {
	t.Parallel()
	f := newFactory(t)
	m := f.must(fetcher{
		"conf/agentgraph.json":  file(`{"python_version": "3.11", "dependencies": ["../flat", "../plain"], "graphs": {"a": "../flat/graph.py:graph"}}`),
		"flat/__init__.py":      file(""),
		"flat/graph.py":         file("from . import other\ngraph = other.X\n"),
		"flat/other.py":         file("X = 'flat'\n"),
		"plain/module.py":       file("X = 'plain'\n"),
		"plain/spaced/inner.py": file("X = 'spaced'\n"),
	}, slipway.BuildJob{ConfigPath: "conf/agentgraph.json"})
	if got, want := f.python(m, "import flat.graph, module, spaced.inner; print(flat.graph.graph, module.X, spaced.inner.X)"), "flat plain spaced"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
