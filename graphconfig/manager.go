package graphconfig

import (
	"encoding/json"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-dev/slipway"
)

// Manager is how the packages of a JavaScript application are installed.
type Manager struct {
	Name    string   // npm, pnpm, yarn or bun
	Version string   // wanted by the project, whole or only its major; "" = any
	Args    []string // the command
	Lock    string   // name of the lock file; "" = none
}

// String is the command as users write it.
func (m Manager) String() string { return strings.Join(m.Args, " ") }

var versionForm = regexp.MustCompile(`^\d+(\.\d+){0,2}(-[0-9A-Za-z.-]+)?$`)

// packageFile is what of a package.json tells the package manager.
type packageFile struct {
	PackageManager any `json:"packageManager"`
	DevEngines     struct {
		PackageManager json.RawMessage `json:"packageManager"`
	} `json:"devEngines"`
}

// ManagerOf chooses the package manager of a directory by the table of control-plane reference 7, the first match.
func ManagerOf(files fs.FS, dir string) (Manager, error) {
	raw, _ := fs.ReadFile(files, path.Join(dir, "package.json"))
	var p packageFile
	if err := json.Unmarshal(raw, &p); err != nil && len(raw) > 0 {
		return Manager{}, slipway.Errorf(slipway.CodeInvalid, "package.json is not valid JSON: %w", err)
	}
	named, version := p.manager()
	m := locked(files, dir)
	if m.Args == nil {
		switch named {
		case "yarn":
			m.Args = []string{"yarn", "install"}
		case "pnpm", "bun":
			m.Args = []string{named, "i"}
		default:
			m.Args = []string{"npm", "i"}
		}
	}
	if m.Name = m.Args[0]; m.Name == named {
		m.Version = version
	}
	if m.Version == "" && m.Lock != "" {
		head, _ := fs.ReadFile(files, path.Join(dir, m.Lock))
		m.Version = byLock(m.Lock, string(head[:min(len(head), 4096)]))
	}
	if m.Name == "yarn" && m.Lock != "" && m.Version != "" && !strings.HasPrefix(m.Version, "1") {
		m.Args = []string{"yarn", "install", "--immutable"} // what --frozen-lockfile is called since yarn 2
	}
	return m, nil
}

// locked is what the lock files say.
func locked(files fs.FS, dir string) Manager {
	for _, row := range []struct{ file, command string }{
		{"yarn.lock", "yarn install --frozen-lockfile"},
		{"pnpm-lock.yaml", "pnpm i --frozen-lockfile"},
		{"package-lock.json", "npm ci"},
		{"bun.lockb", "bun i"},
		{"bun.lock", "bun i"},
	} {
		if isFile(files, dir, row.file) {
			return Manager{Args: strings.Fields(row.command), Lock: row.file}
		}
	}
	return Manager{}
}

// manager returns the package manager that a manifest names, with its version.
func (p packageFile) manager() (name, version string) {
	if named, _ := p.PackageManager.(string); named != "" {
		if strings.HasPrefix(named, "^") {
			return "", ""
		}
		name, version, _ = strings.Cut(named, "@")
		version, _, _ = strings.Cut(version, "+") // its hash
		if !versionForm.MatchString(version) {
			version = ""
		}
		return name, version
	}
	var one struct{ Name string }
	if json.Unmarshal(p.DevEngines.PackageManager, &one) == nil {
		return one.Name, ""
	}
	return "", ""
}

// byLock returns the version of a package manager that reads a lock file.
func byLock(file, head string) string {
	switch {
	case file == "yarn.lock" && strings.Contains(head, "__metadata:"):
		return "4"
	case file == "yarn.lock" && strings.Contains(head, "yarn lockfile v1"):
		return "1"
	case file == "pnpm-lock.yaml" && strings.Contains(head, "lockfileVersion: '6"):
		return "8"
	}
	return ""
}

// checkEngines holds package.json to the reference: engines may name only node, as a major version from 20.
func checkEngines(found *Findings, files fs.FS, dir string) {
	raw, err := fs.ReadFile(files, path.Join(dir, "package.json"))
	if err != nil {
		return // whoever installs says what is missing
	}
	var p struct {
		Engines map[string]any `json:"engines"`
	}
	if json.Unmarshal(raw, &p) != nil {
		return
	}
	for _, name := range slices.Sorted(mapKeys(p.Engines)) {
		if name != "node" {
			found.add("package.json", "package.json has engines.%s: only engines.node is allowed, remove it", name)
			continue
		}
		major, _ := p.Engines[name].(string)
		if n, err := strconv.Atoi(major); err != nil || n < 20 {
			found.add("package.json", `package.json has engines.node %s: write only a major version of 20 or later, such as "20"`, kind(p.Engines[name]))
		}
	}
}
