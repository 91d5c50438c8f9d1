package node

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-dev/slipway"
)

// oldest is the first supported major version of Node.
const oldest = 20

// interpreter finds a Node of the wanted major version, any supported one for "". What was found once is used again while it
// stays as it was.
func (t *Toolchain) interpreter(ctx context.Context, major string) (interpreter, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, ok := t.known[major]; ok {
		if info, err := os.Stat(known.path); err == nil && info.ModTime().Equal(known.modTime) {
			return known, nil
		}
	}
	var have []string
	for _, at := range candidates(major) {
		found, ok := probe(ctx, at)
		if !ok {
			continue
		}
		is, _, _ := strings.Cut(found.version, ".")
		n, _ := strconv.Atoi(is)
		if is == major || major == "" && n >= oldest {
			t.known[major] = found
			return found, nil
		}
		if !slices.Contains(have, is) {
			have = append(have, is)
		}
	}
	if len(have) == 0 {
		have = []string{"none"}
	}
	if major == "" {
		major = strconv.Itoa(oldest) + " or later"
	}
	return interpreter{}, slipway.Errorf(slipway.CodeInvalid, "Node %s is not installed on this machine, which has %s: set node_version in the graph configuration to one of these, or install it", major, strings.Join(have, ", "))
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
