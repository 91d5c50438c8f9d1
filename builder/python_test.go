package builder_test

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/slipway-dev/slipway"
)

// TestPipInstaller builds without uv.
func TestPipInstaller(t *testing.T) {
	t.Parallel()
	f := newFactory(t)
	index := t.TempDir()
	wheel(t, index, "slipway_private_thing")
	files := fetcher{
		"pip.conf":                 file("[global]\nfind-links =\n    " + index + "\n"),
		"agentgraph.json":          file(`{"python_version": "3.11", "pip_installer": "pip", "pip_config_file": "pip.conf", "dependencies": [".", "slipway_private_thing"], "graphs": {"a": "./src/my_agent/graph.py:graph"}}`),
		"pyproject.toml":           file(pyproject),
		"src/my_agent/__init__.py": file(""),
		"src/my_agent/graph.py":    file("import jsonpointer, slipway_private_thing\ngraph = 'one'\ndef main(): return graph\n"),
	}
	const ask = "import importlib.metadata as m, my_agent.graph as g; e, = m.entry_points(group='slipway.test'); print(m.version('my-agent'), m.version('jsonpointer'), e.load()())"
	first := f.must(files, slipway.BuildJob{})
	if got, want := f.python(first, ask), "1.2.3 3.0.0 one"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if !strings.Contains(first.log, "-m pip install") {
		t.Errorf("pip was not used:\n%s", first.log)
	}
	second := f.must(with(files, "src/my_agent/graph.py", "graph = 'two'\ndef main(): return graph\n"), slipway.BuildJob{})
	if got, want := f.python(second, ask), "1.2.3 3.0.0 two"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	broken := f.build(with(files, "pyproject.toml", strings.Replace(pyproject, "jsonpointer==3.0.0", "no-such-distribution-anywhere==1", 1)), slipway.BuildJob{})
	if !strings.Contains(broken.reason, "no-such-distribution-anywhere") {
		t.Errorf("got the reason %q", broken.reason)
	}
	t.Log(broken.reason)
}

