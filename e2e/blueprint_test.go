package e2e_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestBlueprintsByteForByte builds a JavaScript revision from a repository and a Python one from an upload, changes their
// code, packages and secrets, takes away repository and uploads and collects what nobody needs. Then the first revisions run
// again: every file, what the workers see of their environment, the packages and the answers are what they were.
func TestBlueprintsByteForByte(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	repo := filepath.Join(m.work, "repo")
	m.flags = []string{"--keep-revisions", "2", "--allow-file-repos", m.work}
	m.up()
	for language, source := range map[string]func(greeting string) []string{
		"js": func(greeting string) []string {
			return []string{"--repo", m.commit(repo, m.sourceOf("js", greeting)), "--config", "agentgraph.json"}
		},
		"py": func(greeting string) []string { return []string{m.sourceOf("py", greeting)} },
	} {
		deploy := func(greeting, secret string) blueprint {
			t.Helper()
			_, err := m.slipway(append([]string{"deploy", "--name", language, "--secret", "TOKEN=" + secret, "--secret", "ONLY_" + greeting + "=1"}, source(greeting)...)...)
			check(t, err)
			m.eventually(language+" serves", func() error { return m.settled(language, greeting) })
			return m.blueprint(language)
		}
		first, second := deploy("one", "first-value"), deploy("two", "second-value")
		if first.env["TOKEN"] != "first-value" || second.env["TOKEN"] != "second-value" || first.files[first.bundle+"/bundle.json"] == "" || len(first.packages) == 0 {
			t.Fatalf("%s: the first blueprint is %+v", language, first)
		}
		if first.bundle == second.bundle || maps.Equal(first.env, second.env) {
			t.Errorf("%s: two revisions have one blueprint", language)
		}
		changes := m.diff(language, first.revision, second.revision)
		for field, want := range map[string]string{"secrets.TOKEN": "set changed", "secrets.ONLY_one": "", "secrets.ONLY_two": "- set"} {
			if changes[field] != want {
				t.Errorf("%s: the difference of %s is %q, want %q: %v", language, field, changes[field], want, changes)
			}
		}
		code := "source_tarball_digest"
		if language == "js" {
			code = "source_revision_config.repo_commit_sha"
		}
		if changes[code] == "" || changes["artifact_digest"] == "" {
			t.Errorf("%s: the difference lacks %s or the artifact: %v", language, code, changes)
		}
		check(t, os.RemoveAll(repo))
		check(t, os.RemoveAll(filepath.Join(m.work, "source")))
		m.withoutBlobs()
		_, err := m.slipway("gc", "--all")
		check(t, err)
		_, err = m.slipway("redeploy", language, first.revision)
		check(t, err)
		m.eventually(language+" serves the first again", func() error { return m.settled(language, "one") })
		again := m.blueprint(language)
		if again.revision == first.revision {
			t.Fatalf("%s: the redeploy made no revision", language)
		}
		again.revision = first.revision
		again.compare(t, language, first)
		if changes := m.diff(language, first.revision, m.latest(language)); len(changes) > 0 {
			t.Errorf("%s: slipway diff tells of differences to the first: %v", language, changes)
		}
	}
}

// blueprint is what a revision runs as.
type blueprint struct {
	revision, bundle string
	files            map[string]string // of the bundle and all it shares: path to mode, link and digest
	env              map[string]string // of its workers, with REVISION for the id of the revision
	packages         map[string]string // installed: name to version
}

func (b blueprint) compare(t *testing.T, language string, want blueprint) {
	t.Helper()
	if b.bundle != want.bundle {
		t.Errorf("%s: the bundle is %s, want %s", language, b.bundle, want.bundle)
	}
	for what, pair := range map[string][2]map[string]string{"file": {b.files, want.files}, "variable": {b.env, want.env}, "package": {b.packages, want.packages}} {
		all := maps.Clone(pair[0])
		maps.Copy(all, pair[1])
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if got, want := pair[0][name], pair[1][name]; got != want {
				t.Errorf("%s: %s %s is %q, want %q", language, what, name, got, want)
			}
		}
	}
}

// latest returns the id of the latest revision of a deployment.
func (m *machine) latest(name string) string {
	m.t.Helper()
	found, err := m.deployments(name)
	check(m.t, err)
	return *found[0].Latest
}

