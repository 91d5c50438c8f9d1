package builder_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway"
)

const manifest = `{"name": "app", "version": "1.0.0", "type": "module", "dependencies": {"ms": "2.1.3"}}`

func javascript(code string) fetcher {
	return fetcher{
		"agentgraph.json": file(`{"graphs": {"a": "./agent.mjs:graph"}}`),
		"package.json":    file(manifest),
		"agent.mjs":       file(code),
	}
}

func TestJavaScript(t *testing.T) {
	t.Parallel()
	f := newFactory(t)
	files := javascript("import ms from 'ms'; export const graph = ms('1m') + 'one';")
	const ask = "import('./agent.mjs').then((m) => console.log(m.graph))"
	first := f.must(files, slipway.BuildJob{})
	// The module is imported from the working directory, which is the configuration's.
	if got := f.node(first, ask); got != "60000one" {
		t.Errorf("got %q, want %q", got, "60000one")
	}
	second := f.must(with(files, "agent.mjs", "import ms from 'ms'; export const graph = ms('1m') + 'two';"), slipway.BuildJob{})
	if got := f.node(second, ask); got != "60000two" {
		t.Errorf("got %q, want %q", got, "60000two")
	}
	if !strings.Contains(second.log, "nothing to install") {
		t.Errorf("changed code made an installation:\n%s", second.log)
	}
	t.Logf("built in %s, again with other code in %s", first.took, second.took)
	broken := f.build(with(files, "package.json", `{"dependencies": {"ms": "999.0.0"}}`), slipway.BuildJob{})
	if !strings.Contains(broken.reason, "ms@999.0.0") || !strings.Contains(broken.reason, "npm i") || strings.Contains(broken.reason, "\n") {
		t.Errorf("got the reason %q", broken.reason)
	}
	t.Log(broken.reason)
}

func TestTypeScript(t *testing.T) {
	t.Parallel()
	f := newFactory(t)
	m := f.must(fetcher{
		"conf/agentgraph.json": file(`{"node_version": "20", "graphs": {"a": "./src/agent.ts:graph"}}`),
		"conf/package.json":    file(manifest),
		"conf/tsconfig.json":   file(`{"compilerOptions": {"strict": true, "module": "nodenext"}}`),
		"conf/src/agent.ts":    file("import ms from 'ms';\nimport { Kind } from './kind.js';\nconst n: number = ms('1m') as number;\nexport const graph: string = `${n} ${Kind.A}`;\n"),
		"conf/src/kind.ts":     file("export enum Kind { A = 'typed' }\n"),
	}, slipway.BuildJob{ConfigPath: "conf/agentgraph.json"})
	if got := f.node(m, "import('./src/agent.ts').then((m) => console.log(m.graph))"); got != "60000 typed" {
		t.Errorf("got %q, want %q", got, "60000 typed")
	}
}

func TestMixedLanguages(t *testing.T) {
	t.Parallel()
	f := newFactory(t)
	m := f.must(fetcher{
		"agentgraph.json": file(`{"dependencies": ["."], "graphs": {"js": "./agent.mjs:graph", "py": "./agent.py:graph"}}`),
		"package.json":    file(manifest), "agent.mjs": file("import ms from 'ms'; export const graph = ms('1s')"),
		"requirements.txt": file("jsonpointer==3.0.0\n"), "agent.py": file("import jsonpointer\ngraph = 'python'\n"),
	}, slipway.BuildJob{})
	if got := f.node(m, "import('./agent.mjs').then((m) => console.log(m.graph))"); got != "1000" {
		t.Errorf("got %q from JavaScript, want %q", got, "1000")
	}
	if got := f.python(m, "import agent; print(agent.graph)"); got != "python" {
		t.Errorf("got %q from Python, want %q", got, "python")
	}
}

