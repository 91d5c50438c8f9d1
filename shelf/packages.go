package shelf

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipway-dev/slipway"
)

// Packages lists the installed packages of the artifact, "python NAME" or "node NAME" to version; nil if it is not on the
// shelf, or keeps them to itself.
func (s *Shelf) Packages(digest string) map[string]string {
	bundle, err := readBundle(slipway.BundlePath(filepath.Join(s.root, "bundles"), digest))
	if err != nil || bundle.Shared == nil {
		return nil
	}
	all := map[string]string{}
	for _, at := range bundle.Shared {
		dir := filepath.Join(s.root, filepath.FromSlash(at))
		switch {
		case strings.HasPrefix(at, "layers/python-"):
			pythonPackages(all, dir)
		case strings.HasPrefix(at, "layers/node-"):
			nodePackages(all, filepath.Join(dir, "node_modules"))
		}
	}
	return all
}

func pythonPackages(all map[string]string, layer string) {
	infos, _ := filepath.Glob(filepath.Join(layer, "venv", "lib", "python*", "site-packages", "*.dist-info"))
	for _, info := range infos {
		name, version, ok := strings.Cut(strings.TrimSuffix(filepath.Base(info), ".dist-info"), "-")
		if ok {
			all["python "+name] = version
		}
	}
}

// nodePackages lists what lies at the top of node_modules: what the application itself can import.
func nodePackages(all map[string]string, dir string) {
	direct, _ := filepath.Glob(filepath.Join(dir, "*", "package.json"))
	scoped, _ := filepath.Glob(filepath.Join(dir, "@*", "*", "package.json"))
	for _, file := range append(direct, scoped...) {
		var manifest struct{ Name, Version string }
		raw, err := os.ReadFile(file)
		if err == nil && json.Unmarshal(raw, &manifest) == nil && manifest.Name != "" {
			all["node "+manifest.Name] = manifest.Version
		}
	}
}
