package controlapi_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/api/controlapi"
	"github.com/slipway-dev/slipway/control/controltest"
	"github.com/slipway-dev/slipway/seal"
)

const base = "http://slipway.test"

// server is the API over a world in memory.
type server struct {
	*controltest.World
	t       *testing.T
	store   *controltest.Store
	handler http.Handler

	deployKey   string // of the deployment that the matrix acts on
	integration string // that the matrix is about

	listenerKey, foreignListenerKey string // of the listener that the matrix is about, and of another
}

func newServer(t *testing.T) *server {
	t.Helper()
	key, err := seal.New(bytes.Repeat([]byte{7}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	store := controltest.NewStore()
	w := controltest.New(t, store, key, base)
	return &server{World: w, store: store, t: t, handler: truthful(t, controlapi.New(w.Service, controlapi.Config{BaseURL: base, Version: "test", Log: slog.New(slog.DiscardHandler)}))}
}

// call makes a request with the admin key; body is sent as it is.
func (s *server) call(method, path, body string) (int, map[string]any) {
	s.t.Helper()
	return s.callAs(s.Key, method, path, body)
}

func (s *server) callAs(key, method, path, body string) (int, map[string]any) {
	s.t.Helper()
	status, text := s.raw(key, method, path, body)
	var out map[string]any
	if len(text) > 0 {
		if err := json.Unmarshal(text, &out); err != nil {
			s.t.Fatalf("%s %s answers no JSON: %s", method, path, text)
		}
	}
	return status, out
}

func (s *server) raw(key, method, path, body string) (int, []byte) {
	s.t.Helper()
	return s.rawIn("", key, method, path, body)
}

// rawIn is raw with X-Tenant-Id.
func (s *server) rawIn(tenantID, key, method, path, body string) (int, []byte) {
	s.t.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	req := httptest.NewRequest(method, strings.TrimPrefix(path, base), reader)
	if key != "" {
		req.Header.Set("X-Api-Key", key)
	}
	if tenantID != "" {
		req.Header.Set("X-Tenant-Id", tenantID)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	rec := httptest.NewRecorder()
	s.handler.ServeHTTP(rec, req)
	return rec.Code, rec.Body.Bytes()
}

// want makes a request that must have the given status.
func (s *server) want(status int, method, path, body string) map[string]any {
	s.t.Helper()
	got, out := s.call(method, path, body)
	if got != status {
		s.t.Fatalf("%s %s = %d %v, want %d", method, path, got, out, status)
	}
	return out
}

const createSource = `{"name":"desk","source":"internal_source","source_config":{"install_command":null},"source_revision_config":{},"secrets":[{"name":"TOKEN","value":"canary-1"}],"tracked_packages":["x:1"]}`

const createGit = `{"name":"git","source":"githost","source_config":{"repo_url":"https://example.com/a/b.git"},"source_revision_config":{"agentgraph_config_path":"agentgraph.json","repo_ref":"main"},"secrets":[]}`

func TestCreateAnswersADeployment(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d := s.want(201, "POST", "/v2/deployments", createSource)
	for _, field := range []string{"name", "source", "source_config", "source_revision_config", "secrets", "id", "tenant_id", "created_at", "updated_at", "status", "latest_revision_id", "active_revision_id"} {
		if _, ok := d[field]; !ok {
			t.Errorf("the answer lacks %q (spec 2.1)", field)
		}
	}
	if d["latest_revision_id"] != nil || d["status"] != "UNUSED" {
		t.Errorf("latest = %v, status = %v; want null, UNUSED", d["latest_revision_id"], d["status"])
	}
	if got := d["source_config"].(map[string]any)["custom_url"]; got != base+"/d/desk" {
		t.Errorf("custom_url = %v", got)
	}
	secret := d["secrets"].([]any)[0].(map[string]any)
	if secret["name"] != "TOKEN" || secret["value"] != "••••••••" {
		t.Errorf("secret = %v, want it masked", secret)
	}
}

func TestUploadPatchAndBuild(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d := s.want(201, "POST", "/v2/deployments", createSource)
	id := d["id"].(string)
	for _, prefix := range []string{"/v2", ""} {
		slot := s.want(200, "POST", prefix+"/deployments/"+id+"/upload-url", "")
		url := slot["upload_url"].(string)
		if !strings.HasPrefix(url, base+"/uploads/") {
			t.Fatalf("upload_url = %q", url)
		}
		patch := `{"revision_source":"internal_source","source_revision_config":{"source_tarball_path":"` + slot["object_path"].(string) + `","agentgraph_config_path":"agentgraph.json"},"secrets":[{"name":"TOKEN","value":"••••••••"}]}`
		s.want(422, "PATCH", "/v2/deployments/"+id, patch) // nothing uploaded yet
		for _, step := range []struct {
			name, url, body string
			want            int
		}{
			{"a forged signature", url + "0", "\x1f\x8bdata", 403},
			{"no archive", url, "plain", 400},
			{"an archive", url, "\x1f\x8bdata", 200},
			{"the address again", url, "\x1f\x8bdata", 409},
		} {
			if got, text := s.raw("", "PUT", step.url, step.body); got != step.want {
				t.Errorf("PUT of %s = %d %s, want %d", step.name, got, text, step.want)
			}
		}
		patched := s.want(200, "PATCH", "/v2/deployments/"+id, patch)
		if patched["latest_revision_id"] == nil {
			t.Fatal("the PATCH made no revision")
		}
	}
	list := s.want(200, "GET", "/v2/deployments/"+id+"/revisions?limit=1", "")
	if got := list["resources"].([]any)[0].(map[string]any)["status"]; got != "QUEUED" {
		t.Errorf("second revision = %v, want QUEUED behind the first", got)
	}
}

func TestErrorShapes(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	id := s.want(201, "POST", "/v2/deployments", createGit)["id"].(string)
	unknown := "01900000-0000-7000-8000-999999999999"
	for _, c := range []struct {
		name, method, path, body string
		status                   int
		want                     string // JSON text that the answer must contain
	}{
		{"malformed JSON", "PATCH", "/v2/deployments/" + id, `{"a":`, 422, `"type":"json_invalid"`},
		{"text behind the JSON", "PATCH", "/v2/deployments/" + id, `{} {}`, 422, `"type":"json_invalid"`},
		{"no body", "POST", "/v2/deployments", ``, 422, `"loc":["body"]`},
		{"wrong type", "PATCH", "/v2/deployments/" + id, `{"secrets":[{"name":"A","value":5}]}`, 422, `"loc":["body","secrets",0,"value"]`},
		{"missing member", "PATCH", "/v2/deployments/" + id, `{"secrets":[{"name":"A"}]}`, 422, `"loc":["body","secrets",0,"value"],"msg":"Field required","type":"missing"`},
		{"missing name", "POST", "/v2/deployments", `{"name":null,"source":"githost","source_config":{},"source_revision_config":{},"secrets":[]}`, 422, `"loc":["body","name"],"msg":"Field required"`},
		{"rule of the ground", "PATCH", "/v2/deployments/" + id, `{"source_config":{"build_on_push":true},"source_revision_config":{"repo_ref":"refs/tags/v1"}}`, 422, `"loc":["body","source_config","build_on_push"]`},
		{"conflict with what is stored", "PATCH", "/v2/deployments/" + id, `{"source_config":{"repo_url":"https://example.com/other"}}`, 400, `"detail":"repo_url cannot be changed`},
		{"unknown deployment", "GET", "/v2/deployments/" + unknown, ``, 404, `{"detail":"Deployment ID ` + unknown + ` not found."}`},
		{"unknown revision", "GET", "/v2/deployments/" + id + "/revisions/" + unknown, ``, 404, `{"detail":"Revision ID ` + unknown + ` not found."}`},
		{"an id that is no uuid", "GET", "/v2/deployments/x", ``, 422, `"loc":["path","deployment_id"]`},
		{"a limit out of bounds", "GET", "/v2/deployments?limit=101", ``, 422, `"loc":["query","limit"]`},
		{"a required query", "GET", "/v2/deployments/" + id + "/revisions/" + unknown + "/logs", ``, 422, `"loc":["query","type"]`},
		{"an offset of somebody else", "GET", "/v2/deployments/" + id + "/logs?offset=x", ``, 422, `"loc":["query","offset"]`},
		{"a name taken", "POST", "/v2/deployments", createGit, 409, `"detail":"a deployment named`},
		{"a source not served", "POST", "/v2/deployments", `{"name":"x","source":"external_container","source_config":{},"source_revision_config":{"image_uri":"a/b"},"secrets":[]}`, 422, `"loc":["body","source"]`},
		{"an unknown call", "GET", "/v3", ``, 404, `"detail":`},
	} {
		got, text := s.raw(s.Key, c.method, c.path, c.body)
		if got != c.status || !strings.Contains(string(text), c.want) {
			t.Errorf("%s: %d %s\nwant %d with %s", c.name, got, text, c.status, c.want)
		}
	}
}

func TestNullIsAbsentAndUnknownFieldsAreIgnored(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	id := s.want(201, "POST", "/v2/deployments", createGit)["id"].(string)
	before := s.want(200, "GET", "/v2/deployments/"+id, "")
	after := s.want(200, "PATCH", "/v2/deployments/"+id, `{"revision_source":null,"source_config":null,"source_revision_config":null,"secrets":null,"secret_references":null,"later":{"x":1}}`)
	if after["latest_revision_id"] != before["latest_revision_id"] {
		t.Error("a PATCH of nulls made a revision")
	}
	echoed, _ := json.Marshal(map[string]any{"source_config": before["source_config"]})
	s.want(200, "PATCH", "/v2/deployments/"+id, string(echoed)) // clients read, modify, write
}

func TestDeleteTakesOutOfSight(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	id := s.want(201, "POST", "/v2/deployments", createGit)["id"].(string)
	for range 2 {
		if got, text := s.raw(s.Key, "DELETE", "/v2/deployments/"+id, ""); got != 204 || len(text) != 0 {
			t.Fatalf("DELETE = %d %q, want 204 and nothing", got, text)
		}
	}
	s.want(404, "GET", "/v2/deployments/"+id, "")
	if list := s.want(200, "GET", "/v2/deployments", ""); len(list["resources"].([]any)) != 0 {
		t.Errorf("list = %v, want it empty", list)
	}
	if list := s.want(200, "GET", "/v2/deployments?status=AWAITING_DELETE", ""); len(list["resources"].([]any)) != 1 {
		t.Errorf("deleted = %v, want one", list)
	}
	s.want(409, "POST", "/v2/deployments", createGit)
}

func TestServiceCallsNeedNoKey(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for path, want := range map[string]string{"/ok": `"ok":true`, "/info": `"version":"test"`, "/openapi.json": `"openapi": "3.1.0"`, "/docs": "/v2/deployments"} {
		if got, text := s.raw("", "GET", path, ""); got != 200 || !strings.Contains(string(text), want) {
			t.Errorf("GET %s = %d %.200s, want 200 with %s", path, got, text, want)
		}
	}
	_, page := s.raw("", "GET", "/docs", "")
	if strings.Contains(string(page), "http://") || strings.Contains(string(page), "https://") || strings.Contains(string(page), "<script") {
		t.Error("/docs asks for something from elsewhere")
	}
}
