package graphconfig_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/slipway-dev/slipway/graphconfig"
)

// files makes a source of names; a value that is not given is empty.
func files(names ...string) fstest.MapFS {
	all := fstest.MapFS{}
	for _, name := range names {
		name, content, _ := strings.Cut(name, "=")
		all[name] = &fstest.MapFile{Data: []byte(content), Mode: 0o644}
	}
	return all
}

func TestFindingsInFiles(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config string
		files  fstest.MapFS
		want   string // "" = nothing is wrong
	}{
		"all is there":          {`"dependencies": ["."], "graphs": {"a": "./a.py:g"}`, files("app/a.py"), ""},
		"a dotted module":       {`"dependencies": ["."], "graphs": {"a": "anything.at.all:g"}`, files("app/x"), ""},
		"JavaScript anywhere":   {`"graphs": {"a": "../src/a.ts:g"}`, files("src/a.ts"), ""},
		"no file":               {`"dependencies": ["."], "graphs": {"a": "./agnt.py:g"}`, files("app/agent.py"), `graphs.a names the file "agnt.py", which the source does not have: correct the path; did you mean "app/agent.py"?`},
		"a directory":           {`"graphs": {"a": "./a.js:g"}`, files("app/a.js/x"), `"a.js", which the source does not have`},
		"outside of the source": {`"graphs": {"a": "../../a.js:g"}`, files("x"), "leads out of the source"},
		"in no dependency":      {`"dependencies": ["./lib"], "graphs": {"a": "./src/a.py:g"}`, files("app/src/a.py", "app/lib/b.py"), `lies in no local dependency: add "./src" to dependencies`},
		"auth in no dependency": {`"dependencies": ["./lib"], "graphs": {"a": "./lib/a.py:g"}, "auth": {"path": "./auth.py:auth"}`, files("app/lib/a.py", "app/auth.py"), "auth.path names the file"},
		"no auth":               {`"graphs": {"a": "./a.js:g"}, "auth": {"path": "./auth.ts:auth"}`, files("app/a.js"), `auth.path names the file "auth.ts"`},
		"no app":                {`"graphs": {"a": "./a.js:g"}, "http": {"app": "./app.ts:app"}`, files("app/a.js"), `http.app names the file "app.ts"`},
		"no saver":              {`"graphs": {"a": "./a.js:g"}, "checkpointer": {"path": "./s.ts:app"}`, files("app/a.js"), `checkpointer.path names`},
		"no encryption":         {`"graphs": {"a": "./a.js:g"}, "encryption": {"path": "./s.ts:app"}`, files("app/a.js"), `encryption.path names`},
		"no embedding":          {`"graphs": {"a": "./a.js:g"}, "store": {"index": {"dims": 1, "embed": "./s.ts:app"}}`, files("app/a.js"), `store.index.embed names`},
		"embedding by provider": {`"graphs": {"a": "./a.js:g"}, "store": {"index": {"dims": 1, "embed": "openai:x"}}`, files("app/a.js"), ""},
		"no component":          {`"graphs": {"a": "./a.js:g"}, "ui": {"card": "./card.tsx"}`, files("app/a.js"), `ui.card names the file "card.tsx"`},
		"no pip configuration":  {`"dependencies": ["."], "graphs": {"a": "m:g"}, "pip_config_file": "pip.conf"`, files("app/a.py"), `pip_config_file names the file "pip.conf"`},
		"no dependency":         {`"dependencies": ["./lib"], "graphs": {"a": "m:g"}`, files("app/a.py"), `dependencies names the directory "./lib"`},
		"dependency outside":    {`"dependencies": ["../.."], "graphs": {"a": "m:g"}`, files("app/a.py"), "leads out of the source"},
		"reserved package":      {`"dependencies": ["./langgraph"], "graphs": {"a": "m:g"}`, files("app/langgraph/__init__.py"), `"langgraph", which is a reserved name`},
		"reserved inside":       {`"dependencies": ["."], "graphs": {"a": "m:g"}`, files("app/pydantic/x.py"), `"pydantic", which is a reserved name`},
		"reserved src":          {`"dependencies": ["."], "graphs": {"a": "m:g"}`, files("app/src/x.py"), `"src", which is a reserved name`},
		"src of packages":       {`"dependencies": ["."], "graphs": {"a": "m:g"}`, files("app/src/mine/x.py"), ""},
		"reserved in a project": {`"dependencies": ["."], "graphs": {"a": "m:g"}`, files("app/src/x.py", "app/pyproject.toml"), ""},
		"hyphen":                {`"dependencies": ["./my-pkg"], "graphs": {"a": "m:g"}`, files("app/my-pkg/__init__.py"), "with a hyphen"},
		"hyphen in a project":   {`"dependencies": ["./my-pkg"], "graphs": {"a": "m:g"}`, files("app/my-pkg/__init__.py", "app/my-pkg/setup.py"), ""},
		"uv without a lock":     {`"python_version": "3.11", "source": {"kind": "uv", "root": ".."}, "graphs": {"a": "m:g"}`, files("pyproject.toml"), "no uv.lock"},
		"uv outside":            {`"python_version": "3.11", "source": {"kind": "uv", "root": "../.."}, "graphs": {"a": "m:g"}`, files("pyproject.toml"), "leads out of the source"},
		"uv":                    {`"python_version": "3.11", "source": {"kind": "uv", "root": ".."}, "graphs": {"a": "./a.py:g"}`, files("pyproject.toml", "uv.lock", "app/a.py"), ""},
		"engines":               {`"graphs": {"a": "./a.js:g"}`, files("app/a.js", `app/package.json={"engines": {"node": "20"}}`), ""},
		"engines of npm":        {`"graphs": {"a": "./a.js:g"}`, files("app/a.js", `app/package.json={"engines": {"npm": "10"}}`), "engines.npm: only engines.node is allowed"},
		"engines as a range":    {`"graphs": {"a": "./a.js:g"}`, files("app/a.js", `app/package.json={"engines": {"node": ">=20"}}`), `engines.node ">=20": write only a major version`},
		"engines too old":       {`"graphs": {"a": "./a.js:g"}`, files("app/a.js", `app/package.json={"engines": {"node": "18"}}`), `engines.node "18"`},
	} {
		conf, err := graphconfig.Parse([]byte("{" + c.config + "}"))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := conf.FindingsIn(c.files, "app/agentgraph.json", true).Err()
		if c.want == "" && got != nil || c.want != "" && (got == nil || !strings.Contains(got.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q", name, got, c.want)
		}
	}
	c, _ := graphconfig.Parse([]byte(`{"graphs": {"a": "./dist/a.js:g"}}`))
	if got := c.FindingsIn(files("x"), "agentgraph.json", false); len(got) > 0 {
		t.Errorf("files that a command makes: got %v, want none", got)
	}
}

