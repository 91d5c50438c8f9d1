package python_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/toolchain/python"
)

// refused is a project that is refused with a text.
type refused struct {
	files map[string]string
	p     slipway.Project
	want  string
}

// workspace is a uv workspace with the members in packages/, of which a package is deployed.
func workspace(deploy string, files map[string]string, want string) refused {
	files["pyproject.toml"], files["uv.lock"] = "[tool.uv.workspace]\nmembers = ['packages/*']\n", ""
	return refused{files, slipway.Project{Workspace: &slipway.Workspace{Root: ".", Package: deploy}}, want}
}

func graphOf(r refused, file string) refused {
	r.p.PythonFiles = []string{file}
	return r
}

// member is the pyproject.toml of a package.
func member(name string, dependencies ...string) string {
	text := "[project]\nname = '" + name + "'\nversion = '1'\ndependencies = ["
	for _, d := range dependencies {
		text += "'" + d + "', "
	}
	return text + "]\n"
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	toolchain := python.New(python.Config{Root: root})
	for name, c := range map[string]refused{
		"no directory":         {nil, slipway.Project{Dependencies: []string{"./libs"}}, `"./libs"`},
		"outside":              {nil, slipway.Project{Dependencies: []string{"../.."}}, `"../.."`},
		"reserved name":        {map[string]string{"langgraph/__init__.py": ""}, slipway.Project{Dependencies: []string{"./langgraph"}}, "reserved"},
		"no included file":     {map[string]string{"requirements.txt": "-r base.txt\n"}, slipway.Project{Dependencies: []string{"."}}, `requirements.txt includes "base.txt"`},
		"nested include":       {map[string]string{"requirements.txt": "--requirement=a/b.txt", "a/b.txt": "-cmissing.txt"}, slipway.Project{Dependencies: []string{"."}}, `a/b.txt includes "a/missing.txt"`},
		"include outside":      {map[string]string{"requirements.txt": "-r ../../../x.txt"}, slipway.Project{Dependencies: []string{"."}}, "x.txt"},
		"editable local":       {map[string]string{"requirements.txt": "idna\n-e ./libs/a  # mine\n"}, slipway.Project{Dependencies: []string{"."}}, `the local package "-e ./libs/a`},
		"local by path":        {map[string]string{"requirements.txt": "../x"}, slipway.Project{Dependencies: []string{"."}}, "local package"},
		"local by address":     {map[string]string{"requirements.txt": "x @ file:///etc"}, slipway.Project{Dependencies: []string{"."}}, "local package"},
		"no pip config":        {nil, slipway.Project{PipConfigFile: "pip.conf"}, `pip_config_file names "pip.conf"`},
		"no project name":      workspace("", map[string]string{"packages/a/pyproject.toml": "[project]\nversion = '1'\n"}, "packages/a/pyproject.toml has no project.name"),
		"no member file":       workspace("", map[string]string{"packages/a/x.py": ""}, `the member "packages/a", which has no pyproject.toml`),
		"not TOML":             workspace("", map[string]string{"packages/a/pyproject.toml": "x ="}, "packages/a/pyproject.toml is not valid"),
		"a name twice":         workspace("", map[string]string{"packages/a/pyproject.toml": member("My.Pkg"), "packages/b/pyproject.toml": member("my-pkg")}, "twice, in packages/a and in packages/b"),
		"no requirement":       workspace("", map[string]string{"packages/a/pyproject.toml": member("a", "===")}, "no requirement with a name"),
		"dependencies as text": workspace("", map[string]string{"packages/a/pyproject.toml": "[project]\nname = 'a'\ndependencies = 'x'\n"}, "no list of strings"),
		"not in the workspace": workspace("", map[string]string{"packages/a/pyproject.toml": member("a", "b") + "[tool.uv.sources]\nb = { workspace = true }\n"}, `takes "b" from the workspace`),
		"an absolute source":   workspace("", map[string]string{"packages/a/pyproject.toml": member("a", "b") + "[tool.uv.sources]\nb = { path = '/x' }\n"}, `the absolute path "/x"`),
		"a source outside":     workspace("", map[string]string{"packages/a/pyproject.toml": member("a", "b") + "[tool.uv.sources]\nb = { path = '../../../b' }\n"}, "no member of the uv workspace"),
		"no such package":      workspace("c", map[string]string{"packages/a/pyproject.toml": member("a")}, `source.package is "c", which the uv workspace does not have: it has a`),
		"which of them":        workspace("", map[string]string{"packages/a/pyproject.toml": member("a"), "packages/b/pyproject.toml": member("b")}, "name one with source.package: a, b"),
		"no package":           workspace("a", map[string]string{"packages/a/pyproject.toml": member("a") + "[tool.uv]\npackage = false\n"}, `"a" of the uv workspace has tool.uv.package = false`),
		"needs no package":     workspace("a", map[string]string{"packages/a/pyproject.toml": member("a", "b") + "[tool.uv.sources]\nb = { workspace = true }\n", "packages/b/pyproject.toml": member("b") + "[tool.uv]\npackage = false\n"}, `depends on "b"`),
		"members outside":      {map[string]string{"pyproject.toml": "[tool.uv.workspace]\nmembers = ['../*']\n", "uv.lock": ""}, slipway.Project{Workspace: &slipway.Workspace{Root: "."}}, `the members "../*"`},
		"a graph of another":   graphOf(workspace("a", map[string]string{"packages/a/pyproject.toml": member("a"), "packages/b/pyproject.toml": member("b")}, `"packages/b/x.py" lies in no package that a`), "packages/b/x.py"),
		"workspace, no lock":   {map[string]string{"pyproject.toml": ""}, slipway.Project{Workspace: &slipway.Workspace{Root: "."}}, "no uv.lock"},
	} {
		c.p.Bundle = filepath.Join(t.TempDir(), "bundle")
		if c.p.Dir == "" {
			c.p.Dir = "."
		}
		if err := os.MkdirAll(filepath.Join(c.p.Bundle, "app"), 0o755); err != nil {
			t.Fatal(err)
		}
		for file, content := range c.files {
			at := filepath.Join(c.p.Bundle, "app", file)
			if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(at, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		_, err := toolchain.Prepare(t.Context(), c.p, func(string) {})
		if slipway.ErrorCode(err) != slipway.CodeInvalid || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}
