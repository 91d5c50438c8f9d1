package python_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/toolchain/python"
)

func TestRefuses(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	toolchain := python.New(python.Config{Root: root})
	for name, c := range map[string]struct {
		files map[string]string
		p     slipway.Project
		want  string
	}{
		"no directory":       {nil, slipway.Project{Dependencies: []string{"./libs"}}, `"./libs"`},
		"outside":            {nil, slipway.Project{Dependencies: []string{"../.."}}, `"../.."`},
		"reserved name":      {map[string]string{"langgraph/__init__.py": ""}, slipway.Project{Dependencies: []string{"./langgraph"}}, "reserved"},
		"no included file":   {map[string]string{"requirements.txt": "-r base.txt\n"}, slipway.Project{Dependencies: []string{"."}}, `requirements.txt includes "base.txt"`},
		"nested include":     {map[string]string{"requirements.txt": "--requirement=a/b.txt", "a/b.txt": "-cmissing.txt"}, slipway.Project{Dependencies: []string{"."}}, `a/b.txt includes "a/missing.txt"`},
		"include outside":    {map[string]string{"requirements.txt": "-r ../../../x.txt"}, slipway.Project{Dependencies: []string{"."}}, "x.txt"},
		"editable local":     {map[string]string{"requirements.txt": "idna\n-e ./libs/a  # mine\n"}, slipway.Project{Dependencies: []string{"."}}, `the local package "-e ./libs/a`},
		"local by path":      {map[string]string{"requirements.txt": "../x"}, slipway.Project{Dependencies: []string{"."}}, "local package"},
		"local by address":   {map[string]string{"requirements.txt": "x @ file:///etc"}, slipway.Project{Dependencies: []string{"."}}, "local package"},
		"no pip config":      {nil, slipway.Project{PipConfigFile: "pip.conf"}, `pip_config_file names "pip.conf"`},
		"workspace, no lock": {map[string]string{"pyproject.toml": ""}, slipway.Project{Workspace: &slipway.Workspace{Root: "."}}, "no uv.lock"},
	} {
		c.p.Bundle, c.p.Dir = filepath.Join(t.TempDir(), "bundle"), "."
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
