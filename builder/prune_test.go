package builder_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway"
)

func TestPruneLeavesOutWhatIsNoPartOfTheApplication(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	files := fetcher{
		"agentgraph.json": file(`{"graphs": {"a": "./a.mjs:graph"}}`), "a.mjs": file("1"), ".dockerignore": file("*.md\nsecret/\n!secret/kept.txt\n"), ".gitignore": file("*.log\n"),
		"README.md": file(""), "secret/x": file(""), "secret/kept.txt": file(""), "tracked.log": file(""), "node_modules/m/index.js": file(""), "lib/__pycache__/x.pyc": file(""),
		"venv/bin/python": file(""), "lib/venv": file(""),
	}
	r := build(t, root, files)
	if r.reason != "" {
		t.Fatal(r.reason)
	}
	app := filepath.Join(slipway.BundlePath(filepath.Join(root, "bundles"), r.result.ArtifactDigest), "app")
	var got []string
	err := filepath.WalkDir(app, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			rel, _ := filepath.Rel(app, path)
			got = append(got, rel)
		}
		return err
	})
	if want := []string{".dockerignore", ".gitignore", "a.mjs", "agentgraph.json", "lib/venv", "secret/kept.txt", "tracked.log"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("the bundle has %q, %v, want %q", got, err, want)
	}
	files[".dockerignore"] = file("*.json\n")
	if got := build(t, t.TempDir(), files).reason; !strings.Contains(got, "agentgraph.json is left out by .dockerignore") {
		t.Errorf("got the reason %q", got)
	}
}