// wheel makes a package in an index directory that only a pip configuration leads to.
func wheel(t *testing.T, dir, name string) {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	info := name + "-1.0.0.dist-info/"
	for file, content := range map[string]string{
		name + ".py": "X = 'private'\n", info + "METADATA": "Metadata-Version: 2.1\nName: " + name + "\nVersion: 1.0.0\n",
		info + "WHEEL":  "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		info + "RECORD": name + ".py,,\n" + info + "METADATA,,\n" + info + "WHEEL,,\n" + info + "RECORD,,\n",
	} {
		w, err := z.Create(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+"-1.0.0-py3-none-any.whl"), out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestPipConfigFile builds with an index that only the configuration names; TestPipInstaller does so with pip.
func TestPipConfigFile(t *testing.T) {
	t.Parallel()
	index := t.TempDir()
	wheel(t, index, "slipway_private_thing")
	f := newFactory(t)
	m := f.must(fetcher{
		"agentgraph.json": file(`{"python_version": "3.11", "pip_config_file": "./conf/pip.conf",
			"dependencies": [".", "slipway_private_thing"], "graphs": {"a": "./agent.py:graph"}}`),
		"conf/pip.conf": file("[global]\nfind-links =\n    " + index + "\n"),
		"agent.py":      file("import slipway_private_thing\ngraph = slipway_private_thing.X\n"),
	}, slipway.BuildJob{})
	if got := f.python(m, "import agent; print(agent.graph)"); got != "private" {
		t.Errorf("got %q, want %q", got, "private")
	}
}

func TestUVWorkspace(t *testing.T) {
	t.Parallel()
	f := newFactory(t)
	member := func(name, depends, sources string) string {
		return "[project]\nname = \"" + name + "\"\nversion = \"0.1.0\"\nrequires-python = \">=3.11\"\ndependencies = [" + depends + "]\n" + sources +
			"[build-system]\nrequires = [\"hatchling\"]\nbuild-backend = \"hatchling.build\"\n"
	}
	files := fetcher{
		"pyproject.toml":                         file("[tool.uv.workspace]\nmembers = [\"packages/*\"]\n"),
		"packages/agent/agentgraph.json":         file(`{"python_version": "3.11", "source": {"kind": "uv", "root": "../.."}, "graphs": {"a": "./src/agent/graph.py:graph"}}`),
		"packages/agent/pyproject.toml":          file(member("agent", `"helper", "jsonpointer==3.0.0"`, "[tool.uv.sources]\nhelper = { workspace = true }\n")),
		"packages/agent/src/agent/__init__.py":   file(""),
		"packages/agent/src/agent/graph.py":      file("import helper, jsonpointer\ngraph = helper.X\n"),
		"packages/helper/pyproject.toml":         file(member("helper", "", "")),
		"packages/helper/src/helper/__init__.py": file("X = 'one'\n"),
		"packages/other/pyproject.toml":          file(member("other", `"idna==3.10"`, "")),
		"packages/other/src/other/__init__.py":   file("graph = 1\n"),
	}
	lock(t, f, files)
	job := slipway.BuildJob{ConfigPath: "packages/agent/agentgraph.json"}
	first := f.must(files, job)
	const ask = "import importlib.util as u, agent.graph as g; print(g.graph, u.find_spec('idna'), u.find_spec('other'))"
	if got, want := f.python(first, ask), "one None None"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	second := f.must(with(files, "packages/helper/src/helper/extra.py", "Y = 1\n"), job)
	third := f.must(with(files, "packages/helper/src/helper/extra.py", "Y = 2\n"), job)
	if got, want := f.python(third, "import helper.extra as e; print(e.Y)"), "2"; got != want || !strings.Contains(third.log, "nothing to install") {
		t.Errorf("got %q, want %q without an installation:\n%s\n%s", got, want, second.log, third.log)
	}
	for want, changed := range map[string]fetcher{
		"no uv.lock":                     with(files, "packages/agent/agentgraph.json", `{"python_version": "3.11", "source": {"kind": "uv"}, "graphs": {"a": "./src/agent/graph.py:graph"}}`),
		"leads out of":                   with(files, "packages/agent/agentgraph.json", `{"python_version": "3.11", "source": {"kind": "uv", "root": "../../.."}, "graphs": {"a": "./src/agent/graph.py:graph"}}`),
		"../other/src/other/__init__.py": with(files, "packages/agent/agentgraph.json", `{"python_version": "3.11", "source": {"kind": "uv", "root": "../.."}, "graphs": {"a": "../other/src/other/__init__.py:graph"}}`),
		"nothing-like-this":              with(files, "packages/agent/agentgraph.json", `{"python_version": "3.11", "source": {"kind": "uv", "root": "../..", "package": "nothing-like-this"}, "graphs": {"a": "./src/agent/graph.py:graph"}}`),
	} {
		if got := f.build(changed, job).reason; !strings.Contains(got, want) {
			t.Errorf("got the reason %q, want %q in it", got, want)
		}
	}
}

// lock adds the uv.lock of a workspace, made by the uv that the builder installs.
func lock(t *testing.T, f factory, files fetcher) {
	t.Helper()
	f.must(fetcher{"agentgraph.json": file(`{"python_version": "3.11", "dependencies": ["."], "graphs": {"a": "./a.py:graph"}}`), "a.py": file("")}, slipway.BuildJob{})
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	found, _ := filepath.Glob(filepath.Join(cache, "slipway-test", "tools", "uv-*", "bin", "uv"))
	uv := "uv"
	if len(found) > 0 {
		uv = found[0]
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, fstest.MapFS(files)); err != nil {
		t.Fatal(err)
	}
	f.run(dir, uv, "lock", "--cache-dir", filepath.Join(cache, "slipway-test", "uv"))
	raw, err := os.ReadFile(filepath.Join(dir, "uv.lock"))
	if err != nil {
		t.Fatal(err)
	}
	files["uv.lock"] = file(string(raw))
}

func TestPythonVersion(t *testing.T) {
	t.Parallel()
	f := newFactory(t)
	for _, version := range []string{"3.12", "3.13"} {
		m := f.build(fetcher{
			"agentgraph.json": file(`{"python_version": "` + version + `", "dependencies": [".", "jsonpointer==3.0.0"], "graphs": {"a": "./agent.py:graph"}}`),
			"agent.py":        file("import sys, jsonpointer\ngraph = '%d.%d' % sys.version_info[:2]\n"),
		}, slipway.BuildJob{})
		if strings.Contains(m.reason, "is not installed on this machine") {
			t.Logf("not tried: %s", m.reason)
			continue
		}
		if m.reason != "" {
			t.Fatalf("%s\n%s", m.reason, m.log)
		}
		if got := f.python(m, "import agent; print(agent.graph)"); got != version {
			t.Errorf("got Python %q, want %q", got, version)
		}
	}
}
