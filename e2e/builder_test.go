package e2e_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// builder starts `slipway builder` for the machine's platform with a data directory of its own.
func (m *machine) builder(name, key string, env ...string) *exec.Cmd {
	m.t.Helper()
	data := filepath.Join(m.work, name)
	check(m.t, warm(data))
	log, err := os.Create(filepath.Join(m.work, name+".log"))
	check(m.t, err)
	cmd := exec.Command(filepath.Join(shared.bin, "slipway"), "builder", "--url", m.url, "--data-dir", data, "--builds", "1")
	cmd.Stdout, cmd.Stderr, cmd.Env = log, log, append(m.environ(env...), "SLIPWAY_API_KEY="+key)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	check(m.t, cmd.Start())
	m.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		log.Close()
		if raw, _ := os.ReadFile(log.Name()); m.t.Failed() {
			m.t.Logf("%s:\n%s", name, raw)
		}
	})
	return cmd
}

// key makes an API key of the installation's organisation.
func (m *machine) key(role string) string {
	m.t.Helper()
	var made struct{ Key string }
	status, err := m.call("POST", m.url+"/v2/api-keys", `{"role":"`+role+`","organisation":true}`, &made)
	check(m.t, err)
	if status >= 300 || made.Key == "" {
		m.t.Fatalf("making a key of role %s: %d", role, status)
	}
	return made.Key
}

// TestBuildersElsewhere builds on another data directory than the one it runs on. A builder that dies in each phase of a build
// is followed by another, and what runs is what was deployed. Its key can do nothing but build.
func TestBuildersElsewhere(t *testing.T) {
	t.Parallel()
	for _, points := range [][]string{ // side by side: a dead builder's lease has to end before the next one goes on
		{"build.claimed", "build.fetched"}, {"build.installed", "build.packing"}, {"build.handing", "build.handed"}, {"build.bundled", "build.completed"},
	} {
		t.Run(points[0], func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			m.flags = []string{"--builds", "0"}
			m.up()
			key := m.key("builder")
			m.source("start")
			for i, point := range points {
				m.builderDies(point, i, key)
			}
			out, err := exec.Command(filepath.Join(shared.bin, "slipway"), "list", "--url", m.url, "--api-key", key).CombinedOutput()
			if err == nil || !strings.Contains(string(out), "builder") {
				t.Errorf("a builder's key lists deployments: %v %s", err, out)
			}
		})
	}
}

// builderDies deploys to a builder that dies at the point, and starts another one.
func (m *machine) builderDies(point string, i int, key string) {
	m.t.Helper()
	greeting := strings.ReplaceAll(point, ".", "-")
	source := m.source(greeting)
	first := m.builder(fmt.Sprint("dying-", i), key, "SLIPWAY_FAILPOINT="+point)
	_, err := m.slipway("deploy", source, "--name", "app", "--no-wait")
	check(m.t, err)
	died := make(chan error, 1)
	go func() { died <- first.Wait() }()
	select {
	case <-died:
	case <-time.After(patience):
		m.t.Fatalf("the builder never came to %s", point)
	}
	second := m.builder(fmt.Sprint("living-", i), key)
	m.eventually(point+": another builder ends it", func() error { return m.settled("app", greeting) })
	check(m.t, second.Process.Kill())
}

// TestAPlatformThatDiesInTheHandOver kills the control service while a builder elsewhere brings an artifact or reports it: the
// builder tries again, and what was deployed runs.
func TestAPlatformThatDiesInTheHandOver(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.flags = []string{"--builds", "0"}
	m.up()
	m.builder("steady", m.key("builder"))
	for _, point := range []string{"handover.receiving", "handover.reading", "handover.stored", "completion.receiving", "completion.recorded"} {
		greeting := strings.ReplaceAll(point, ".", "-")
		source := m.source(greeting)
		m.kill()
		m.up("SLIPWAY_FAILPOINT=" + point)
		_, err := m.slipway("deploy", source, "--name", "app", "--no-wait")
		check(t, err)
		m.awaitDeath()
		m.up()
		m.eventually(point+": the builder ends it", func() error { return m.settled("app", greeting) })
		m.eventually(point+": nothing is left", func() error { return m.tidy(1) })
	}
}

// bundles lists the bundles of the machine's disk.
func (m *machine) bundles() (names []string) {
	found, _ := filepath.Glob(filepath.Join(m.data, "bundles", "[0-9a-f]*"))
	return found
}

// TestBlueprintOutlivesItsSource redeploys an old revision after its archive is gone and everything that nobody needs was
// collected: what answers is the old code in the old bundle, byte for byte.
func TestBlueprintOutlivesItsSource(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.flags = []string{"--keep-revisions", "2"}
	m.up()
	for _, greeting := range []string{"one", "two", "three"} {
		_, err := m.slipway("deploy", m.source(greeting), "--name", "app")
		check(t, err)
		m.eventually("it serves", func() error { return m.settled("app", greeting) })
	}
	found, err := m.deployments("app")
	check(t, err)
	var list struct {
		Resources []struct {
			ID string `json:"id"`
		} `json:"resources"`
	}
	_, err = m.call("GET", m.url+"/v2/deployments/"+found[0].ID+"/revisions", "", &list)
	check(t, err)
	one, two := list.Resources[2].ID, list.Resources[1].ID
	check(t, fs.WalkDir(os.DirFS(m.data), "blobs", func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			return os.Remove(filepath.Join(m.data, name))
		}
		return err
	}))
	if got := len(m.bundles()); got != 3 {
		t.Fatalf("%d bundles, want 3", got)
	}
	plan, err := m.slipway("gc", "--all", "--dry-run")
	check(t, err)
	if !strings.Contains(plan, "bundles/") || !strings.Contains(plan, "would free") || len(m.bundles()) != 3 {
		t.Errorf("a dry run says %s and leaves %d bundles", plan, len(m.bundles()))
	}
	_, err = m.slipway("gc", "--all")
	check(t, err)
	if got := len(m.bundles()); got != 2 {
		t.Errorf("after the collection there are %d bundles, want 2: the active one and the one before it", got)
	}
	m.eventually("it serves", func() error { return m.settled("app", "three") })
	diff, err := m.slipway("diff", "app", two, "--json")
	check(t, err)
	var changes struct{ Changes []struct{ Field string } }
	check(t, json.Unmarshal([]byte(diff), &changes))
	if !strings.Contains(diff, "artifact_digest") {
		t.Errorf("the difference is %s", diff)
	}
	_, err = m.slipway("redeploy", "app", two)
	check(t, err)
	m.eventually("it serves", func() error { return m.settled("app", "two") })
	if out, err := m.slipway("redeploy", "app", one); err == nil || !strings.Contains(out, "archive") {
		t.Errorf("redeploying what was given up, without its source: %v %s", err, out)
	}
	check(t, m.greets(m.url+"/d/app", "two"))
}
