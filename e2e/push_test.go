package e2e_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/githost/githosttest"
)

// TestPush goes from a push to a running revision without a hand on it, for a host with a token and for a GitHub App.
func TestPush(t *testing.T) {
	t.Parallel()
	for kind, connect := range map[slipway.HostKind]func(m *machine, s *githosttest.Server) string{
		slipway.HostGitea: addGitea, slipway.HostGitHub: makeApp,
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			s := githosttest.NewServer(t, kind)
			m := newMachine(t)
			m.flags = []string{"--allow-http-git", strings.TrimPrefix(s.URL, "http://")}
			m.up()
			m.pushes(s, connect(m, s))
		})
	}
}

func addGitea(m *machine, s *githosttest.Server) string {
	m.t.Helper()
	var made struct{ ID string }
	body := fmt.Sprintf(`{"kind":"gitea","name":"home","host_url":%q,"token":%q,"webhook_secret":%q}`, s.URL, githosttest.Token, githosttest.Secret)
	status, err := m.call(http.MethodPost, m.url+"/v2/integrations", body, &made)
	check(m.t, err)
	if status != http.StatusCreated {
		m.t.Fatalf("making the integration = %d", status)
	}
	return made.ID
}

var manifestField = regexp.MustCompile(`name="manifest" value="([^"]*)"`)

// makeApp plays the browser of `slipway integrations github create`.
func makeApp(m *machine, s *githosttest.Server) string {
	m.t.Helper()
	cmd := exec.CommandContext(m.t.Context(), filepath.Join(shared.bin, "slipway"), "integrations", "github", "create", "home", "--host", s.URL)
	cmd.Env = m.environ()
	out, err := cmd.StdoutPipe()
	check(m.t, err)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	check(m.t, cmd.Start())
	lines := bufio.NewScanner(out)
	here := ""
	for here == "" && lines.Scan() {
		if address := strings.TrimSpace(lines.Text()); strings.HasPrefix(address, "http://") {
			here = address
		}
	}
	page := m.browse(here)
	if !manifestField.MatchString(page) || !strings.Contains(page, "/webhooks/githost/") || !strings.Contains(page, s.URL+"/settings/apps/new?state=") {
		m.t.Fatalf("the page lacks the manifest or where it goes: %s", page)
	}
	state, _, _ := strings.Cut(page[strings.Index(page, "state=")+len("state="):], `"`)
	s.ManifestCode("code-1")
	if forged := m.browse(here + "/callback?code=evil&state=x"); !strings.Contains(forged, "begin again") {
		m.t.Errorf("a callback with another state = %s", forged)
	}
	m.browse(here + "/callback?code=code-1&state=" + url.QueryEscape(state))
	rest, err := io.ReadAll(out)
	check(m.t, err)
	if err := cmd.Wait(); err != nil || strings.Contains(string(rest), "PRIVATE KEY") {
		m.t.Fatalf("github create: %v %s %s", err, rest, errs.String())
	}
	return state
}

func (m *machine) browse(address string) string {
	m.t.Helper()
	res, err := http.Get(address)
	check(m.t, err)
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	check(m.t, err)
	return string(raw)
}

func (m *machine) pushes(s *githosttest.Server, integration string) {
	m.t.Helper()
	s.Hook(m.url + "/webhooks/githost/" + integration)
	repo := s.CreateRepository(m.t, "acme/desk")
	work := githosttest.NewWork(m.t, s.PushURL(repo))
	commit := func(greeting string) string {
		for _, file := range []string{"graphs.mjs", "langgraph.json", "agentgraph.json", "package.json", "package-lock.json"} {
			if raw, err := os.ReadFile(filepath.Join(m.source(greeting), file)); err == nil {
				work.Write(file, string(raw))
			}
		}
		sha := work.Commit("greeting", greeting)
		work.Git("push", "-q", "origin", "main")
		return sha
	}
	commit("one")
	if list, err := m.slipway("integrations", "repos", "home"); err != nil || !strings.Contains(list, "acme/desk") {
		m.t.Fatalf("repositories: %v %s", err, list)
	}
	m.deployFrom(repo, integration)
	m.eventually("the first commit serves", func() error { return m.settled("desk", "one") })

	second := commit("two")
	m.eventually("the pushed commit serves", func() error { return m.settled("desk", "two") })
	m.eventually("the host shows how the commit did", func() error {
		states := s.Statuses(second)
		if len(states) == 0 || states[len(states)-1].State != slipway.CommitSuccess || !strings.HasPrefix(states[len(states)-1].TargetURL, m.url) {
			return fmt.Errorf("statuses %+v", states)
		}
		return nil
	})
	m.repeated(s, integration)
	m.keepsSecret(githosttest.Token, githosttest.Secret, "ghs_canary")
}

func (m *machine) deployFrom(repo, integration string) {
	m.t.Helper()
	config := "agentgraph.json"
	if _, err := os.Stat(filepath.Join(shared.graphs, "js", config)); err != nil {
		config = "langgraph.json"
	}
	body := fmt.Sprintf(`{"name":"desk","source":"githost","source_config":{"integration_id":%q,"repo_url":%q,"build_on_push":true},
		"source_revision_config":{"repo_ref":"main","agentgraph_config_path":%q},"secrets":[]}`, integration, repo, config)
	var answer map[string]any
	status, err := m.call(http.MethodPost, m.url+"/v2/deployments", body, &answer)
	check(m.t, err)
	if status != http.StatusCreated {
		m.t.Fatalf("creating the deployment = %d %v", status, answer)
	}
}

// repeated kills the platform and sends the last push again: it must not count twice.
func (m *machine) repeated(s *githosttest.Server, integration string) {
	m.t.Helper()
	m.kill()
	m.up()
	all := s.Deliveries()
	check(m.t, s.Send(m.url+"/webhooks/githost/"+integration, all[len(all)-1]))
	answers := s.Answers()
	if last := answers[len(answers)-1]; !strings.HasPrefix(last, "202") || !strings.Contains(last, "received before") {
		m.t.Errorf("a repetition after kill -9 = %s, want 202 and nothing else", last)
	}
}

// keepsSecret looks for credentials in everything that the installation keeps, also what was logged and built.
func (m *machine) keepsSecret(secrets ...string) {
	m.t.Helper()
	logs, err := os.ReadFile(filepath.Join(m.work, "up.log"))
	check(m.t, err)
	if slices.ContainsFunc(secrets, func(s string) bool { return bytes.Contains(logs, []byte(s)) }) {
		m.t.Error("the log shows a credential")
	}
	check(m.t, filepath.WalkDir(m.data, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || strings.Contains(path, "/layers/") || strings.Contains(path, "/tools/") || strings.Contains(path, "node_modules") {
			return nil
		}
		raw, err := os.ReadFile(path)
		if err == nil && slices.ContainsFunc(secrets, func(s string) bool { return bytes.Contains(raw, []byte(s)) }) {
			m.t.Errorf("%s holds a credential", path)
		}
		return nil
	}))
}
