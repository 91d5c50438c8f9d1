package dialect_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/api/controlapi"
	"github.com/slipway-dev/slipway/api/dialect"
	"github.com/slipway-dev/slipway/control/controltest"
	"github.com/slipway-dev/slipway/seal"
)

// server is the whole API over a world in memory, behind both doors.
type server struct {
	*controltest.World
	t       *testing.T
	handler http.Handler
}

func newServer(t *testing.T) *server {
	t.Helper()
	key, err := seal.New(bytes.Repeat([]byte{7}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	w := controltest.New(t, controltest.NewStore(), key, "http://slipway.test")
	api := controlapi.New(w.Service, controlapi.Config{BaseURL: "http://slipway.test", Version: "test", Log: slog.New(slog.DiscardHandler)})
	return &server{World: w, t: t, handler: dialect.New(api, controlapi.DocsPage)}
}

// call makes a request that must have the given status and returns its body.
func (s *server) call(status int, method, path, body string) map[string]any {
	s.t.Helper()
	got, text := s.raw(s.Key, method, path, body)
	if got != status {
		s.t.Fatalf("%s %s = %d %s, want %d", method, path, got, text, status)
	}
	var out map[string]any
	if len(text) > 0 {
		if err := json.Unmarshal(text, &out); err != nil {
			s.t.Fatalf("%s %s answers no JSON: %s", method, path, text)
		}
	}
	return out
}

func (s *server) raw(key, method, path, body string) (int, []byte) {
	s.t.Helper()
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	req.Header.Set("X-Api-Key", key)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	rec := httptest.NewRecorder()
	s.handler.ServeHTTP(rec, req)
	return rec.Code, rec.Body.Bytes()
}

const gitDeployment = `{"name":"one","source":"github","source_config":{"repo_url":"https://git.example.com/a/b","integration_id":null},
	"source_revision_config":{"repo_ref":"main","langgraph_config_path":"langgraph.json"},"secrets":[{"name":"A","value":"source"}]}`

// config returns source_revision_config of an answer.
func config(doc map[string]any) map[string]any {
	c, _ := doc["source_revision_config"].(map[string]any)
	return c
}

func TestEachMountAnswersInItsDialect(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	made := s.call(201, "POST", "/api-host/v2/deployments", gitDeployment)
	if made["source"] != "github" || config(made)["langgraph_config_path"] != "langgraph.json" || config(made)["agentgraph_config_path"] != nil {
		t.Errorf("below the mount: %v", made)
	}
	id := made["id"].(string)
	read := s.call(200, "GET", "/v2/deployments/"+id, "")
	if read["source"] != "githost" || config(read)["agentgraph_config_path"] != "langgraph.json" {
		t.Errorf("at the root: %v", read)
	}
	if _, there := config(read)["langgraph_config_path"]; there {
		t.Errorf("at the root: %v", read)
	}
	for path, want := range map[string]string{"/v2/deployments": "githost", "/api-host/v2/deployments": "github"} {
		list := s.call(200, "GET", path, "")["resources"].([]any)
		if got := list[0].(map[string]any)["source"]; got != want {
			t.Errorf("%s: source %v, want %s", path, got, want)
		}
	}
	s.call(200, "PATCH", "/v2/deployments/"+id, `{"revision_source":"github","source_revision_config":{"langgraph_config_path":"other.json"}}`)
	revisions := s.call(200, "GET", "/api-host/v2/deployments/"+id+"/revisions", "")["resources"].([]any)
	newest := revisions[0].(map[string]any)
	if config(newest)["langgraph_config_path"] != "other.json" || newest["source"] != "github" {
		t.Errorf("revision below the mount: %v", newest)
	}
	path := "/v2/deployments/" + id + "/revisions/" + newest["id"].(string) + "/interrupt"
	if got := s.call(200, "POST", "/api-host"+path, ""); got["status"] != "INTERRUPTED" {
		t.Errorf("interrupt: %v", got)
	}
	s.call(400, "POST", path, "") // ended already: the root knows the path too
}

func TestEmptySecrets(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	id := s.call(201, "POST", "/v2/deployments", gitDeployment)["id"].(string)
	for _, step := range []struct {
		path string
		want int
	}{{"/api-host/v2/deployments/" + id, 1}, {"/v2/deployments/" + id, 0}} {
		got := s.call(200, "PATCH", step.path, `{"secrets":[]}`)["secrets"].([]any)
		if len(got) != step.want {
			t.Errorf("after PATCH %s there are %d secrets, want %d", step.path, len(got), step.want)
		}
	}
	without := strings.Replace(strings.Replace(gitDeployment, `"one"`, `"two"`, 1), `{"name":"A","value":"source"}`, "", 1)
	s.call(201, "POST", "/api-host/v2/deployments", without)
}

func TestErrorsAreToldInTheDialectOfTheMount(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	body := strings.Replace(gitDeployment, `"langgraph.json"`, "5", 1)
	for prefix, want := range map[string]string{"": "agentgraph_config_path", "/api-host": "langgraph_config_path"} {
		detail := s.call(422, "POST", prefix+"/v2/deployments", body)["detail"].([]any)
		loc := detail[0].(map[string]any)["loc"]
		if !reflect.DeepEqual(loc, []any{"body", "source_revision_config", want}) {
			t.Errorf("%q: loc %v, want one that ends with %s", prefix, loc, want)
		}
	}
	missing := strings.Replace(gitDeployment, `"langgraph_config_path":"langgraph.json"`, `"image_uri":null`, 1)
	_, text := s.raw(s.Key, "POST", "/api-host/v2/deployments", missing)
	if !bytes.Contains(text, []byte("langgraph_config_path")) || bytes.Contains(text, []byte("agentgraph")) {
		t.Errorf("below the mount: %s", text)
	}
}

func TestTwoNamesOfOneField(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	both := strings.Replace(gitDeployment, `"repo_ref"`, `"agentgraph_config_path":"other.json","repo_ref"`, 1)
	for prefix, want := range map[string]string{"": "agentgraph_config_path", "/api-host": "langgraph_config_path"} {
		detail := s.call(422, "POST", prefix+"/v2/deployments", both)["detail"].([]any)
		one := detail[0].(map[string]any)
		if len(detail) != 1 || !reflect.DeepEqual(one["loc"], []any{"body", "source_revision_config", want}) {
			t.Errorf("%q: %v", prefix, detail)
		}
		if msg := one["msg"].(string); !strings.Contains(msg, "langgraph_config_path and agentgraph_config_path") {
			t.Errorf("%q: %s", prefix, msg)
		}
	}
	if status, text := s.raw("wrong", "POST", "/v2/deployments", both); status != 401 {
		t.Errorf("without a key: %d %s; who asks is found out first", status, text)
	}
	if list := s.call(200, "GET", "/v2/deployments", "")["resources"].([]any); len(list) != 0 {
		t.Errorf("made although refused: %v", list)
	}
	s.call(201, "POST", "/v2/deployments", strings.Replace(both, "other.json", "langgraph.json", 1))
}

// TestTwoNamesAreNoAnswerToKeep holds that a contradiction is told again, and that the key is free for the corrected request.
func TestTwoNamesAreNoAnswerToKeep(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	both := strings.Replace(gitDeployment, `"repo_ref"`, `"agentgraph_config_path":"other.json","repo_ref"`, 1)
	for i, step := range []struct {
		body string
		want int
	}{{both, 422}, {both, 422}, {gitDeployment, 201}, {gitDeployment, 201}} {
		req := httptest.NewRequest("POST", "/api-host/v2/deployments", strings.NewReader(step.body))
		req.Header.Set("X-Api-Key", s.Key)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", "k")
		rec := httptest.NewRecorder()
		s.handler.ServeHTTP(rec, req)
		if rec.Code != step.want || step.want == 201 && !strings.Contains(rec.Body.String(), `"source":"github"`) {
			t.Errorf("request %d: %d %s, want %d", i, rec.Code, rec.Body, step.want)
		}
	}
}

func TestKindsOfDeploymentBelowTheMount(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	body := `{"name":"one","source":"internal_source","source_config":{"deployment_type":"dev_zero"},"source_revision_config":{},"secrets":[]}`
	s.call(422, "POST", "/v2/deployments", body)
	made := s.call(201, "POST", "/api-host/v2/deployments", body)
	if got := made["source_config"].(map[string]any)["deployment_type"]; got != "dev" {
		t.Errorf("deployment_type %v, want dev", got)
	}
}

func TestDescription(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	_, text := s.raw("", "GET", "/api-host/openapi.json", "")
	var doc struct {
		Servers    []struct{ URL string }
		Paths      map[string]any
		Components struct {
			Schemas map[string]struct {
				Required   []string
				Properties map[string]struct{ Enum []any }
			}
		}
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	// Identifiers of operations are the same in both dialects, and the door of git hosts stands outside of them.
	text = regexp.MustCompile(`"operationId": "[a-z_]+"|/webhooks/githost/`).ReplaceAll(text, nil)
	for _, word := range []string{"agentgraph_config_path", "githost", "external_container", "cluster_namespace", "cache_cpu", "interruption"} {
		if bytes.Contains(text, []byte(word)) {
			at := bytes.Index(text, []byte(word))
			t.Errorf("the description knows %s: …%s…", word, text[max(0, at-200):min(len(text), at+80)])
		}
	}
	schemas := doc.Components.Schemas
	for schema, property := range map[string]string{
		"SourceRevisionConfig": "langgraph_config_path", "SourceRevisionConfigRequest": "langgraph_config_path",
		"ListenerConfig": "k8s_namespace", "ResourceSpec": "redis_memory_limit_mb",
	} {
		if _, ok := schemas[schema].Properties[property]; !ok {
			t.Errorf("%s has no %s", schema, property)
		}
	}
	for _, schema := range []string{"Deployment", "Revision", "DeploymentCreateRequest"} {
		want := []any{"github", "external_docker", "internal_docker", "internal_source", "internal_template"}
		if got := schemas[schema].Properties["source"].Enum; !reflect.DeepEqual(got, want) {
			t.Errorf("%s.source is one of %v", schema, got)
		}
	}
	if _, ok := doc.Paths["/v2/deployments/{deployment_id}/revisions/{revision_id}/interrupt"]; !ok || len(doc.Servers) != 1 || doc.Servers[0].URL != "/api-host" {
		t.Errorf("paths or servers: %v", doc.Servers)
	}
	status, page := s.raw("", "GET", "/api-host/docs", "")
	if status != 200 || !bytes.Contains(page, []byte("/interrupt")) || bytes.Contains(page, []byte("interruption")) {
		t.Errorf("docs: %d %s", status, page)
	}
}

// echo answers what it got, so that what a door changes shows.
func echo() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/plain")
		_, _ = w.Write([]byte(r.URL.Path + "?" + r.URL.RawQuery + " " + string(raw)))
	})
}