// TestIgnoreAgreesWithGit asks git about the same patterns and paths. The one difference is wanted: what `!` takes back in
// comes back in, also where the directory above it is out (TestIgnoreRules).
func TestIgnoreAgreesWithGit(t *testing.T) {
	t.Parallel()
	paths := []string{
		"a.txt", "b.txt", "a/b.txt", "a/b/c.txt", "build/x", "src/build/x", "docs/a.md", "docs/x/a.md", "x.log", "x/y.log", "keep.log", "foo", "foo/bar",
		"a[1].txt", "a1.txt", "b-2.txt", "#file", "!file", "with space", "tab ", "deep/er/and/deeper/z.tmp", "Z.TMP", "ünï.txt", "sub/keep.log", "foobar",
		"foo/deep/bar", "a/x/b", "a/b", "a/x/y/b", ".env", ".github/w.yml", "back\\slash",
	}
	for _, text := range []string{
		"*.txt", "/a.txt", "a/b.txt", "build/", "build", "/build/", "docs/*.md", "docs/**", "docs/**/a.md", "**/a.md", "*.log\n!keep.log", "foo", "foo/", "foo/*",
		"a[0-9].txt", "a\\[1\\].txt", "[ab]*.txt", "[!a]*.txt", "\\#file", "\\!file", "with space", "tab\\ ", "with space   ", "**/z.tmp", "deep/**/z.tmp",
		"deep/*/z.tmp", "a/**/b", "?.txt", "*", "# comment", "", "/", "*.TMP", "ünï*", "foo*", "**/foo", "/**/foo", "x/**", ".*", "a/*/b", "[", "[a", "a**b",
		"*.txt\n!a.txt\na.txt", "back\\\\slash", "./foo-not-git", "src/", "*/build/", "[[:alpha:]].txt",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, ".gitignore"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		want := gitIgnores(t, dir, paths)
		rules := graphconfig.ReadIgnore(os.DirFS(dir), ".gitignore")
		for _, path := range paths {
			if got := rules.Match(path, false); got != slices.Contains(want, path) {
				t.Errorf("%q: %s: got %v, git says %v", text, path, got, !got)
			}
		}
	}
}

