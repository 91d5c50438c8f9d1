// Package githosttest is the conformance suite of slipway.GitHost, and a scripted host that speaks the APIs of GitHub, Gitea
// and GitLab before real git repositories.
package githosttest

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway"
)

// World is one host with an account that slipway uses.
type World struct {
	Host    slipway.GitHost // of the account
	Refused slipway.GitHost // of an account that the host does not take; nil = the host has none
	Gone    slipway.GitHost // where nothing listens
	// NewRepository makes an empty private repository and returns its address, which ends with owner/name.git.
	NewRepository func(t testing.TB, name string) string
	// PushURL is the address at which a test pushes to a repository: with credentials in it.
	PushURL func(repoURL string) string
	// Deliveries lists what pushes have made the host send, waiting until there are n.
	Deliveries func(t testing.TB, n int) []Delivery
	// States lists what the host shows of a commit, oldest first; nil = the host shows nothing.
	States func(t testing.TB, repoURL, commit string) []slipway.CommitState
	// TellsDeletions says whether the host sends pushes for branches that are deleted.
	TellsDeletions bool
	// Lists says whether the host lists repositories.
	Lists bool
}

// Run runs the suite; open starts a host that lives as long as the test.
func Run(t *testing.T, open func(t *testing.T) *World) {
	for name, test := range map[string]func(t *testing.T, w *World){
		"repositories": repositories, "clone": clone, "resolve": resolve, "statuses": statuses, "pushes": pushes, "forgeries": forgeries,
		"refusals": refusals,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// Work is a clone of a repository that a test commits to.
type Work struct {
	t   testing.TB
	dir string
}

// NewWork makes a working tree whose origin is address.
func NewWork(t testing.TB, address string) Work {
	t.Helper()
	w := Work{t, t.TempDir()}
	w.Git("init", "-q", "-b", "main")
	w.Git("remote", "add", "origin", address)
	return w
}

// Git runs git in the working tree and returns what it prints.
func (w Work) Git(args ...string) string {
	w.t.Helper()
	out, err := git(w.dir, args...)
	if err != nil {
		w.t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(out)
}

func git(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "credential.helper="}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=true")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Write puts a file into the working tree.
func (w Work) Write(file, content string) {
	w.t.Helper()
	path := filepath.Join(w.dir, file)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// Commit writes a file and returns the commit.
func (w Work) Commit(file, content string) string {
	w.t.Helper()
	w.Write(file, content)
	w.Git("add", ".")
	w.Git("commit", "-q", "-m", "change "+file)
	return w.Git("rev-parse", "HEAD")
}

// filled makes a repository with one commit on main.
func filled(t *testing.T, w *World, name string) (repoURL, commit string, work Work) {
	t.Helper()
	repoURL = w.NewRepository(t, name)
	work = NewWork(t, w.PushURL(repoURL))
	commit = work.Commit("a", "one")
	work.Git("push", "-q", "origin", "main")
	return repoURL, commit, work
}

func code(t *testing.T, what string, err error, want slipway.Code) {
	t.Helper()
	if got := slipway.ErrorCode(err); err == nil || got != want {
		t.Errorf("%s: got %v, want an error with code %s", what, err, want)
	}
}

func repositories(t *testing.T, w *World) {
	names := []string{"one", "two", "three"}
	var urls []string
	for _, name := range names {
		url, _, _ := filled(t, w, name)
		urls = append(urls, url)
	}
	found, err := w.Host.Repository(t.Context(), urls[1])
	if err != nil {
		t.Fatal(err)
	}
	if found.Name != "two" || found.DefaultBranch != "main" || !slipway.SameRepository(found.URL, urls[1]) || found.Owner == "" {
		t.Errorf("repository = %+v, want two at %s with main", found, urls[1])
	}
	if _, err := w.Host.Repository(t.Context(), strings.Replace(urls[1], "two", "none", 1)); true {
		code(t, "a repository that is not there", err, slipway.CodeNotFound)
	}
	for _, other := range []string{"https://elsewhere.example/a/b.git", strings.Replace(urls[0], "://", "://user:pw@", 1), "git@elsewhere.example:a/b", strings.TrimSuffix(urls[0], "/one.git") + "/../x.git"} {
		_, err := w.Host.Repository(t.Context(), other)
		code(t, other, err, slipway.CodeNotFound)
		_, err = w.Host.CloneCredentials(t.Context(), other)
		code(t, "credentials for "+other, err, slipway.CodeNotFound)
	}
	_, _, err = w.Host.Repositories(t.Context(), "no cursor", 1)
	code(t, "a cursor of nobody", err, slipway.CodeInvalid)
	listed(t, w, names)
}

func listed(t *testing.T, w *World, names []string) {
	t.Helper()
	var got []string
	for cursor, pages := "", 0; pages < 10; pages++ {
		page, next, err := w.Host.Repositories(t.Context(), cursor, 2)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) > 2 {
			t.Errorf("a page of %d, want 2 at most", len(page))
		}
		for _, r := range page {
			if got = append(got, r.Name); r.ID == 0 || r.URL == "" || r.Owner == "" || r.DefaultBranch != "main" {
				t.Errorf("%+v lacks something", r)
			}
		}
		if cursor = next; next == "" {
			break
		}
	}
	want := slices.Sorted(slices.Values(names))
	if slices.Sort(got); w.Lists && !slices.Equal(got, want) || !w.Lists && len(got) > 0 {
		t.Errorf("listed %v, want %v", got, want)
	}
}

func clone(t *testing.T, w *World) {
	repoURL, commit, _ := filled(t, w, "private")
	if out, err := git(t.TempDir(), "ls-remote", repoURL); err == nil {
		t.Fatalf("the repository is not private: %s", out)
	}
	c, err := w.Host.CloneCredentials(t.Context(), repoURL)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(repoURL, c.Host+"/") || c.Username == "" || c.Password == "" {
		t.Fatalf("credentials for %s as %s, want some for the host of %s", c.Host, c.Username, repoURL)
	}
	with := strings.Replace(repoURL, "://", "://"+c.Username+":"+c.Password+"@", 1)
	out, err := git(t.TempDir(), "ls-remote", with, "refs/heads/main")
	if err != nil || !strings.HasPrefix(out, commit) {
		t.Errorf("ls-remote = %s %v, want %s", out, err, commit)
	}
	again, err := w.Host.CloneCredentials(t.Context(), repoURL)
	if err != nil || again.Password != c.Password {
		t.Errorf("another time: %v, want the same ones while they are good", err)
	}
}

func resolve(t *testing.T, w *World) {
	repoURL, main, work := filled(t, w, "refs")
	work.Git("tag", "-a", "v1", "-m", "v1")
	work.Git("tag", "light")
	work.Git("checkout", "-q", "-b", "feature/x")
	feature := work.Commit("a", "two")
	work.Git("push", "-q", "origin", "feature/x", "v1", "light")
	for ref, want := range map[string]string{"main": main, "": main, "feature/x": feature, "refs/tags/v1": main, "refs/tags/light": main} {
		if got, err := w.Host.Resolve(t.Context(), repoURL, ref); err != nil || got != want {
			t.Errorf("%q = %q %v, want %s", ref, got, err, want)
		}
	}
	for _, ref := range []string{"mian", "refs/tags/v2", "v1"} {
		_, err := w.Host.Resolve(t.Context(), repoURL, ref)
		code(t, ref, err, slipway.CodeNotFound)
	}
}

func statuses(t *testing.T, w *World) {
	repoURL, commit, _ := filled(t, w, "checked")
	all := []slipway.CommitState{slipway.CommitPending, slipway.CommitSuccess, slipway.CommitFailure, slipway.CommitCanceled}
	for _, state := range append(all, slipway.CommitCanceled) {
		s := slipway.CommitStatus{RepoURL: repoURL, Commit: commit, State: state, Context: "slipway/desk", Description: "a word", TargetURL: "https://slipway.example/o/1"}
		if err := w.Host.SetStatus(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", state, err)
		}
	}
	if w.States == nil {
		return
	}
	if got := w.States(t, repoURL, commit); !slices.Equal(got[:min(len(got), 4)], all) {
		t.Errorf("the host shows %v, want %v", got, all)
	}
}

func read(t *testing.T, w *World, d Delivery) (slipway.Hook, error) {
	t.Helper()
	return w.Host.ReadHook(d.Header.Get, d.Body)
}

func pushes(t *testing.T, w *World) {
	repoURL, first, work := filled(t, w, "pushed")
	second := work.Commit("a", "two")
	work.Git("push", "-q", "origin", "main")
	work.Git("tag", "v1")
	work.Git("push", "-q", "origin", "v1")
	work.Git("push", "-q", "origin", "main:refs/heads/other")
	work.Git("push", "-q", "origin", ":refs/heads/other")
	want := []slipway.PushEvent{
		{Ref: "refs/heads/main", Commit: first, Created: true}, {Ref: "refs/heads/main", Commit: second},
		{Ref: "refs/tags/v1", Commit: second, Created: true}, {Ref: "refs/heads/other", Commit: second, Created: true},
		{Ref: "refs/heads/other", Deleted: true},
	}
	if !w.TellsDeletions {
		want = want[:len(want)-1]
	}
	keys := map[string]bool{}
	var got []slipway.PushEvent
	for _, d := range w.Deliveries(t, len(want)) {
		hook, err := read(t, w, d)
		if err != nil {
			t.Fatal(err)
		}
		if hook.Push == nil {
			if hook.About == "" {
				t.Error("a delivery without a push does not say why")
			}
			continue
		}
		for _, key := range hook.Keys {
			if keys[key] {
				t.Errorf("two pushes share the key %s", key)
			}
			keys[key] = true
		}
		if len(hook.Keys) == 0 || !slices.ContainsFunc(hook.Push.RepoURLs, func(u string) bool { return slipway.SameRepository(u, repoURL) }) {
			t.Errorf("push of %v with keys %v, want one of %s", hook.Push.RepoURLs, hook.Keys, repoURL)
		}
		hook.Push.RepoURLs, hook.Push.DefaultBranch = nil, ""
		got = append(got, *hook.Push)
	}
	for _, event := range want { // hosts may tell of pushes in another order than they came
		if !slices.ContainsFunc(got, func(e slipway.PushEvent) bool {
			return e.Ref == event.Ref && e.Commit == event.Commit && e.Created == event.Created && e.Deleted == event.Deleted
		}) {
			t.Errorf("there is no %+v among %+v", event, got)
		}
	}
}

func forgeries(t *testing.T, w *World) {
	filled(t, w, "forged")
	real := w.Deliveries(t, 1)[0]
	if _, err := read(t, w, real); err != nil {
		t.Fatal(err)
	}
	for name := range real.Header {
		if value := real.Header.Get(name); strings.Contains(strings.ToLower(name), "signature") || strings.Contains(name, "Token") {
			for _, forged := range []string{"", "sha256=", "sha256=00", value[:len(value)-1], value + "0", strings.Repeat("0", len(value))} {
				d := Delivery{Header: real.Header.Clone(), Body: real.Body}
				for other := range d.Header { // hosts send their signature in several forms
					if strings.Contains(strings.ToLower(other), "signature") || strings.Contains(other, "Token") {
						d.Header.Set(other, forged)
					}
				}
				_, err := read(t, w, d)
				code(t, name+" "+forged, err, slipway.CodeUnauthenticated)
			}
		}
	}
	_, err := read(t, w, Delivery{Header: http.Header{}, Body: real.Body})
	code(t, "no header at all", err, slipway.CodeUnauthenticated)
	if real.Header.Get("X-Gitlab-Token") == "" { // GitLab does not sign what it sends
		_, err = read(t, w, Delivery{Header: real.Header, Body: append(slices.Clone(real.Body), ' ')})
		code(t, "another body", err, slipway.CodeUnauthenticated)
	}
}

func refusals(t *testing.T, w *World) {
	repoURL, commit, _ := filled(t, w, "refused")
	_, err := w.Gone.Repository(t.Context(), goneURL(repoURL))
	code(t, "nothing listens", err, slipway.CodeUnavailable)
	if w.Refused == nil {
		return
	}
	_, err = w.Refused.Repository(t.Context(), repoURL)
	code(t, "unknown credentials", err, slipway.CodeBadRequest)
	if strings.Contains(err.Error(), Token[:6]) || strings.Contains(err.Error(), "wrong") {
		t.Errorf("%v shows a credential", err)
	}
	if w.States == nil {
		return
	}
	err = w.Refused.SetStatus(t.Context(), slipway.CommitStatus{RepoURL: repoURL, Commit: commit, State: slipway.CommitPending, Context: "x"})
	code(t, "a status with unknown credentials", err, slipway.CodeBadRequest)
}

// GoneURL is the address that World.Gone leads to.
const GoneURL = "http://127.0.0.1:1"

func goneURL(repoURL string) string {
	parts := strings.SplitN(repoURL, "/", 4)
	return GoneURL + "/" + parts[3]
}
