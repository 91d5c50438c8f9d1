package e2e_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/githost/githosttest"
)

// sshHost serves the bare repositories below a directory to whoever has the deploy key.
type sshHost struct {
	root   string
	listen net.Listener
	cfg    *ssh.ServerConfig
	known  string // its line of a known_hosts file
	key    string // the deploy key it accepts, in OpenSSH's form
}

func newKey(t *testing.T) (ssh.Signer, string) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	check(t, err)
	signer, err := ssh.NewSignerFromKey(private)
	check(t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	check(t, err)
	return signer, string(pem.EncodeToMemory(block))
}

func newSSHHost(t *testing.T) *sshHost {
	t.Helper()
	own, _ := newKey(t)
	deploy, text := newKey(t)
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	h := &sshHost{root: t.TempDir(), listen: listen, key: text}
	h.known = fmt.Sprintf("[127.0.0.1]:%d %s", listen.Addr().(*net.TCPAddr).Port, ssh.MarshalAuthorizedKey(own.PublicKey()))
	h.cfg = &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if !bytes.Equal(key.Marshal(), deploy.PublicKey().Marshal()) {
			return nil, errors.New("no such key")
		}
		return &ssh.Permissions{}, nil
	}}
	h.cfg.AddHostKey(own)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := listen.Accept()
			if err != nil {
				return
			}
			go h.serve(conn)
		}
	}()
	t.Cleanup(func() { listen.Close(); <-ended })
	return h
}

// address is that of a repository.
func (h *sshHost) address(name string) string { return h.host() + "/" + name }
func (h *sshHost) host() string               { return "ssh://git@" + h.listen.Addr().String() }

func (h *sshHost) serve(conn net.Conn) {
	defer conn.Close()
	_, channels, requests, err := ssh.NewServerConn(conn, h.cfg)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for offered := range channels {
		if offered.ChannelType() != "session" {
			_ = offered.Reject(ssh.UnknownChannelType, "sessions only")
			continue
		}
		channel, requests, err := offered.Accept()
		if err != nil {
			return
		}
		go h.session(channel, requests)
	}
}

var uploadPack = regexp.MustCompile(`^git-upload-pack '/([a-z]+\.git)'$`)

// session answers git-upload-pack of one of the repositories.
func (h *sshHost) session(channel ssh.Channel, requests <-chan *ssh.Request) {
	defer channel.Close()
	for r := range requests {
		if r.Type != "exec" {
			_ = r.Reply(r.Type == "env", nil)
			continue
		}
		var command struct{ Line string }
		found := uploadPack.FindStringSubmatch("")
		if ssh.Unmarshal(r.Payload, &command) == nil {
			found = uploadPack.FindStringSubmatch(command.Line)
		}
		_ = r.Reply(found != nil, nil)
		if found == nil {
			return
		}
		cmd := exec.Command("git", "upload-pack", filepath.Join(h.root, found[1]))
		cmd.Stdin, cmd.Stdout, cmd.Stderr = channel, channel, channel.Stderr()
		status := struct{ Code uint32 }{}
		if cmd.Run() != nil {
			status.Code = 128
		}
		_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(status))
		return
	}
}

// repository makes a bare repository with the JavaScript graphs, and returns how a new greeting is committed to it.
func (h *sshHost) repository(m *machine, name string) func(greeting string) {
	m.t.Helper()
	bare := filepath.Join(h.root, name)
	check(m.t, command(".", "git", "init", "-q", "--bare", "-b", "main", bare))
	work := githosttest.NewWork(m.t, bare)
	return func(greeting string) {
		for _, file := range []string{"graphs.mjs", "langgraph.json", "agentgraph.json", "package.json", "package-lock.json"} {
			if raw, err := os.ReadFile(filepath.Join(m.source(greeting), file)); err == nil {
				work.Write(file, string(raw))
			}
		}
		work.Commit("greeting", greeting)
		work.Git("push", "-q", "origin", "main")
	}
}

func (m *machine) file(name, content string) string {
	m.t.Helper()
	at := filepath.Join(m.work, name)
	check(m.t, os.WriteFile(at, []byte(content), 0o600))
	return at
}

// TestDeployKeys builds from a server that speaks nothing but ssh, with a deploy key and with keys that do not do.
func TestDeployKeys(t *testing.T) {
	t.Parallel()
	h, m := newSSHHost(t), newMachine(t)
	m.up()
	commit := h.repository(m, "desk.git")
	commit("one")
	_, stranger := newKey(t)
	other, _ := newKey(t)
	right, known := m.file("deploy_key", h.key), m.file("known_hosts", h.known)
	wrong := m.file("stranger_key", stranger)
	changed := m.file("changed_hosts", strings.Fields(h.known)[0]+" "+string(ssh.MarshalAuthorizedKey(other.PublicKey())))
	unknown := m.file("unknown_hosts", "git.example.com "+string(ssh.MarshalAuthorizedKey(other.PublicKey())))
	for name, c := range map[string]struct{ key, hosts, want string }{
		"stranger": {wrong, known, "does not accept the integration's deploy key"},
		"changed":  {right, changed, "has a key that is not among the known hosts"},
		"unknown":  {right, unknown, "has a key that is not among the known hosts"},
	} {
		id := m.sshIntegration(h, name, c.key, c.hosts)
		m.deploySSH(name, h.address("desk.git"), id)
		m.eventually(name+": the build fails", func() error { return m.failed(name, c.want) })
	}
	m.deploySSH("desk", h.address("desk.git"), m.sshIntegration(h, "plain", right, known))
	m.eventually("the repository serves", func() error { return m.settled("desk", "one") })
	commit("two")
	_, err := m.slipway("deploy", "--repo", h.address("desk.git"), "--name", "desk")
	check(t, err)
	m.eventually("the new commit serves", func() error { return m.settled("desk", "two") })
	body := strings.Split(h.key, "\n")[2]
	m.keepsSecret(body, strings.Split(stranger, "\n")[2])
}