// gitIgnores lists the paths that git would ignore in a directory.
func gitIgnores(t *testing.T, dir string, paths []string) []string {
	t.Helper()
	git := func(args ...string) *exec.Cmd {
		cmd := exec.Command("git", append([]string{"-c", "core.excludesFile=", "-c", "core.quotePath=false"}, args...)...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
		return cmd
	}
	if out, err := git("init", "-q").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := git("check-ignore", "--no-index", "-z", "--stdin")
	cmd.Stdin = strings.NewReader(strings.Join(paths, "\x00"))
	out, err := cmd.Output()
	if err != nil && len(out) > 0 {
		t.Fatal(err)
	}
	return strings.Split(string(out), "\x00")
}

func TestIgnoreRules(t *testing.T) {
	t.Parallel()
	app := files(
		".dockerignore=*\n!packages/agent\n!agentgraph.json\n!.env\n!node_modules\n", ".gitignore=*.secret\n", "agentgraph.json", ".env", "README.md", "packages/agent/a.py",
		"packages/agent/x.secret", "packages/agent/__pycache__/a.pyc", "packages/other/b.py", "node_modules/x/index.js", ".git/HEAD", "venv/bin/python", ".venv/x",
		".tox/x", ".mypy_cache/x", "packages/agent/venv",
	)
	kept := func(names ...string) []string {
		out, err := graphconfig.ReadIgnore(app, names...).Excluded(app, ".")
		if err != nil {
			t.Fatal(err)
		}
		var left []string
		for name := range app {
			if !slices.ContainsFunc(out, func(x string) bool { return x == name || strings.HasPrefix(name, x+"/") }) {
				left = append(left, name)
			}
		}
		slices.Sort(left)
		return left
	}
	want := []string{".env", "agentgraph.json", "packages/agent/a.py", "packages/agent/venv", "packages/agent/x.secret"}
	if got := kept(".dockerignore"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	want = slices.DeleteFunc(want, func(name string) bool { return strings.HasSuffix(name, ".secret") })
	if got := kept(".dockerignore", ".gitignore"); !slices.Equal(got, want) {
		t.Errorf("both: got %q, want %q", got, want)
	}
	sub, err := fs.Sub(app, "packages")
	if err != nil {
		t.Fatal(err)
	}
	out, err := graphconfig.ReadIgnore(sub, ".dockerignore").Excluded(app, "packages")
	if want := []string{"packages/agent/__pycache__"}; err != nil || !slices.Equal(out, want) {
		t.Errorf("only the rules of the root hold: got %q, %v, want %q", out, err, want)
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	c, found := graphconfig.Read([]byte(`{"python_version": "3.12", "dependencies": [".", "./lib", "./tools", "httpx>=0.27"], "graphs": {
		"py": {"path": "./a.py:g", "description": "answers"}, "js": "./src/a.ts:g", "mod": "lib.x:g"}, "env": {"KEY": "hidden-value"}, "base_image": "x", "api_version": "0.4",
		"http": {"app": "./a.py:app", "mount_prefix": "/x"}, "stroe": {}}`))
	app := files("app/a.py", "app/src/a.ts", "app/requirements.txt", "app/package.json={}", "app/pnpm-lock.yaml", "app/tools/__init__.py", "app/.env",
		"app/lib/pyproject.toml=[build-system]\nbuild-backend = \"poetry.core.masonry.api\"\n")
	e := c.Explain(app, "app/agentgraph.json", found, graphconfig.Commands{})
	text := strings.Join(e.Lines(), "\n")
	for _, want := range []string{
		"graph configuration app/agentgraph.json", "graph py: ./a.py:g (python): answers", "graph js: ./src/a.ts:g (node)", "graph mod: lib.x:g (python)",
		"node: packages: `pnpm i --frozen-lockfile` in app (because of pnpm-lock.yaml)", "loaded by tsx", "python: Python 3.12",
		"a directory of modules: put on the path, with its requirements.txt", "a project built by poetry-core", "a package: imported as tools", "httpx>=0.27: from the package index",
		"env (KEY)", "http (app, mount_prefix)", "ignored: base_image (x) is for container images", "ignored: api_version (0.4)", `did you mean "store"?`, ".env file, but env does not name it",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "hidden-value") || !e.Valid || len(e.Errors) > 0 {
		t.Errorf("a value is shown, or there are errors:\n%s", text)
	}
	e = c.Explain(app, "app/agentgraph.json", nil, graphconfig.Commands{Install: "pnpm i", Build: "pnpm build"})
	if text = strings.Join(e.Lines(), "\n"); !strings.Contains(text, "`pnpm i` in the root of the source") || !strings.Contains(text, "`pnpm build` in app") {
		t.Errorf("the commands are missing in:\n%s", text)
	}
	c, found = graphconfig.Read([]byte(`{"graphs": {"a": "./gone.mjs:g"}, "node_version": 1}`))
	e = c.Explain(files("x"), "agentgraph.json", found, graphconfig.Commands{})
	if text = strings.Join(e.Lines(), "\n"); e.Valid || len(e.Errors) != 2 || !strings.Contains(text, "error: node_version is 1") || !strings.Contains(text, `error: graphs.a names the file "gone.mjs"`) {
		t.Errorf("got %+v\n%s", e.Errors, text)
	}
}
