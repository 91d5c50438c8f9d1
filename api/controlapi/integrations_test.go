package controlapi_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway"
)

const hookSecret = "canary-secret-0123456789"

const createGitea = `{"kind":"gitea","name":"gitea","host_url":"https://git.example.com/","token":"canary-token","webhook_secret":"` + hookSecret + `"}`

const repoURL = "https://git.example.com/acme/desk.git"

func (s *server) describeApp() string {
	s.t.Helper()
	return s.want(201, "POST", "/v2/integrations/githost/app-manifest", `{"name":"app","redirect_url":"http://127.0.0.1:9/"}`)["integration_id"].(string)
}

func (s *server) convertApp(id string) map[string]any {
	s.t.Helper()
	return s.want(201, "POST", "/v2/integrations/githost/app-conversion", `{"integration_id":"`+id+`","code":"slip"}`)
}

// list reads a bare array.
func (s *server) list(path string) []map[string]any {
	s.t.Helper()
	status, text := s.raw(s.Key, "GET", path, "")
	var out []map[string]any
	if err := json.Unmarshal(text, &out); err != nil || status != 200 {
		s.t.Fatalf("%s = %d %s, want a bare array", path, status, text)
	}
	return out
}

// push delivers a push and returns the answer.
func (s *server) push(integration, secret, delivery string, p slipway.PushEvent) (int, map[string]any) {
	s.t.Helper()
	if p.RepoURLs == nil {
		p.RepoURLs = []string{repoURL}
	}
	body, err := json.Marshal(slipway.Hook{Keys: []string{delivery}, Push: &p})
	if err != nil {
		s.t.Fatal(err)
	}
	req := httptest.NewRequest("POST", "/webhooks/githost/"+integration, strings.NewReader(string(body)))
	req.Header.Set("X-Secret", secret)
	rec := httptest.NewRecorder()
	s.handler.ServeHTTP(rec, req)
	var out map[string]any
	if err := json.Unmarshal(rec.Body.Bytes(), &out); err != nil {
		s.t.Fatalf("the webhook answers no JSON: %s", rec.Body)
	}
	return rec.Code, out
}

func (s *server) gitDeployment(name, integration, more string) map[string]any {
	s.t.Helper()
	return s.want(201, "POST", "/v2/deployments", `{"name":"`+name+`","source":"githost","source_config":{"integration_id":"`+integration+`","repo_url":"`+repoURL+`"`+more+
		`},"source_revision_config":{"agentgraph_config_path":"agentgraph.json","repo_ref":"main"},"secrets":[]}`)
}

// withGitea makes an integration that offers one repository.
func withGitea(t *testing.T) (*server, string) {
	t.Helper()
	s := newServer(t)
	s.Hosts.Add(slipway.Repository{ID: 5, Name: "desk", Owner: "acme", URL: repoURL, DefaultBranch: "main"})
	return s, s.want(201, "POST", "/v2/integrations", createGitea)["id"].(string)
}

func TestIntegrationShapes(t *testing.T) {
	t.Parallel()
	s, id := withGitea(t)
	want := fmt.Sprintf("[map[id:%s installation_id:0 name:gitea]]", id)
	if got := fmt.Sprint(s.list("/v1/integrations/githost/install")); got != want {
		t.Errorf("install = %s, want %s", got, want)
	}
	repo := fmt.Sprintf("[map[default_branch:main host_integration_id:%s id:5 name:desk owner:acme url:%s]]", id, repoURL)
	if got := fmt.Sprint(s.list("/v1/integrations/githost/" + id + "/repos")); got != repo {
		t.Errorf("repos = %s, want %s", got, repo)
	}
	page := s.want(200, "GET", "/v2/integrations/githost/installations/"+id+"/repositories", "")
	if got := fmt.Sprint(page["items"]); got != repo || page["next_cursor"] != nil {
		t.Errorf("repositories = %v, want %s and no cursor", page, repo)
	}
	for _, bad := range []string{"/v2/integrations/githost/installations/" + id + "/repositories?cursor=x", "/v2/integrations/githost/installations?cursor=x", "/v2/integrations/githost/installations?page_size=101"} {
		s.want(422, "GET", bad, "")
	}
}

