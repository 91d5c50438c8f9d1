package node_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/toolchain/node"
)

// machine makes a PATH with programs that do nothing, and a Node of the version.
func machine(t *testing.T, version string) {
	t.Helper()
	bin := t.TempDir()
	for name, script := range map[string]string{"node": "echo v" + version, "npm": "exit 0", "pnpm": "exit 0", "yarn": "exit 0", "bun": "exit 0"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+":/usr/bin:/bin")
}

func prepare(t *testing.T, files map[string]string, p slipway.Project) (out slipway.Prepared, log string, err error) {
	t.Helper()
	root := t.TempDir()
	p.Bundle = filepath.Join(root, "bundles", "one")
	for name, content := range files {
		at := filepath.Join(p.Bundle, "app", name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var lines []string
	out, err = node.New(node.Config{Root: root}).Prepare(t.Context(), p, func(line string) { lines = append(lines, line) })
	return out, strings.Join(lines, "\n"), err
}

// TestPackageManagerTable checks the rows of control-plane reference 7, the first match.
func TestPackageManagerTable(t *testing.T) {
	machine(t, "20.1.0")
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"nothing":                 {map[string]string{}, "$ npm i"},
		"yarn.lock":               {map[string]string{"yarn.lock": ""}, "$ yarn install --frozen-lockfile"},
		"yarn before pnpm":        {map[string]string{"yarn.lock": "", "pnpm-lock.yaml": ""}, "$ yarn install --frozen-lockfile"},
		"pnpm":                    {map[string]string{"pnpm-lock.yaml": "", "package-lock.json": ""}, "$ pnpm i --frozen-lockfile"},
		"npm":                     {map[string]string{"package-lock.json": "", "bun.lockb": ""}, "$ npm ci"},
		"bun":                     {map[string]string{"bun.lockb": ""}, "$ bun i"},
		"bun as text":             {map[string]string{"bun.lock": ""}, "$ bun i"},
		"packageManager":          {map[string]string{"package.json": `{"packageManager": "yarn"}`}, "$ yarn install"},
		"packageManager with ^":   {map[string]string{"package.json": `{"packageManager": "^yarn@1.0.0"}`}, "$ npm i"},
		"packageManager is asked": {map[string]string{"package.json": `{"packageManager": "npm", "devEngines": {"packageManager": {"name": "bun"}}}`}, "$ npm i"},
		"devEngines":              {map[string]string{"package.json": `{"devEngines": {"packageManager": {"name": "bun"}}}`}, "$ bun i"},
		"lock before manifest":    {map[string]string{"package.json": `{"packageManager": "bun"}`, "package-lock.json": ""}, "$ npm ci"},
		"yarn of today":           {map[string]string{"yarn.lock": "__metadata:\n  version: 8\n"}, "$ npm install @yarnpkg/cli-dist@4"},
		"a pinned pnpm":           {map[string]string{"package.json": `{"packageManager": "pnpm@9.1.0+sha512.abc"}`}, "$ npm install pnpm@9.1.0"},
		"an odd version":          {map[string]string{"package.json": `{"packageManager": "pnpm@--ignore;x"}`}, "$ pnpm i"},
	} {
		files := map[string]string{"package.json": "{}"}
		for n, content := range c.files {
			files[n] = content
		}
		_, log, err := prepare(t, files, slipway.Project{Dir: "."})
		if err != nil || !strings.HasPrefix(log, c.want) {
			t.Errorf("%s: got %v and the log %q, want %q", name, err, log, c.want)
		}
	}
}

func TestWhereCommandsRun(t *testing.T) {
	machine(t, "20.1.0")
	files := map[string]string{"package.json": "{}", "pnpm-lock.yaml": "", "apps/one/package.json": "{}", "apps/one/yarn.lock": ""}
	for name, c := range map[string]struct {
		p    slipway.Project
		want string
	}{
		"beside the configuration": {slipway.Project{Dir: "apps/one"}, "$ yarn install --frozen-lockfile"},
		"build command":            {slipway.Project{Dir: "apps/one", BuildCommand: "pwd"}, "$ pnpm i --frozen-lockfile\n$ pwd\n"},
		"install command":          {slipway.Project{Dir: "apps/one", InstallCommand: "ls"}, "$ ls\napps\npackage.json\npnpm-lock.yaml"},
	} {
		_, log, err := prepare(t, files, c.p)
		if err != nil || !strings.HasPrefix(log, c.want) {
			t.Errorf("%s: got %v and the log %q, want %q", name, err, log, c.want)
		}
	}
}

func TestRefuses(t *testing.T) {
	machine(t, "18.19.0")
	t.Setenv("HOME", t.TempDir())
	for name, c := range map[string]struct {
		files map[string]string
		p     slipway.Project
		want  string
	}{
		"no manifest":   {map[string]string{"x": ""}, slipway.Project{Dir: ".", NodeVersion: "18"}, "package.json is missing"},
		"bad manifest":  {map[string]string{"package.json": "{"}, slipway.Project{Dir: ".", NodeVersion: "18"}, "package.json is not valid JSON"},
		"other version": {map[string]string{"package.json": "{}"}, slipway.Project{Dir: ".", NodeVersion: "77"}, "Node 77 is not installed on this machine, which has 18"},
	} {
		_, _, err := prepare(t, c.files, c.p)
		if slipway.ErrorCode(err) != slipway.CodeInvalid || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}
