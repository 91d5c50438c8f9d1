package node

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
)

type manifestFile struct {
	Workspaces      json.RawMessage   `json:"workspaces"`
	Scripts         map[string]string `json:"scripts"`
	Dependencies    map[string]string `json:"dependencies"`
	DevDependencies map[string]string `json:"devDependencies"`
	Optional        map[string]string `json:"optionalDependencies"`
}

// simple says whether the manifest and the lock file alone determine node_modules.
func simple(dir string, raw []byte) bool {
	var m manifestFile
	if json.Unmarshal(raw, &m) != nil || len(m.Workspaces) > 0 {
		return false
	}
	for _, script := range []string{"preinstall", "install", "postinstall", "prepare", "prepublish", "preprepare", "postprepare"} {
		if m.Scripts[script] != "" {
			return false
		}
	}
	for _, set := range []map[string]string{m.Dependencies, m.DevDependencies, m.Optional} {
		for _, spec := range set {
			if local(spec) {
				return false
			}
		}
	}
	for _, file := range []string{"pnpm-workspace.yaml", ".pnpmfile.cjs", ".yarnrc", ".yarnrc.yml", ".yarn", "bunfig.toml", "patches", "binding.gyp"} {
		if _, err := os.Stat(filepath.Join(dir, file)); err == nil {
			return false
		}
	}
	return true
}

// local says whether a dependency lies in the source.
func local(spec string) bool {
	for _, prefix := range []string{"file:", "link:", "workspace:", "portal:", "patch:", "catalog:", "exec:", ".", "/", "~/"} {
		if strings.HasPrefix(spec, prefix) {
			return true
		}
	}
	return false
}