func TestPathsQueriesAndBodiesOnTheWayIn(t *testing.T) {
	t.Parallel()
	door := dialect.New(echo(), controlapi.DocsPage)
	const up, own = `{"source":"github"}`, `{"source":"githost"}`
	for _, test := range []struct{ path, kind, body, want string }{
		{"/v1/integrations/github/install", "", "", "/v1/integrations/githost/install? "},
		{"/v2/integrations/github/installations?cursor=a%20b", "", "", "/v2/integrations/githost/installations?cursor=a%20b "},
		{"/v1/integrations/forge/github/install", "", "", "/v1/integrations/githost/install? "},
		{"/v2/integrations/forge/github/installations/x/repositories", "", "", "/v2/integrations/githost/installations/x/repositories? "},
		{"/integrations/forge/github/install", "", "", "/v1/integrations/githost/install? "},
		{"/integrations/forge/github/x/repos", "", "", "/v1/integrations/githost/x/repos? "},
		{"/integrations/forge/github/installation-link", "", "", "/v2/integrations/githost/installation-link? "},
		{"/v1/integrations/githost/install", "", "", "/v1/integrations/githost/install? "},
		{"/v2/deployments/x/revisions/y/interrupt", "", "", "/v2/deployments/x/revisions/y/interruption? "},
		{"/v2/deployments/interrupt", "", "", "/v2/deployments/interrupt? "},
		{"/v2/deployments?source=github&name=github&source=githost", "", "", "/v2/deployments?source=githost&name=github&source=githost "},
		{"/v2/deployments?source=github%2Cinternal_docker", "", "", "/v2/deployments?source=githost%2Cinternal_container "},
		{"/v2/deployments", "application/json", up, "/v2/deployments? " + own},
		{"/v2/deployments", "application/json; charset=utf-8", up, "/v2/deployments? " + own},
		{"/v2/deployments", "", up, "/v2/deployments? " + own},
		{"/v2/deployments", "application/vnd.oci.image.manifest.v1+json", up, "/v2/deployments? " + up},
		{"/webhooks/githost/1", "application/json", up, "/webhooks/githost/1? " + up},
		{"/uploads/1", "application/gzip", up, "/uploads/1? " + up},
	} {
		for _, prefix := range []string{"", "/api-host"} {
			req := httptest.NewRequest("POST", prefix+test.path, strings.NewReader(test.body))
			req.Header.Set("Content-Type", test.kind)
			rec := httptest.NewRecorder()
			door.ServeHTTP(rec, req)
			if rec.Body.String() != test.want {
				t.Errorf("%s%s (%s) = %s, want %s", prefix, test.path, test.kind, rec.Body, test.want)
			}
		}
	}
	for _, path := range []string{"/api-hostile", "/api-hosts/v2"} {
		rec := httptest.NewRecorder()
		door.ServeHTTP(rec, httptest.NewRequest("POST", path, strings.NewReader("x")))
		if !strings.HasPrefix(rec.Body.String(), path+"?") {
			t.Errorf("%s = %s", path, rec.Body)
		}
	}
}

