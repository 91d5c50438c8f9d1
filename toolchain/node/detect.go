package node

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/slipway-dev/slipway"
)

// plan is how a project is installed.
type plan struct {
	manager string
	version string // wanted by the project; "" = any
	args    []string
	lock    string // name of the lock file; "" = none
}

var versionForm = regexp.MustCompile(`^\d+(\.\d+){0,2}(-[0-9A-Za-z.-]+)?$`)

type manifestFile struct {
	PackageManager string `json:"packageManager"`
	DevEngines     struct {
		PackageManager json.RawMessage `json:"packageManager"`
	} `json:"devEngines"`
	Workspaces      json.RawMessage   `json:"workspaces"`
	Scripts         map[string]string `json:"scripts"`
	Dependencies    map[string]string `json:"dependencies"`
	DevDependencies map[string]string `json:"devDependencies"`
	Optional        map[string]string `json:"optionalDependencies"`
}

// detect chooses the package manager by the table of control-plane reference 7, the first match.
func detect(dir string, raw []byte) (plan, error) {
	var m manifestFile
	if err := json.Unmarshal(raw, &m); err != nil && len(raw) > 0 {
		return plan{}, slipway.Errorf(slipway.CodeInvalid, "package.json is not valid JSON: %w", err)
	}
	named, version := m.manager()
	p := plan{}
	for _, row := range []struct{ file, command string }{
		{"yarn.lock", "yarn install --frozen-lockfile"},
		{"pnpm-lock.yaml", "pnpm i --frozen-lockfile"},
		{"package-lock.json", "npm ci"},
		{"bun.lockb", "bun i"},
		{"bun.lock", "bun i"},
	} {
		if _, err := os.Stat(filepath.Join(dir, row.file)); err == nil {
			p.args, p.lock = strings.Fields(row.command), row.file
			break
		}
	}
	if p.args == nil {
		switch named {
		case "yarn":
			p.args = []string{"yarn", "install"}
		case "pnpm", "bun":
			p.args = []string{named, "i"}
		default:
			p.args = []string{"npm", "i"}
		}
	}
	if p.manager = p.args[0]; p.manager == named {
		p.version = version
	}
	if p.version == "" && p.lock != "" {
		head, _ := os.ReadFile(filepath.Join(dir, p.lock))
		p.version = byLock(p.lock, string(head[:min(len(head), 4096)]))
	}
	return p, nil
}

// manager returns the package manager that a manifest names, with its version.
func (m manifestFile) manager() (name, version string) {
	if m.PackageManager != "" {
		if strings.HasPrefix(m.PackageManager, "^") {
			return "", ""
		}
		name, version, _ = strings.Cut(m.PackageManager, "@")
		version, _, _ = strings.Cut(version, "+") // its hash
		if !versionForm.MatchString(version) {
			version = ""
		}
		return name, version
	}
	var one struct{ Name string }
	if json.Unmarshal(m.DevEngines.PackageManager, &one) == nil {
		return one.Name, ""
	}
	return "", ""
}

// byLock returns the major version of a package manager that reads a lock file.
func byLock(file, head string) string {
	switch {
	case file == "yarn.lock" && strings.Contains(head, "__metadata:"):
		return "4"
	case file == "pnpm-lock.yaml" && strings.Contains(head, "lockfileVersion: '6"):
		return "8"
	}
	return ""
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
