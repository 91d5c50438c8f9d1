package graphconfig_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/graphconfig"
)

func TestParse(t *testing.T) {
	t.Parallel()
	c, err := graphconfig.Parse([]byte(`{
		"$schema": "x", "dependencies": [".", "./libs/a", "langgraph==1.2.22"], "python_version": "3.12",
		"graphs": {
			"agent": "./src/agent.py:make_graph", "module": "my.package:graph", "described": {"path": "./b.ts:default", "description": "what it does"},
			"bare": "./c.mjs", "windows": ".\\d\\e.py:graph"
		},
		"env": {"A": "1", "B": 2, "C": true}, "auth": {"path": "./auth.py:auth"}, "http": {"app": "./web.py:app"},
		"grahps": {}
	}`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]graphconfig.Graph{
		"agent":     {Spec: "./src/agent.py:make_graph", Module: "./src/agent.py", Attribute: "make_graph", Language: slipway.Python},
		"module":    {Spec: "my.package:graph", Module: "my.package", Attribute: "graph", Language: slipway.Python},
		"described": {Spec: "./b.ts:default", Description: "what it does", Module: "./b.ts", Attribute: "default", Language: slipway.Node},
		"bare":      {Spec: "./c.mjs:default", Module: "./c.mjs", Attribute: "default", Language: slipway.Node},
		"windows":   {Spec: `.\d\e.py:graph`, Module: `.\d\e.py`, Attribute: "graph", Language: slipway.Python},
	}
	if !maps.Equal(c.Graphs, want) {
		t.Errorf("got the graphs %+v, want %+v", c.Graphs, want)
	}
	if got, want := c.Files(), []string{"src/agent.py", "c.mjs", "b.ts", "d/e.py", "auth.py", "web.py"}; !slices.Equal(got, want) {
		t.Errorf("got the files %q, want %q", got, want)
	}
	if !c.TypeScript() || !c.Uses(slipway.Python) || !c.Uses(slipway.Node) {
		t.Error("a language is not seen")
	}
	if want := map[string]string{"A": "1", "B": "2", "C": "true"}; !maps.Equal(c.Env.Values, want) {
		t.Errorf("got the environment %v, want %v", c.Env.Values, want)
	}
	if want := []string{`the key "grahps" is unknown and ignored; did you mean "graphs"?`}; !slices.Equal(c.Warnings, want) {
		t.Errorf("got the warnings %q, want %q", c.Warnings, want)
	}
	if got := c.ImageKeys(); len(got) != 0 {
		t.Errorf("got the image keys %q, want none", got)
	}
	if c, err = graphconfig.Parse([]byte(`{"graphs": {"a": "./a.js:g"}, "env": "./.env", "dockerfile_lines": ["RUN x"]}`)); err != nil || c.Env.File != "./.env" || !slices.Equal(c.ImageKeys(), []string{"dockerfile_lines"}) {
		t.Errorf("got %q, %v, want the file ./.env", c.Env.File, err)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	const python = `"dependencies": ["."], "graphs": {"a": "./a.py:g"}`
	for raw, want := range map[string]string{
		"":                              "line 1, column",
		"{\n  \"graphs\": nonsense\n}":  "line 2, column 1",
		"[]":                            "object",
		"null":                          "graphs is missing",
		"{}":                            "graphs is missing",
		`{"graphs": {}}`:                "graphs is missing or empty",
		`{"graphs": []}`:                "graphs",
		`{"graphs": {"a": 1}}`:          "a graph must be",
		`{"graphs": {"a": "./a.py"}}`:   `graphs.a is "./a.py": write it as`,
		`{"graphs": {"a": ":g"}}`:       `graphs.a is ":g"`,
		`{"graphs": {"a": "./a.py:g"}}`: "dependencies is missing",
		`{` + python + `, "python_version": "3.10"}`:                                            `python_version is "3.10": 3.11 is the oldest`,
		`{` + python + `, "python_version": "3.11.4"}`:                                          `python_version is "3.11.4": write major.minor`,
		`{` + python + `, "python_version": 3.11}`:                                              "python_version",
		`{` + python + `, "node_version": "18"}`:                                                `node_version is "18"`,
		`{` + python + `, "image_distro": "bullseye"}`:                                          "bullseye",
		`{` + python + `, "pip_installer": "conda"}`:                                            `pip_installer is "conda"`,
		`{` + python + `, "project_root": "."}`:                                                 "source.root",
		`{` + python + `, "auth": {"path": "./auth.py"}}`:                                       `auth.path is "./auth.py"`,
		`{` + python + `, "env": {"A": {}}}`:                                                    "env.A must be a string",
		`{` + python + `, "env": 3}`:                                                            "env must be",
		`{` + python + `, "source": {"kind": "uv"}}`:                                            "do not go together",
		`{"graphs": {"a": "./a.py:g"}, "source": {"kind": "uv"}}`:                               "python_version is missing",
		`{"graphs": {"a": "./a.py:g"}, "python_version": "3.11", "source": {"kind": "poetry"}}`: `source.kind is "poetry"`,
	} {
		_, err := graphconfig.Parse([]byte(raw))
		if slipway.ErrorCode(err) != slipway.CodeInvalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q in it", raw, err, want)
		}
	}
	_, err := graphconfig.Parse([]byte(`{"graphs": {"a": "nothing"}, "node_version": "x", "pip_installer": "y"}`))
	for _, want := range []string{"graphs.a", "node_version", "pip_installer"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %q, want every broken rule, also %q", err, want)
		}
	}
	t.Log(err)
}

func TestParseEnvFile(t *testing.T) {
	t.Parallel()
	got, err := graphconfig.ParseEnvFile("# comment\n\nA=1\nexport B = two words # comment\nC='single # $quoted'\nD=\"line\\nbreak \\\"q\\\" \\\\\"\nE=\nF=a=b#c\r\nG='x' # y\n")
	want := map[string]string{"A": "1", "B": "two words", "C": "single # $quoted", "D": "line\nbreak \"q\" \\", "E": "", "F": "a=b#c", "G": "x"}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	if _, err := graphconfig.ParseEnvFile("A=1\nnonsense\n"); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("got %v, want the line", err)
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{"agnt.py": "agent.py", "agent.py": "agent.py", "something-else": "", "src/agent.pi": "src/agent.py"} {
		if got := graphconfig.Nearest(word, []string{"agent.py", "src/agent.py", "README.md"}); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"graphs": {"a": "./a.py:g"}, "dependencies": ["."]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, err := graphconfig.Parse(raw)
		if err != nil && slipway.ErrorCode(err) != slipway.CodeInvalid {
			t.Errorf("got %v", err)
		}
		if err == nil && len(c.Graphs) == 0 {
			t.Error("no graphs, no error")
		}
		_, _ = c.Files(), c.TypeScript()
	})
}