// blueprint reads what the active revision of a deployment runs as.
func (m *machine) blueprint(name string) blueprint {
	m.t.Helper()
	b := blueprint{revision: m.latest(name), files: map[string]string{}, env: map[string]string{}, packages: map[string]string{}}
	for _, p := range processes() {
		raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.pid))
		env := map[string]string{}
		for _, kv := range strings.Split(strings.TrimSuffix(string(raw), "\x00"), "\x00") {
			key, value, _ := strings.Cut(kv, "=")
			env[key] = strings.ReplaceAll(value, b.revision, "REVISION")
		}
		if env["LANGSMITH_HOST_REVISION_ID"] != "REVISION" {
			continue
		}
		if strings.Contains(p.cmdline, "\x00serve\x00") {
			_, after, _ := strings.Cut(p.cmdline, "\x00--bundle\x00")
			b.bundle, _, _ = strings.Cut(strings.TrimPrefix(after, m.data+"/"), "\x00")
		} else if below(p, m.servers()) {
			b.env = env
		}
	}
	if b.bundle == "" || len(b.env) == 0 {
		m.t.Fatalf("no worker of revision %s runs", b.revision)
	}
	var bundle struct{ Shared []string }
	raw, err := os.ReadFile(filepath.Join(m.data, b.bundle, "bundle.json"))
	check(m.t, err)
	check(m.t, json.Unmarshal(raw, &bundle))
	for _, at := range append([]string{b.bundle}, bundle.Shared...) {
		m.digests(at, b.files)
	}
	for file := range b.files {
		if dir := filepath.Base(filepath.Dir(file)); strings.HasSuffix(dir, ".dist-info") && filepath.Base(file) == "METADATA" {
			name, version, _ := strings.Cut(strings.TrimSuffix(dir, ".dist-info"), "-")
			b.packages[name] = version
		}
		if strings.Count(file, "/node_modules/") == 1 && filepath.Base(file) == "package.json" {
			var manifest struct{ Name, Version string }
			raw, _ := os.ReadFile(filepath.Join(m.data, file))
			if json.Unmarshal(raw, &manifest) == nil && manifest.Version != "" {
				b.packages[manifest.Name] = manifest.Version
			}
		}
	}
	return b
}

// digests adds what lies below a path of the data directory.
func (m *machine) digests(at string, into map[string]string) {
	m.t.Helper()
	check(m.t, filepath.WalkDir(filepath.Join(m.data, at), func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(m.data, name)
		what := info.Mode().String()
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(name)
			into[rel] = what + " " + to
			return err
		case info.Mode().IsRegular():
			raw, err := os.ReadFile(name)
			sum := sha256.Sum256(raw)
			into[rel] = what + " " + hex.EncodeToString(sum[:])
			return err
		}
		into[rel] = what
		return nil
	}))
}

// diff asks what differs between two revisions: field to "before after", "-" where there is none.
func (m *machine) diff(name, old, fresh string) map[string]string {
	m.t.Helper()
	out, err := m.slipway("diff", name, old, fresh, "--json")
	check(m.t, err)
	var answer struct {
		Changes []struct {
			Field         string
			Before, After *string
		}
	}
	check(m.t, json.Unmarshal([]byte(out), &answer))
	changes := map[string]string{}
	word := func(s *string) string {
		if s == nil {
			return "-"
		}
		return *s
	}
	for _, c := range answer.Changes {
		changes[c.Field] = word(c.Before) + " " + word(c.After)
	}
	return changes
}

// withoutBlobs removes every uploaded archive.
func (m *machine) withoutBlobs() {
	m.t.Helper()
	found, err := filepath.Glob(filepath.Join(m.data, "blobs", "*"))
	check(m.t, err)
	for _, file := range found {
		check(m.t, os.Remove(file))
	}
}

// sourceOf writes the graphs of a language with another greeting.
func (m *machine) sourceOf(language, greeting string) string {
	m.t.Helper()
	if language == "js" {
		return m.source(greeting)
	}
	dir := filepath.Join(m.work, "source")
	check(m.t, os.RemoveAll(dir))
	check(m.t, os.CopyFS(dir, os.DirFS(filepath.Join(shared.graphs, language))))
	file := filepath.Join(dir, "graphs.py")
	raw, err := os.ReadFile(file)
	check(m.t, err)
	check(m.t, os.WriteFile(file, []byte(strings.ReplaceAll(string(raw), "relay: {", greeting+": {")), 0o644))
	return dir
}

// commit makes what lies in a directory the latest commit of a repository, and returns its address.
func (m *machine) commit(repo, dir string) string {
	m.t.Helper()
	if _, err := os.Stat(repo); err != nil {
		check(m.t, os.MkdirAll(repo, 0o755))
		m.git(repo, "init", "-q", "-b", "main")
	}
	check(m.t, exec.Command("cp", "-rT", dir, repo).Run())
	m.git(repo, "add", "-A")
	m.git(repo, "-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-q", "--allow-empty", "-m", "next")
	return "file://" + repo
}

func (m *machine) git(dir string, args ...string) {
	m.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		m.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}