// sshIntegration adds a generic host with a deploy key by the command line, and returns its id.
func (m *machine) sshIntegration(h *sshHost, name, key, hosts string) string {
	m.t.Helper()
	out, err := m.slipway("integrations", "add", "generic", name, "--host", h.host(), "--key", key, "--known-hosts", hosts)
	if err != nil {
		m.t.Fatalf("integrations add: %v\n%s", err, out)
	}
	found := regexp.MustCompile(`added ` + name + ` \(([0-9a-f-]{36})\)`).FindStringSubmatch(out)
	if found == nil || strings.Contains(out, "PRIVATE KEY") {
		m.t.Fatalf("integrations add says %s", out)
	}
	return found[1]
}

func (m *machine) deploySSH(name, repo, integration string) {
	m.t.Helper()
	config := "agentgraph.json"
	if _, err := os.Stat(filepath.Join(shared.graphs, "js", config)); err != nil {
		config = "langgraph.json"
	}
	body := fmt.Sprintf(`{"name":%q,"source":"githost","source_config":{"integration_id":%q,"repo_url":%q},
		"source_revision_config":{"repo_ref":"main","agentgraph_config_path":%q},"secrets":[]}`, name, integration, repo, config)
	var answer map[string]any
	status, err := m.call(http.MethodPost, m.url+"/v2/deployments", body, &answer)
	check(m.t, err)
	if status != http.StatusCreated {
		m.t.Fatalf("creating %s = %d %v", name, status, answer)
	}
}

// failed says whether the newest revision of a deployment failed to build for a reason with the text.
func (m *machine) failed(name, want string) error {
	found, err := m.deployments(name)
	if err != nil || len(found) != 1 {
		return fmt.Errorf("%+v, %w", found, err)
	}
	var list struct {
		Resources []struct {
			Status string `json:"status"`
			Reason string `json:"status_reason"`
		} `json:"resources"`
	}
	if _, err := m.call(http.MethodGet, m.url+"/v2/deployments/"+found[0].ID+"/revisions", "", &list); err != nil || len(list.Resources) == 0 {
		return fmt.Errorf("no revisions: %w", err)
	}
	if r := list.Resources[0]; r.Status != "BUILD_FAILED" || !strings.Contains(r.Reason, want) {
		return fmt.Errorf("%s because %q, want BUILD_FAILED because %q", r.Status, r.Reason, want)
	}
	return nil
}

// TestIntegrationsByCommandLine adds, lists, uses and deletes integrations with the commands, and makes the mistakes there are.
func TestIntegrationsByCommandLine(t *testing.T) {
	t.Parallel()
	s := githosttest.NewServer(t, slipway.HostGitea)
	m := newMachine(t)
	m.flags = []string{"--allow-http-git", strings.TrimPrefix(s.URL, "http://")}
	m.up()
	s.CreateRepository(t, "acme/desk")
	t.Run("empty", func(t *testing.T) { m.says(t, nil, "integrations", "list") })
	add := []string{"integrations", "add", "gitea", "home", "--host", s.URL}
	m.refuses(t, "", []string{"no token", "SLIPWAY_GIT_TOKEN"}, add...)
	m.refuses(t, "wrong-token", []string{"does not take the integration's credentials"}, add...)
	m.refuses(t, githosttest.Token, []string{"bitbucket"}, "integrations", "add", "bitbucket", "home", "--host", s.URL)
	m.refuses(t, githosttest.Token, []string{"cannot read"}, "integrations", "add", "generic", "k", "--host", "ssh://git@h.example", "--key", filepath.Join(m.work, "none"))
	m.token = githosttest.Token
	m.says(t, []string{"added home (", "/webhooks/githost/", "shown this once"}, add...)
	m.token = ""
	m.says(t, []string{"home", "gitea", s.URL}, "integrations", "list")
	m.says(t, []string{"acme/desk", "main"}, "integrations", "repos", "home")
	m.says(t, []string{`"name":"home"`}, "integrations", "list", "--json")
	m.refuses(t, githosttest.Token, []string{"home"}, add...)
	m.refuses(t, "", []string{`no integration named "hom"`}, "integrations", "repos", "hom")
	m.says(t, []string{"deleted home"}, "integrations", "delete", "home")
	m.refuses(t, "", []string{`no integration named "home"`}, "integrations", "delete", "home")
	m.keepsSecret(githosttest.Token)
}

// says runs a command that must succeed and say these texts.
func (m *machine) says(t *testing.T, want []string, args ...string) {
	t.Helper()
	out, err := m.slipway(args...)
	if err != nil {
		t.Errorf("slipway %v: %v\n%s", args, err, out)
	}
	for _, text := range want {
		if !strings.Contains(out, text) {
			t.Errorf("slipway %v lacks %q:\n%s", args, text, out)
		}
	}
	if strings.Contains(out, githosttest.Token) {
		t.Errorf("slipway %v shows the token:\n%s", args, out)
	}
}

// refuses runs a command with a token that must fail and say these texts.
func (m *machine) refuses(t *testing.T, token string, want []string, args ...string) {
	t.Helper()
	m.token = token
	defer func() { m.token = "" }()
	out, err := m.slipway(args...)
	if err == nil {
		t.Errorf("slipway %v succeeds:\n%s", args, out)
	}
	for _, text := range want {
		if !strings.Contains(out, text) {
			t.Errorf("slipway %v lacks %q:\n%s", args, text, out)
		}
	}
}