func TestBodiesBeyondTheBoundPassUnchanged(t *testing.T) {
	t.Parallel()
	door := dialect.New(echo(), controlapi.DocsPage)
	body := `{"source":"github","x":"` + strings.Repeat("y", 27<<20) + `"}`
	req := httptest.NewRequest("POST", "/v2/x", strings.NewReader(body))
	rec := httptest.NewRecorder()
	door.ServeHTTP(rec, req)
	if got := rec.Body.String(); got != "/v2/x? "+body {
		t.Errorf("%d bytes arrive, want %d as they were sent", len(got), len(body))
	}
}

func TestAnswersThatAreNoJSONPassAtOnce(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-ndjson")
		_, _ = w.Write([]byte(`{"source":"githost"}` + "\n"))
		w.(http.Flusher).Flush()
		<-release
	})
	srv := httptest.NewServer(dialect.New(api, controlapi.DocsPage))
	defer srv.Close()
	defer close(release)
	res, err := http.Get(srv.URL + "/api-host/v2/audit-logs")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	line := make([]byte, 20)
	if _, err := io.ReadFull(res.Body, line); err != nil || string(line) != `{"source":"githost"}` {
		t.Errorf("%s %v", line, err)
	}
}

func TestStatusPage(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for _, prefix := range []string{"", "/api-host"} {
		status, page := s.raw("", "GET", prefix+"/o/"+s.Admin.TenantID+"/host/deployments/any", "")
		if status != 200 || !bytes.Contains(page, []byte("API key")) {
			t.Errorf("%q: %d %s", prefix, status, page)
		}
		if status, _ := s.raw("", "POST", prefix+"/o/x/host/deployments/any", "{}"); status != 405 {
			t.Errorf("%q: POST = %d, want 405", prefix, status)
		}
	}
}

// BenchmarkServe compares a PATCH of a small deployment, answered with a deployment, at the root and below the mount with the
// same API without a door.
func BenchmarkServe(b *testing.B) {
	answer, err := os.ReadFile("testdata/deployment.canonical.json")
	if err != nil {
		b.Fatal(err)
	}
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(answer)
	})
	door := dialect.New(api, controlapi.DocsPage)
	for _, bench := range []struct {
		name, path string
		handler    http.Handler
	}{
		{"no door", "/v2/deployments/x", api},
		{"root", "/v2/deployments/x", door},
		{"mount", "/api-host/v2/deployments/x", door},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				req := httptest.NewRequest("PATCH", bench.path, strings.NewReader(gitDeployment))
				req.Header.Set("Content-Type", "application/json")
				bench.handler.ServeHTTP(httptest.NewRecorder(), req)
			}
		})
	}
}