func TestInstallationsArePaged(t *testing.T) {
	t.Parallel()
	s, first := withGitea(t)
	second := s.want(201, "POST", "/v2/integrations", strings.Replace(createGitea, `"gitea"`, `"gitlab"`, 2))["id"].(string)
	page := s.want(200, "GET", "/v2/integrations/githost/installations?page_size=1", "")
	if got := page["items"].([]any)[0].(map[string]any)["id"]; got != second || page["next_cursor"] != second {
		t.Fatalf("first page = %v, want %s", page, second)
	}
	page = s.want(200, "GET", "/v2/integrations/githost/installations?page_size=1&cursor="+second, "")
	if got := page["items"].([]any)[0].(map[string]any)["id"]; got != first || page["next_cursor"] != nil {
		t.Errorf("second page = %v, want %s and no cursor", page, first)
	}
}

func TestCreateIntegrationRefuses(t *testing.T) {
	t.Parallel()
	s, _ := withGitea(t)
	for name, c := range map[string]struct{ body, field string }{
		"github":               {`{"kind":"github","name":"x","host_url":"https://github.com","token":"t"}`, "kind"},
		"an unknown kind":      {`{"kind":"svn","name":"x","host_url":"https://git.example.com","token":"t"}`, "kind"},
		"no address":           {`{"kind":"gitea","name":"x","host_url":"","token":"t"}`, "host_url"},
		"plain http":           {`{"kind":"gitea","name":"x","host_url":"http://git.example.com","token":"t"}`, "host_url"},
		"a file":               {`{"kind":"gitea","name":"x","host_url":"file:///etc","token":"t"}`, "host_url"},
		"credentials in it":    {`{"kind":"gitea","name":"x","host_url":"https://a:b@git.example.com","token":"t"}`, "host_url"},
		"a query":              {`{"kind":"gitea","name":"x","host_url":"https://git.example.com?x","token":"t"}`, "host_url"},
		"an option as host":    {`{"kind":"generic","name":"x","host_url":"ssh://-oProxyCommand=x/a","private_key":"-----BEGIN OPENSSH PRIVATE KEY-----","known_hosts":"x"}`, "host_url"},
		"a name with spaces":   {`{"kind":"gitea","name":"x y","host_url":"https://git.example.com","token":"t"}`, "name"},
		"no token":             {`{"kind":"gitlab","name":"x","host_url":"https://git.example.com"}`, "token"},
		"a token of two lines": {`{"kind":"gitlab","name":"x","host_url":"https://git.example.com","token":"a\nb"}`, "token"},
		"a key for gitea":      {`{"kind":"gitea","name":"x","host_url":"https://git.example.com","private_key":"-----BEGIN OPENSSH PRIVATE KEY-----"}`, "private_key"},
		"no known hosts":       {`{"kind":"generic","name":"x","host_url":"ssh://git@git.example.com","private_key":"-----BEGIN OPENSSH PRIVATE KEY-----"}`, "known_hosts"},
		"a short secret":       {`{"kind":"gitea","name":"x","host_url":"https://git.example.com","token":"t","webhook_secret":"short"}`, "webhook_secret"},
	} {
		status, text := s.raw(s.Key, "POST", "/v2/integrations", c.body)
		if status != 422 || !strings.Contains(string(text), `"loc":["body","`+c.field+`"]`) {
			t.Errorf("%s = %d %s, want 422 about %s", name, status, text, c.field)
		}
	}
	if status, text := s.raw(s.Key, "POST", "/v2/integrations", createGitea); status != 409 || !strings.Contains(string(text), "gitea") {
		t.Errorf("the name again = %d %s, want 409", status, text)
	}
	s.Hosts.Fail(slipway.Errorf(slipway.CodeBadRequest, "the host does not take the credentials"))
	if status, text := s.raw(s.Key, "POST", "/v2/integrations", strings.Replace(createGitea, `"name":"gitea"`, `"name":"two"`, 1)); status != 422 || strings.Contains(string(text), "canary") {
		t.Errorf("credentials that the host refuses = %d %s, want 422 without them", status, text)
	}
}