func TestCommands(t *testing.T) {
	t.Parallel()
	f := newFactory(t)
	files := fetcher{
		"package.json":             file(`{"name": "root", "private": true, "workspaces": ["libs/*"], "dependencies": {"ms": "2.1.3"}}`),
		"libs/mine/package.json":   file(`{"name": "mine", "version": "1.0.0", "type": "module", "exports": "./index.mjs"}`),
		"libs/mine/index.mjs":      file("export default 'mine'"),
		"apps/one/agentgraph.json": file(`{"graphs": {"a": "./dist/agent.mjs:graph"}}`),
		"apps/one/build.mjs":       file("import fs from 'node:fs'; fs.mkdirSync('dist'); fs.writeFileSync('dist/agent.mjs', `import mine from 'mine'; import ms from 'ms'; export const graph = mine + ms('1s')`)"),
	}
	job := slipway.BuildJob{ConfigPath: "apps/one/agentgraph.json", InstallCommand: "npm install && npm ls", BuildCommand: "node build.mjs"}
	m := f.must(files, job)
	if got := f.node(m, "import('./dist/agent.mjs').then((m) => console.log(m.graph))"); got != "mine1000" {
		t.Errorf("got %q, want %q", got, "mine1000")
	}
	if strings.Contains(f.run(m.bundle, "ls", "-la", "app/node_modules"), f.root) {
		t.Error("node_modules leads into the temporary directory")
	}
	job.BuildCommand = "node missing-script.mjs"
	if got := f.build(files, job).reason; !strings.Contains(got, "`node missing-script.mjs` failed with exit code 1: ") || !strings.Contains(got, "Cannot find module") {
		t.Errorf("got the reason %q", got)
	}
	job.BuildCommand = "node --version"
	if got := f.build(files, job).reason; !strings.Contains(got, `"dist/agent.mjs"`) {
		t.Errorf("a file that the build command does not make: got the reason %q", got)
	}
}

// TestInstalledInPlaceIsPartOfTheDigest builds the same source twice with a command whose outcome differs.
func TestInstalledInPlaceIsPartOfTheDigest(t *testing.T) {
	t.Parallel()
	f := newFactory(t)
	outside := filepath.Join(t.TempDir(), "input")
	job := slipway.BuildJob{InstallCommand: "cp " + outside + " made.txt"}
	digest := func(content string) string {
		if err := os.WriteFile(outside, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		return f.must(javascript("export const graph = 1"), job).result.ArtifactDigest
	}
	one, again, two := digest("one"), digest("one"), digest("two")
	if one != again || one == two {
		t.Errorf("got the digests %s, %s for the same and %s for other contents", one, again, two)
	}
}

func TestCommandsOfPythonProjects(t *testing.T) {
	t.Parallel()
	f := newFactory(t)
	m := f.must(fetcher{
		"agentgraph.json": file(`{"python_version": "3.11", "dependencies": ["."], "graphs": {"a": "./agent.py:graph"}}`),
		"agent.py":        file("import made, before\ngraph = made.X + before.X\n"),
	}, slipway.BuildJob{InstallCommand: "python -c 'open(chr(98)+str(\"efore.py\"),str(\"w\")).write(str(\"X=str(2)\"))'", BuildCommand: "cp before.py made.py"})
	if got := f.python(m, "import agent; print(agent.graph)"); got != "22" {
		t.Errorf("got %q, want %q", got, "22")
	}
}

func TestPackageManagers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ field, shows string }{
		"pnpm": {`"packageManager": "pnpm@10.34.8"`, "$ pnpm i"},
		"yarn": {`"devEngines": {"packageManager": {"name": "yarn"}}`, "$ yarn install"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFactory(t)
			files := with(javascript("import ms from 'ms'; export const graph = ms('1s')"), "package.json",
				`{"name": "app", "type": "module", "dependencies": {"ms": "2.1.3"}, `+c.field+`}`)
			m := f.must(files, slipway.BuildJob{})
			if got := f.node(m, "import('./agent.mjs').then((m) => console.log(m.graph))"); got != "1000" || !strings.Contains(m.log, c.shows) {
				t.Errorf("got %q, want 1000; %q in the log:\n%s", got, c.shows, m.log)
			}
		})
	}
}

func TestVersionsTheMachineLacks(t *testing.T) {
	t.Parallel()
	f := newFactory(t)
	files := with(javascript("1"), "agentgraph.json", `{"node_version": "97", "graphs": {"a": "./agent.mjs:graph"}}`)
	if got := f.build(files, slipway.BuildJob{}).reason; !strings.Contains(got, "Node 97 is not installed on this machine, which has ") {
		t.Errorf("got the reason %q", got)
	}
	files = fetcher{"agentgraph.json": file(`{"python_version": "3.97", "dependencies": ["."], "graphs": {"a": "./a.py:graph"}}`), "a.py": file("")}
	if got := f.build(files, slipway.BuildJob{}).reason; !strings.Contains(got, "Python 3.97 is not installed on this machine, which has 3.11") {
		t.Errorf("got the reason %q", got)
	}
}
