package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// machine is one installation under test: a data directory, a port and, while it is up, a platform.
type machine struct {
	t         *testing.T
	work      string // sources and logs
	data, url string
	listen    string
	flags     []string // more flags of slipway up
	token     string   // that slipway integrations add finds in its environment
	platform  *exec.Cmd
	ended     chan struct{}
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	work := t.TempDir()
	port, err := freePort()
	check(t, err)
	m := &machine{
		t: t, work: work, data: filepath.Join(work, "data"), listen: fmt.Sprint("127.0.0.1:", port), url: fmt.Sprint("http://127.0.0.1:", port),
	}
	check(t, os.Mkdir(filepath.Join(work, "home"), 0o755))
	check(t, warm(m.data))
	t.Cleanup(func() { stopEverything(m.data) })
	return m
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (m *machine) environ(extra ...string) []string {
	home, _ := os.UserHomeDir()
	env := append(os.Environ(), "HOME="+filepath.Join(m.work, "home"), "npm_config_cache="+filepath.Join(home, ".npm"), "SLIPWAY_DATA_DIR="+m.data,
		"SLIPWAY_URL=", "SLIPWAY_API_KEY=")
	return append(env, extra...)
}

// up starts the platform and waits until it answers. env may name a failpoint.
func (m *machine) up(env ...string) {
	m.t.Helper()
	log, err := os.OpenFile(filepath.Join(m.work, "up.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	check(m.t, err)
	args := append([]string{"up", "--data-dir", m.data, "--listen", m.listen, "--no-example"}, m.flags...)
	cmd := exec.Command(filepath.Join(shared.bin, "slipway"), args...)
	cmd.Stdout, cmd.Stderr, cmd.Env = log, log, m.environ(env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	check(m.t, cmd.Start())
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); log.Close(); close(ended) }()
	m.platform, m.ended = cmd, ended
	m.eventually("the platform answers", func() error {
		select {
		case <-ended:
			if len(env) == 0 {
				raw, _ := os.ReadFile(filepath.Join(m.work, "up.log"))
				m.t.Fatalf("slipway up ended\n%s", raw)
			}
			return nil // it died at its failpoint
		default:
		}
		res, err := http.Get(m.url + "/ok")
		if err == nil {
			res.Body.Close()
		}
		return err
	})
}

// kill ends the platform without warning.
func (m *machine) kill() {
	m.t.Helper()
	_ = m.platform.Process.Kill()
	<-m.ended
}

// awaitDeath waits until the platform died at its failpoint.
func (m *machine) awaitDeath() {
	m.t.Helper()
	select {
	case <-m.ended:
	case <-time.After(patience):
		m.t.Fatal("the platform never came to its failpoint")
	}
	if s, ok := m.platform.ProcessState.Sys().(syscall.WaitStatus); !ok || s.Signal() != syscall.SIGKILL {
		m.t.Fatalf("the platform ended with %v, want it killed at its failpoint", m.platform.ProcessState)
	}
}

// slipway runs the command line; its output goes into the error.
func (m *machine) slipway(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(shared.bin, "slipway"), args...)
	cmd.Env, cmd.Dir = m.environ("SLIPWAY_GIT_TOKEN="+m.token), m.work
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("slipway %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), err
}

// eventually repeats probe until it returns nil; what it said last is why the test fails.
func (m *machine) eventually(what string, probe func() error) {
	m.t.Helper()
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if err = probe(); err == nil {
			return
		}
	}
	raw, _ := os.ReadFile(filepath.Join(m.work, "up.log"))
	m.t.Fatalf("%s: not so; last: %v\n%s", what, err, raw[max(0, len(raw)-4000):])
}

// call sends a request to any address; to the control API with the installation's key.
func (m *machine) call(method, address, body string, into any) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if raw, err := os.ReadFile(filepath.Join(m.data, "credentials.json")); err == nil {
		var c map[string]string
		_ = json.Unmarshal(raw, &c)
		req.Header.Set("X-Api-Key", c["api_key"])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err == nil && into != nil {
		if err = json.Unmarshal(raw, into); err != nil {
			err = fmt.Errorf("%s %s: %d %s: %w", method, address, res.StatusCode, raw, err)
		}
	}
	return res.StatusCode, err
}

type deployment struct {
	ID     string  `json:"id"`
	Status string  `json:"status"`
	Latest *string `json:"latest_revision_id"`
	Active *string `json:"active_revision_id"`
}

// deployments returns those of a name.
func (m *machine) deployments(name string) ([]deployment, error) {
	var list struct{ Resources []deployment }
	_, err := m.call(http.MethodGet, m.url+"/v2/deployments?name="+name, "", &list)
	return list.Resources, err
}

// settled says what is not yet as it is after an undisturbed deploy: one deployment of the name, its latest revision is
// DEPLOYED and active, every other revision has ended, and the agent server at the address answers with the greeting.
func (m *machine) settled(name, greeting string) error {
	found, err := m.deployments(name)
	if err != nil || len(found) != 1 {
		return fmt.Errorf("%d deployments named %s: %w", len(found), name, err)
	}
	d := found[0]
	if d.Status != "READY" || d.Latest == nil || d.Active == nil || *d.Latest != *d.Active {
		return fmt.Errorf("deployment %+v", d)
	}
	var revisions struct {
		Resources []struct{ ID, Status string }
	}
	if _, err := m.call(http.MethodGet, m.url+"/v2/deployments/"+d.ID+"/revisions", "", &revisions); err != nil {
		return err
	}
	for i, r := range revisions.Resources {
		if i == 0 && r.Status != "DEPLOYED" || r.Status != "DEPLOYED" && r.Status != "SKIPPED" {
			return fmt.Errorf("revisions %+v", revisions.Resources)
		}
	}
	return m.greets(m.url+"/d/"+name, greeting)
}

// greets runs the graph "relay" and compares what it answers.
func (m *machine) greets(address, greeting string) error {
	var state struct {
		Messages []struct{ Content any }
	}
	status, err := m.call(http.MethodPost, address+"/runs/wait", `{"assistant_id":"relay","input":{"messages":[{"role":"user","content":"hi"}]}}`, &state)
	if err != nil {
		return err
	}
	if n := len(state.Messages); status != http.StatusOK || n == 0 || fmt.Sprint(state.Messages[n-1].Content) != greeting+": hi" {
		return fmt.Errorf("%s answers %d %+v, want %q", address, status, state.Messages, greeting+": hi")
	}
	return nil
}

// servers returns the agent servers of the installation.
func (m *machine) servers() (pids []int) {
	for _, p := range processes() {
		if strings.Contains(p.cmdline, "\x00serve\x00") && strings.Contains(p.cmdline, m.data) {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// endpoints returns the addresses that agent servers announced.
func (m *machine) endpoints() (all []string) {
	files, _ := filepath.Glob(filepath.Join(m.data, "run", "*", "ready*.json"))
	for _, file := range files {
		var ready struct{ Endpoint string }
		raw, _ := os.ReadFile(file)
		if json.Unmarshal(raw, &ready) == nil {
			all = append(all, ready.Endpoint)
		}
	}
	return all
}

// strays returns processes of the installation that are neither its platform nor its agent servers and workers: whatever has
// its home or its working directory in the data directory.
func (m *machine) strays() (found []string) {
	servers := m.servers()
	for _, p := range processes() {
		if p.pid == m.platform.Process.Pid || slices.Contains(servers, p.pid) || below(p, servers) {
			continue
		}
		cwd, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", p.pid))
		env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.pid))
		if strings.HasPrefix(cwd, m.data) || bytes.Contains(env, []byte("HOME="+m.data)) {
			found = append(found, fmt.Sprintf("%d %s", p.pid, strings.ReplaceAll(p.cmdline, "\x00", " ")))
		}
	}
	return found
}

// tidy says what an interruption left that should not be there.
func (m *machine) tidy(servers int) error {
	if got := m.servers(); len(got) != servers {
		return fmt.Errorf("%d agent servers run, want %d", len(got), servers)
	}
	if got := m.strays(); len(got) > 0 {
		return fmt.Errorf("processes are left: %q", got)
	}
	var left []string
	for _, pattern := range []string{"bundles/.tmp-*", "layers/.tmp-*", "blobs/.tmp-*", "blobs/*/.tmp-*", "tools/.tmp-*"} {
		more, _ := filepath.Glob(filepath.Join(m.data, pattern))
		left = append(left, more...)
	}
	if len(left) > 0 {
		return fmt.Errorf("files are left: %q", left)
	}
	return nil
}

// source writes the JavaScript graphs with another greeting, so that it shows which code answers.
func (m *machine) source(greeting string) string {
	m.t.Helper()
	dir := filepath.Join(m.work, "source")
	check(m.t, os.RemoveAll(dir))
	check(m.t, os.CopyFS(dir, os.DirFS(filepath.Join(shared.graphs, "js"))))
	check(m.t, os.RemoveAll(filepath.Join(dir, "node_modules")))
	file := filepath.Join(dir, "graphs.mjs")
	raw, err := os.ReadFile(file)
	check(m.t, err)
	changed := strings.ReplaceAll(string(raw), "relay: ", greeting+": ")
	if changed == string(raw) {
		m.t.Fatal(errors.New("graphs.mjs has no greeting to change"))
	}
	check(m.t, os.WriteFile(file, []byte(changed), 0o644))
	return dir
}

func killPID(pid int) error { return syscall.Kill(pid, syscall.SIGKILL) }
