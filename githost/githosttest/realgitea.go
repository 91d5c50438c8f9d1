package githosttest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
)

// patience is how long a real Gitea may take to start, or to send a delivery.
const patience = 90 * time.Second

const giteaConfig = `
APP_NAME = test
RUN_MODE = prod
WORK_PATH = %[1]s
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = %[2]d
ROOT_URL = %[3]s/
STATIC_ROOT_PATH = %[4]s
DISABLE_SSH = true
OFFLINE_MODE = true
LFS_START_SERVER = true
[database]
DB_TYPE = sqlite3
PATH = %[1]s/gitea.db
[security]
INSTALL_LOCK = true
PASSWORD_HASH_ALGO = pbkdf2_v1
[service]
DISABLE_REGISTRATION = true
[webhook]
ALLOWED_HOST_LIST = loopback
[log]
LEVEL = Error
[indexer]
REPO_INDEXER_ENABLED = false
[cron]
ENABLED = false
`

// Gitea is a real Gitea that ends with the test.
type Gitea struct {
	URL, bin, config string
	users            int
	mu               sync.Mutex
}

// StartGitea starts the Gitea at bin, whose templates lie below static.
func StartGitea(t testing.TB, bin, static string) *Gitea {
	t.Helper()
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := socket.Addr().(*net.TCPAddr).Port
	socket.Close()
	dir := t.TempDir()
	g := &Gitea{URL: fmt.Sprint("http://127.0.0.1:", port), bin: bin, config: filepath.Join(dir, "app.ini")}
	if err := os.WriteFile(g.config, fmt.Appendf(nil, giteaConfig, dir, port, g.URL, static), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := g.command("web")
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Signal(os.Interrupt); _ = cmd.Wait() })
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if res, err := http.Get(g.URL + "/api/v1/version"); err == nil {
			res.Body.Close()
			return g
		}
		if time.Now().After(deadline) {
			t.Fatalf("Gitea does not answer: %s", log.String())
		}
	}
}

func (g *Gitea) command(args ...string) *exec.Cmd {
	cmd := exec.Command(g.bin, append([]string{"--config", g.config}, args...)...)
	home := filepath.Dir(g.config)
	cmd.Env = append(os.Environ(), "HOME="+home, "USER=git", "GITEA_I_AM_BEING_UNSAFE_RUNNING_AS_ROOT=true")
	return cmd
}

// Account is a person at a Gitea, with a token and a place where the webhooks of its repositories arrive.
type Account struct {
	*Gitea
	Name, Token string
	inbox       *httptest.Server

	got        sync.Mutex
	deliveries []Delivery
}

// NewAccount makes an account.
func (g *Gitea) NewAccount(t testing.TB) *Account {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.users++
	a := &Account{Gitea: g, Name: fmt.Sprint("user", g.users)}
	for _, args := range [][]string{
		{"admin", "user", "create", "--username", a.Name, "--password", "canary-Password-1", "--email", a.Name + "@example.org", "--must-change-password=false"},
		{"admin", "user", "generate-access-token", "--username", a.Name, "--raw", "--scopes", "write:repository,write:user"},
	} {
		out, err := g.command(args...).Output()
		if err != nil {
			t.Fatalf("gitea %v: %v", args, err)
		}
		lines := strings.Fields(string(out))
		a.Token = lines[len(lines)-1]
	}
	a.inbox = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			a.got.Lock()
			defer a.got.Unlock()
			a.deliveries = append(a.deliveries, Delivery{r.Header.Clone(), body})
		}
	}))
	t.Cleanup(a.inbox.Close)
	return a
}

// Call asks the API with the account's token.
func (a *Account) Call(t testing.TB, method, path string, in, out any) {
	t.Helper()
	raw, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, a.URL+"/api/v1"+path, bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "token "+a.Token)
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= 300 {
		t.Fatalf("%s %s = %d %s %v", method, path, res.StatusCode, answer, err)
	}
	if out != nil {
		if err := json.Unmarshal(answer, out); err != nil {
			t.Fatal(err)
		}
	}
}

// NewRepository makes a private repository whose pushes are told to hook, "" = to the account itself.
func (a *Account) NewRepository(t testing.TB, name, hook string) string {
	t.Helper()
	var made struct {
		CloneURL string `json:"clone_url"`
	}
	a.Call(t, http.MethodPost, "/user/repos", map[string]any{"name": name, "private": true, "default_branch": "main"}, &made)
	if hook == "" {
		hook = a.inbox.URL
	}
	a.Call(t, http.MethodPost, "/repos/"+a.Name+"/"+name+"/hooks", map[string]any{
		"type": "gitea", "active": true, "events": []string{"push"}, "config": map[string]string{"url": hook, "content_type": "json", "secret": Secret},
	}, nil)
	return made.CloneURL
}

// PushURL is the address at which a test pushes.
func (a *Account) PushURL(repoURL string) string {
	return strings.Replace(repoURL, "://", "://"+a.Name+":"+a.Token+"@", 1)
}

// World is the account as the suite wants it.
func (a *Account) World(t *testing.T, hosts slipway.GitHosts) *World {
	t.Helper()
	open := func(host, token string) slipway.GitHost {
		i := slipway.Integration{Kind: slipway.HostGitea, HostURL: host}
		h, err := hosts.Open(i, slipway.IntegrationSecrets{Token: token, WebhookSecret: Secret})
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	return &World{
		Host: open(a.URL, a.Token), Refused: open(a.URL, "wrong"), Gone: open(GoneURL, a.Token), Lists: true,
		NewRepository: func(t testing.TB, name string) string { return a.NewRepository(t, name, "") },
		PushURL:       a.PushURL, Deliveries: a.await, States: a.states,
	}
}

// await waits until n deliveries came.
func (a *Account) await(t testing.TB, n int) []Delivery {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		a.got.Lock()
		got := slices.Clone(a.deliveries)
		a.got.Unlock()
		if len(got) >= n {
			return got
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d deliveries came, want %d", len(got), n)
		}
	}
}

func (a *Account) states(t testing.TB, repoURL, commit string) []slipway.CommitState {
	t.Helper()
	type status struct {
		ID     int64               `json:"id"`
		Status slipway.CommitState `json:"status"`
	}
	var found []status
	path := strings.TrimSuffix(strings.TrimPrefix(repoURL, a.URL+"/"), ".git")
	a.Call(t, http.MethodGet, "/repos/"+path+"/statuses/"+commit+"", nil, &found)
	slices.SortFunc(found, func(x, y status) int { return cmp.Compare(x.ID, y.ID) })
	var states []slipway.CommitState
	for _, s := range found {
		if s.Status == "warning" {
			s.Status = slipway.CommitCanceled
		}
		states = append(states, s.Status)
	}
	return states
}
