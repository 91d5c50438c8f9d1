package git_test

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/source/git"
)

const password = "canary-password"

// door serves the repositories below root to whoever knows the password, and remembers which credentials came.
type door struct {
	*httptest.Server
	root string
	open bool // to everybody

	mu   sync.Mutex
	seen []string // passwords
}

func newDoor(t *testing.T, root string) *door {
	t.Helper()
	d := &door{root: root}
	d.Server = httptest.NewServer(d)
	t.Cleanup(d.Close)
	return d
}

func (d *door) host() string { return strings.TrimPrefix(d.URL, "http://") }

func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, given, ok := r.BasicAuth()
	d.mu.Lock()
	if ok {
		d.seen = append(d.seen, given)
	}
	d.mu.Unlock()
	if !d.open && given != password {
		w.Header().Set("WWW-Authenticate", `Basic realm="door"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	(&cgi.Handler{Path: "/bin/sh", Args: []string{"-c", "exec git http-backend"}, Env: []string{
		"GIT_PROJECT_ROOT=" + d.root, "GIT_HTTP_EXPORT_ALL=1", "PATH=" + os.Getenv("PATH"), "GIT_PROTOCOL=" + r.Header.Get("Git-Protocol"),
	}}).ServeHTTP(w, r)
}

func (d *door) credentials() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.seen
}

func (d *door) lends() slipway.CloneCredentials {
	return slipway.CloneCredentials{Host: d.URL, Username: "u", Password: password}
}

func TestFetchWithCredentials(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	inner, outer := newRepo(t, filepath.Join(root, "inner")), newRepo(t, filepath.Join(root, "outer"))
	inner.commit("i", "inner")
	d := newDoor(t, root)
	outer.commit("o", "outer")
	outer.git("-c", "http.extraHeader=Authorization: Basic "+basic(), "submodule", "add", "-q", d.URL+"/inner/.git", "in")
	outer.git("commit", "-q", "-m", "sub")
	cfg := git.Config{PlainHosts: []string{d.host()}}
	job := slipway.BuildJob{RepoURL: d.URL + "/outer/.git"}
	if _, _, err := fetch(t, cfg, job); err == nil || !strings.Contains(err.Error(), "credentials") {
		t.Fatalf("without credentials: %v, want a word about them", err)
	}
	job.Clone = d.lends()
	dir, _, err := fetch(t, cfg, job)
	if err != nil {
		t.Fatal(err)
	}
	if got := content(t, dir, "o") + content(t, dir, "in/i"); got != "outerinner" {
		t.Errorf("got %q, want the private repository and its private submodule", got)
	}
	leftovers(t, dir)
	job.Clone.Password = "canary-password-wrong"
	if _, _, err := fetch(t, cfg, job); err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("with a wrong password: %v, want an error without it", err)
	}
}

func basic() string { return base64.StdEncoding.EncodeToString([]byte("u:" + password)) }

// leftovers looks for the password in everything that a fetch leaves.
func leftovers(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if strings.Contains(string(raw), password) {
			t.Errorf("%s holds the password", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestCredentialsStayWithTheirHost(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	r := newRepo(t, filepath.Join(root, "r"))
	r.commit("a", "one")
	stranger := newDoor(t, root) // asks for credentials
	own := newDoor(t, root)
	redirecting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if _, _, ok := q.BasicAuth(); !ok {
			w.Header().Set("WWW-Authenticate", `Basic realm="own"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		http.Redirect(w, q, stranger.URL+q.URL.RequestURI(), http.StatusFound)
	}))
	t.Cleanup(redirecting.Close)
	sub := newRepo(t, filepath.Join(root, "sub"))
	sub.commit("s", "s")
	sub.git("-c", "http.extraHeader=Authorization: Basic "+basic(), "submodule", "add", "-q", stranger.URL+"/r/.git", "in")
	sub.git("commit", "-q", "-m", "sub")
	before := len(stranger.credentials())

	cfg := git.Config{PlainHosts: []string{own.host(), stranger.host(), strings.TrimPrefix(redirecting.URL, "http://")}}
	lent := own.lends()
	if _, _, err := fetch(t, cfg, slipway.BuildJob{RepoURL: own.URL + "/sub/.git", Clone: lent}); err == nil {
		t.Error("a submodule of another host was fetched with credentials that are not for it")
	}
	lent.Host = redirecting.URL
	if _, _, err := fetch(t, cfg, slipway.BuildJob{RepoURL: redirecting.URL + "/r/.git", Clone: lent}); err == nil {
		t.Error("a redirect to another host was followed with credentials that are not for it")
	}
	for _, given := range stranger.credentials()[before:] {
		if given == password {
			t.Error("another host was given the password")
		}
	}
}

func TestProcessesDoNotShowThePassword(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	r := newRepo(t, filepath.Join(root, "r"))
	r.commit("a", "one")
	var mu sync.Mutex
	shown := ""
	d := &door{root: root}
	d.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		files, _ := filepath.Glob("/proc/[0-9]*/cmdline") // while git is at work
		for _, file := range files {
			if raw, err := os.ReadFile(file); err == nil && strings.Contains(string(raw), password) {
				mu.Lock()
				shown = string(raw)
				mu.Unlock()
			}
		}
		d.ServeHTTP(w, q)
	}))
	t.Cleanup(d.Close)
	job := slipway.BuildJob{RepoURL: d.URL + "/r/.git", Clone: d.lends()}
	var lines []string
	_, err := git.New(git.Config{PlainHosts: []string{d.host()}}).Fetch(context.Background(), job, t.TempDir(), func(line string) { lines = append(lines, line) })
	if err != nil {
		t.Fatal(err)
	}
	if shown != "" || strings.Contains(strings.Join(lines, "\n"), password) {
		t.Errorf("the password shows in the arguments %q or the log %q", shown, lines)
	}
}

func TestHostileLFSServers(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, c := range map[string]string{
		"a file":          "[lfs]\n\turl = file:///etc\n",
		"a git remote":    "[lfs]\n\turl = ext::touch /tmp/x\n",
		"one of a remote": "[remote \"origin\"]\n\tlfsurl = file:///etc\n",
		"plain http":      "[lfs]\n\turl = http://127.0.0.1:1/x\n",
	} {
		r := newRepo(t, filepath.Join(root, name))
		r.commit(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
		r.commit(".lfsconfig", c)
		_, _, err := fetch(t, git.Config{FileRoots: []string{root}}, slipway.BuildJob{RepoURL: r.url()})
		if err == nil || !strings.Contains(err.Error(), ".lfsconfig") {
			t.Errorf("%s: %v, want it refused naming .lfsconfig", name, err)
		}
	}
}