func TestIntegrationsKeepTheirSecrets(t *testing.T) {
	t.Parallel()
	s, id := withGitea(t)
	for _, path := range []string{"/v1/integrations/githost/install", "/v2/integrations", "/v2/integrations/githost/installations"} {
		if _, text := s.raw(s.Key, "GET", path, ""); strings.Contains(string(text), "canary") {
			t.Errorf("%s shows a secret: %s", path, text)
		}
	}
	for _, entry := range s.store.Audit() {
		if strings.Contains(entry.Detail, "canary") {
			t.Errorf("the audit shows a secret: %s", entry.Detail)
		}
	}
	s.gitDeployment("desk", id, "")
	if status, text := s.raw(s.Key, "DELETE", "/v2/integrations/"+id, ""); status != 409 || !strings.Contains(string(text), "desk") {
		t.Errorf("removing one in use = %d %s, want 409 naming desk", status, text)
	}
}

func TestDeploymentsNeedAnIntegrationThatOffersTheirRepository(t *testing.T) {
	t.Parallel()
	s, id := withGitea(t)
	create := func(key, integration, repo string) (int, string) {
		status, text := s.raw(key, "POST", "/v2/deployments", `{"name":"x","source":"githost","source_config":{"integration_id":"`+integration+`","repo_url":"`+repo+`"},"source_revision_config":{"agentgraph_config_path":"a.json"},"secrets":[]}`)
		return status, string(text)
	}
	for name, c := range map[string]struct{ key, integration, repo, field string }{
		"an unknown integration": {s.Key, s.NextID(), repoURL, "integration_id"},
		"another tenant's":       {s.keyOf("other tenant"), id, repoURL, "integration_id"},
		"another repository":     {s.Key, id, "https://git.example.com/acme/none.git", "repo_url"},
	} {
		if status, text := create(c.key, c.integration, c.repo); status != 422 || !strings.Contains(text, c.field) {
			t.Errorf("%s = %d %s, want 422 about %s", name, status, text, c.field)
		}
	}
	if status, text := create(s.Key, id, repoURL); status != 201 {
		t.Errorf("its own = %d %s, want 201", status, text)
	}
}

func TestGitHubAppFlow(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.want(404, "POST", "/v2/integrations/githost/installation-link", "")
	first := s.describeApp()
	id := s.describeApp() // a second try takes the place of the first
	if got := len(s.list("/v1/integrations/githost/install")); got != 0 {
		t.Errorf("an app that is not made is offered %d times", got)
	}
	s.want(404, "POST", "/v2/integrations/githost/app-conversion", `{"integration_id":"`+first+`","code":"x"}`)
	s.want(409, "GET", "/v1/integrations/githost/"+id+"/repos", "")
	made := s.convertApp(id)
	if made["pending"] != false || made["name"] != "app" || strings.Contains(fmt.Sprint(made), "canary") {
		t.Errorf("made = %v", made)
	}
	s.want(409, "POST", "/v2/integrations/githost/app-conversion", `{"integration_id":"`+id+`","code":"x"}`)
	link := s.want(200, "POST", "/v2/integrations/githost/installation-link", "")
	if link["install_url"] != "https://github.com/apps/slip/installations/new" {
		t.Errorf("link = %v", link)
	}
	body := `{"Keys":["k"],"About":"noted","Installation":{"ID":4711}}`
	req := httptest.NewRequest("POST", "/webhooks/githost/"+id, strings.NewReader(body))
	req.Header.Set("X-Secret", "slip")
	s.handler.ServeHTTP(httptest.NewRecorder(), req)
	if got := s.list("/v1/integrations/githost/install"); len(got) != 1 || got[0]["installation_id"] != 4711.0 {
		t.Errorf("after the installation = %v, want 4711", got)
	}
	for field, body := range map[string]string{
		"redirect_url": `{"name":"a","redirect_url":"javascript:x"}`, "organization": `{"name":"a","redirect_url":"http://127.0.0.1:1/","organization":"../x"}`,
		"host_url": `{"name":"a","redirect_url":"http://127.0.0.1:1/","host_url":"http://ghe.example.com"}`,
	} {
		if status, text := s.raw(s.Key, "POST", "/v2/integrations/githost/app-manifest", body); status != 422 || !strings.Contains(string(text), field) {
			t.Errorf("%s = %d %s, want 422", field, status, text)
		}
	}
}
