package githosttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
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

// Token is what a Server takes as its account's access token.
const Token = "canary-token-0123456789"

// Secret is what a Server signs its deliveries with.
const Secret = "canary-secret-0123456789"

// Server is a scripted git host: real repositories behind git's own http-backend, and as much of one kind's API and
// webhooks as slipway uses, in the kind's own shapes.
type Server struct {
	*httptest.Server
	kind slipway.HostKind
	root string
	app  *app // github

	mu       sync.Mutex
	repos    []string // owner/name, in the order they were made
	statuses []slipway.CommitStatus
	hook     string // where pushes are told; "" = nowhere
	// Deliveries of pushes so far, also where there is no hook.
	deliveries []Delivery
	answers    []string // of the hook
	calls      map[string]int
	refuse     func(w http.ResponseWriter, r *http.Request) bool
}

// Delivery is what a host sends to a webhook.
type Delivery struct {
	Header http.Header
	Body   []byte
}

// NewServer starts a host of a kind that ends with the test.
func NewServer(t testing.TB, kind slipway.HostKind) *Server {
	t.Helper()
	s := &Server{kind: kind, root: t.TempDir(), calls: map[string]int{}}
	if kind == slipway.HostGitHub {
		s.app = newApp(t)
	}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// Integration is one that leads to the server.
func (s *Server) Integration() slipway.Integration {
	i := slipway.Integration{ID: "01900000-0000-7000-8000-0000000000aa", Kind: s.kind, Name: "scripted", HostURL: s.URL}
	if s.app != nil {
		i.AppID, i.AppSlug = s.app.id, "scripted"
	}
	return i
}

// Secrets go with Integration.
func (s *Server) Secrets() slipway.IntegrationSecrets {
	if s.app != nil {
		return slipway.IntegrationSecrets{PrivateKey: s.app.pem, WebhookSecret: Secret}
	}
	return slipway.IntegrationSecrets{Token: Token, WebhookSecret: Secret}
}

// Hook sets where pushes are told from now on.
func (s *Server) Hook(url string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook = url
}

// Refuse lets fn answer requests of the API before the server does; it says whether it did.
func (s *Server) Refuse(fn func(w http.ResponseWriter, r *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = fn
}

// Calls is how often a path was asked for.
func (s *Server) Calls(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[path]
}

// Statuses lists what was said about a commit, oldest first.
func (s *Server) Statuses(commit string) []slipway.CommitStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []slipway.CommitStatus
	for _, status := range s.statuses {
		if status.Commit == commit {
			out = append(out, status)
		}
	}
	return out
}

// Answers lists what the hook answered so far.
func (s *Server) Answers() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.answers)
}

// Deliveries lists what was told so far.
func (s *Server) Deliveries() []Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.deliveries)
}

// CreateRepository makes an empty private repository, owner/name, and returns its address.
func (s *Server) CreateRepository(t testing.TB, path string) string {
	t.Helper()
	dir := filepath.Join(s.root, path+".git")
	for _, args := range [][]string{
		{"init", "-q", "--bare", "-b", "main", dir}, {"-C", dir, "config", "http.receivepack", "true"},
		{"-C", dir, "config", "uploadpack.allowAnySHA1InWant", "true"},
	} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.repos = append(s.repos, path)
	return s.URL + "/" + path + ".git"
}

// ServeHTTP answers git, and the API of the host's kind.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.calls[r.URL.Path]++
	refuse := s.refuse
	s.mu.Unlock()
	switch {
	case refuse != nil && refuse(w, r):
	case strings.Contains(r.URL.Path, ".git/"):
		s.git(w, r)
	case s.app != nil && s.appCall(w, r):
	case !s.bearer(r):
		answer(w, http.StatusUnauthorized, map[string]string{"message": "Bad credentials"})
	default:
		s.api(w, r)
	}
}

// bearer says whether an API request bears the right token.
func (s *Server) bearer(r *http.Request) bool {
	token := Token
	if s.app != nil {
		token = s.app.token(r)
	}
	got := r.Header.Get("Authorization")
	return got == "token "+token && s.kind == slipway.HostGitea || got == "Bearer "+token && s.kind != slipway.HostGitea
}

func (s *Server) git(w http.ResponseWriter, r *http.Request) {
	_, password, _ := r.BasicAuth()
	if allowed := password == Token || s.app != nil && s.app.knows(password); !allowed {
		w.Header().Set("WWW-Authenticate", `Basic realm="scripted"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	path, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), ".git/")
	if !slices.Contains(s.known(), path) {
		http.NotFound(w, r)
		return
	}
	before := s.refs(path)
	backend := cgi.Handler{Path: "/bin/sh", Args: []string{"-c", "exec git http-backend"}, Env: []string{
		"GIT_PROJECT_ROOT=" + s.root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=somebody", "PATH=" + os.Getenv("PATH"), "GIT_PROTOCOL=" + r.Header.Get("Git-Protocol"),
	}}
	if r.ContentLength < 0 { // the backend wants a length
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	}
	backend.ServeHTTP(w, r)
	if strings.HasSuffix(r.URL.Path, "/git-receive-pack") {
		s.tell(path, before, s.refs(path))
	}
}

func (s *Server) known() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.repos)
}

// refs reads the references of a repository; tags lead to their commits.
func (s *Server) refs(path string) map[string]string {
	out, err := exec.Command("git", "-C", filepath.Join(s.root, path+".git"), "for-each-ref", "--format=%(refname) %(if)%(*objectname)%(then)%(*objectname)%(else)%(objectname)%(end)").Output()
	if err != nil {
		return nil
	}
	refs := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if name, commit, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			refs[name] = commit
		}
	}
	return refs
}

const zeros = "0000000000000000000000000000000000000000"

// tell makes a delivery of every reference that moved, and sends it once the push is over.
func (s *Server) tell(path string, before, after map[string]string) {
	names := map[string]bool{}
	for name := range before {
		names[name] = true
	}
	for name := range after {
		names[name] = true
	}
	for name := range names {
		from, to := before[name], after[name]
		if from == to {
			continue
		}
		if from == "" {
			from = zeros
		}
		if to == "" {
			to = zeros
		}
		s.deliver(s.delivery(path, name, from, to))
	}
}

func (s *Server) deliver(d Delivery) {
	s.mu.Lock()
	s.deliveries = append(s.deliveries, d)
	hook := s.hook
	s.mu.Unlock()
	if hook == "" {
		return
	}
	_ = s.Send(hook, d) // what the hook answers is for tests to look at
}

// Send sends a delivery to an address and keeps the answer.
func (s *Server) Send(url string, d Delivery) error {
	r, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(d.Body))
	if err != nil {
		return err
	}
	r.Header = d.Header.Clone()
	res, err := (&http.Client{Timeout: 10 * time.Second}).Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers = append(s.answers, fmt.Sprintf("%d %s", res.StatusCode, bytes.TrimSpace(body)))
	return err
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client is gone if this fails
}
