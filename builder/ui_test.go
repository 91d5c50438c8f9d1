package builder_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway"
)

const card = "import './card.css';\nimport { useState } from 'react';\nexport default { card: ({ text }: { text: string }) => { const [n] = useState(1); return <b className='text-red-500'>{text}{n}</b> } };\n"

// python application with components, and no package.json.
func components(ui string) fetcher {
	return fetcher{
		"conf/agentgraph.json": file(`{"python_version": "3.11", "dependencies": ["."], "graphs": {"agent": "./agent.py:graph"}, ` + ui + `}`),
		"conf/agent.py":        file("graph = 1\n"),
		"conf/src/card.tsx":    file(card),
		"conf/src/card.css":    file("@import \"tailwindcss\";\n.card { color: red }\n"),
	}
}

var at = slipway.BuildJob{ConfigPath: "conf/agentgraph.json"}

func TestComponents(t *testing.T) {
	t.Parallel()
	f := newFactory(t)
	files := components(`"ui": {"agent": "./src/card.tsx", "../odd name": "src/card.tsx"}`)
	m := f.must(files, at)
	described := f.describe(m)
	if described.Node != nil || len(described.UI) != 2 {
		t.Fatalf("got %+v", described)
	}
	text := map[string]string{}
	for _, each := range described.UI["agent"].Files {
		raw, err := os.ReadFile(filepath.Join(m.bundle, described.UI["agent"].Dir, each.Name))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(raw)
		if got := hex.EncodeToString(sum[:]); got != each.SHA256 {
			t.Errorf("%s: got the digest %s, want %s", each.Name, each.SHA256, got)
		}
		text[each.Name] = string(raw)
	}
	script, style := text["entrypoint.js"], text["entrypoint.css"]
	for _, want := range []string{"var __LGUI_agent =", `Symbol.for("LGUI_REQUIRE")`, `("react/jsx-runtime")`} {
		if !strings.Contains(script, want) {
			t.Errorf("the script does not have %s:\n%.3000s", want, script)
		}
	}
	if !strings.Contains(style, ".text-red-500") || !strings.Contains(style, ".card") {
		t.Errorf("got the style sheet\n%.2000s", style)
	}
	if strings.Contains(script+style, f.root) {
		t.Error("a component tells the directory of its build")
	}
	if again := f.must(files, at); again.result.ArtifactDigest != m.result.ArtifactDigest {
		t.Error("the same source became another bundle")
	}
}

func TestComponentsWithPackages(t *testing.T) {
	t.Parallel()
	f := newFactory(t)
	files := components(`"ui": {"agent": "./src/card.tsx"}, "ui_config": {"shared": ["brought"]}`)
	files["conf/package.json"] = file(manifest)
	files["conf/src/card.tsx"] = file("import ms from 'ms';\nimport brought from 'brought';\nexport default { card: () => <b>{ms('1m')}{brought}</b> };\n")
	m := f.must(files, at)
	described := f.describe(m)
	raw, err := os.ReadFile(filepath.Join(m.bundle, described.UI["agent"].Dir, "entrypoint.js"))
	if err != nil {
		t.Fatal(err)
	}
	if script := string(raw); !strings.Contains(script, "millisecond") || !strings.Contains(script, `__require("brought")`) || strings.Contains(script, f.root) {
		t.Errorf("got\n%s", script)
	}
}

func TestBrokenComponents(t *testing.T) {
	t.Parallel()
	f := newFactory(t)
	for name, c := range map[string]struct{ source, want string }{
		"syntax":         {"export default { card: () => <b>oops };\n", "Error in ui.agent: src/card.tsx:1:"},
		"no package":     {"import x from 'left-out';\nexport default { card: () => x };\n", `Error in ui.agent: src/card.tsx:1:15: Could not resolve "left-out"; add the package to package.json`},
		"no default":     {"export const card = () => null;\n", "export the components by name as the default"},
		"a missing file": {"import x from './gone';\nexport default { x };\n", `Could not resolve "./gone"`},
	} {
		t.Run(name, func(t *testing.T) {
			got := f.build(with(components(`"ui": {"agent": "./src/card.tsx"}`), "conf/src/card.tsx", c.source), at).reason
			if !strings.Contains(got, c.want) || strings.Contains(got, "\n") || strings.Contains(got, f.root) {
				t.Errorf("got the reason %q, want %q in it", got, c.want)
			}
			t.Log(got)
		})
	}
}
