package controlapi_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway"
)

var pushed = slipway.PushEvent{Ref: "refs/heads/main", Commit: strings.Repeat("a", 40)}

func TestPushMakesARevisionOfThePushedCommit(t *testing.T) {
	t.Parallel()
	s, id := withGitea(t)
	d := s.gitDeployment("desk", id, `,"build_on_push":true`)
	status, answer := s.push(id, hookSecret, "1", pushed)
	revisions := answer["revisions"].([]any)
	if status != 202 || len(revisions) != 1 {
		t.Fatalf("a push = %d %v, want 202 and a revision", status, answer)
	}
	made := revisions[0].(map[string]any)
	r := s.want(200, "GET", fmt.Sprintf("/v2/deployments/%s/revisions/%s", d["id"], made["revision_id"]), "")
	if got := r["source_revision_config"].(map[string]any)["repo_commit_sha"]; got != pushed.Commit || r["created_by"] != "push:git.example.com" {
		t.Errorf("revision of %v by %v, want %s by push:git.example.com", got, r["created_by"], pushed.Commit)
	}
	audit := s.store.Audit()
	if last := audit[len(audit)-1]; last.Principal != "push:git.example.com" || last.Operation != "update_deployment" || !strings.Contains(last.Detail, pushed.Commit) {
		t.Errorf("audit = %+v", last)
	}
	if again, answer := s.push(id, hookSecret, "1", pushed); again != 202 || len(answer["revisions"].([]any)) != 0 || !strings.Contains(fmt.Sprint(answer["reason"]), "before") {
		t.Errorf("the same delivery = %d %v, want nothing to happen", again, answer)
	}
}

func TestPushesThatMakeNoRevisionSayWhy(t *testing.T) {
	t.Parallel()
	s, id := withGitea(t)
	s.gitDeployment("desk", id, `,"build_on_push":true`)
	s.gitDeployment("still", id, "")
	commit := pushed.Commit
	for name, c := range map[string]struct {
		push slipway.PushEvent
		want string
	}{
		"a tag":              {slipway.PushEvent{Ref: "refs/tags/v1", Commit: commit}, "only branches"},
		"another branch":     {slipway.PushEvent{Ref: "refs/heads/dev", Commit: commit}, "it tracks main"},
		"a new branch":       {slipway.PushEvent{Ref: "refs/heads/main", Commit: commit, Created: true}, "only created"},
		"a deleted branch":   {slipway.PushEvent{Ref: "refs/heads/main", Deleted: true}, "deleted"},
		"another repository": {slipway.PushEvent{Ref: "refs/heads/main", Commit: commit, RepoURLs: []string{"https://git.example.com/acme/desk2"}}, "no deployment is built from"},
	} {
		status, answer := s.push(id, hookSecret, name, c.push)
		if status != 202 || len(answer["revisions"].([]any)) != 0 || !strings.Contains(fmt.Sprint(answer), c.want) {
			t.Errorf("%s = %d %v, want 202, no revision and %q", name, status, answer, c.want)
		}
	}
	_, answer := s.push(id, hookSecret, "both", pushed)
	if got := fmt.Sprint(answer["ignored"]); !strings.Contains(got, "still") || !strings.Contains(got, "build_on_push is off") {
		t.Errorf("ignored = %s, want still with its reason", got)
	}
}

func TestQuickPushesCoalesce(t *testing.T) {
	t.Parallel()
	s, id := withGitea(t)
	d := s.gitDeployment("desk", id, `,"build_on_push":true`)
	for k := range 4 {
		p := pushed
		p.Commit = strings.Repeat(fmt.Sprint(k), 40)
		s.push(id, hookSecret, fmt.Sprint("delivery ", k), p)
	}
	first := d["latest_revision_id"].(string)
	s.want(200, "POST", fmt.Sprintf("/v2/deployments/%s/revisions/%s/interruption", d["id"], first), "")
	list := s.want(200, "GET", fmt.Sprintf("/v2/deployments/%s/revisions", d["id"]), "")["resources"].([]any)
	var got []string
	for _, r := range list {
		got = append(got, r.(map[string]any)["status"].(string))
	}
	if want := "[AWAITING_BUILD SKIPPED SKIPPED SKIPPED INTERRUPTED]"; fmt.Sprint(got) != want {
		t.Errorf("revisions = %v, want %s, newest first", got, want)
	}
}

func TestWebhookRefuses(t *testing.T) {
	t.Parallel()
	s, id := withGitea(t)
	s.gitDeployment("desk", id, `,"build_on_push":true`)
	if status, answer := s.push(id, "wrong", "1", pushed); status != 401 {
		t.Errorf("a forged delivery = %d %v, want 401", status, answer)
	}
	if status, answer := s.push(id, hookSecret, "1", pushed); status != 202 || len(answer["revisions"].([]any)) != 1 {
		t.Errorf("the real one after it = %d %v, want a revision: a forgery uses up nothing", status, answer)
	}
	for _, unknown := range []string{s.NextID(), "x", "%2e%2e"} {
		req := httptest.NewRequest("POST", "/webhooks/githost/"+unknown, strings.NewReader("{}"))
		rec := httptest.NewRecorder()
		if s.handler.ServeHTTP(rec, req); rec.Code != 404 {
			t.Errorf("%s = %d %s, want 404", unknown, rec.Code, rec.Body)
		}
	}
	req := httptest.NewRequest("POST", "/webhooks/githost/"+id, strings.NewReader(strings.Repeat("x", 25<<20+1)))
	rec := httptest.NewRecorder()
	if s.handler.ServeHTTP(rec, req); rec.Code != 413 {
		t.Errorf("a huge delivery = %d, want 413", rec.Code)
	}
}
