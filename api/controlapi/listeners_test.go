package controlapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/api/controlapi"
	"github.com/slipway-dev/slipway/control"
	"github.com/slipway-dev/slipway/control/controltest"
	"github.com/slipway-dev/slipway/seal"
)

// newImageServer is a server that serves external images, which is what listeners are for.
func newImageServer(t *testing.T) *server {
	t.Helper()
	key, err := seal.New(bytes.Repeat([]byte{7}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	w := controltest.New(t, controltest.NewStore(), key, base, func(c *control.Config) {
		c.Sources = []slipway.Source{slipway.SourceExternalContainer, slipway.SourceGithost}
	})
	return &server{World: w, t: t, handler: truthful(t, controlapi.New(w.Service, controlapi.Config{BaseURL: base, Version: "test", Log: slog.New(slog.DiscardHandler)}))}
}

func (s *server) listener(compute, namespaces string) string {
	s.t.Helper()
	return s.want(201, "POST", "/v2/listeners", fmt.Sprintf(
		`{"compute_type":"cluster","compute_id":%q,"compute_config":{"cluster_namespaces":%s}}`, compute, namespaces))["id"].(string)
}

// listenerKeyOf makes a key of a listener.
func (s *server) listenerKeyOf(id string) string {
	s.t.Helper()
	return s.want(201, "POST", "/v2/api-keys", fmt.Sprintf(`{"role":"listener","listener_id":%q}`, id))["key"].(string)
}

func imageAt(name, config string) string {
	return fmt.Sprintf(`{"name":%q,"source":"external_container","source_config":{%s},"source_revision_config":{"image_uri":"r.example/a:1"},"secrets":[{"name":"TOKEN","value":"canary-1"}]}`, name, config)
}

func placedAt(name, listenerID string) string {
	return imageAt(name, fmt.Sprintf(`"listener_id":%q`, listenerID))
}

func TestListenerShapesAndErrors(t *testing.T) {
	t.Parallel()
	s := newImageServer(t)
	id := s.listener("east", `["a","b"]`)
	one := "/v2/listeners/" + id
	l := s.want(200, "GET", one, "")
	for _, field := range []string{"id", "version", "compute_type", "compute_id", "compute_config", "created_at", "updated_at", "last_seen_at", "online"} {
		if _, ok := l[field]; !ok {
			t.Errorf("the answer lacks %q", field)
		}
	}
	unknown := "01900000-0000-7000-8000-999999999999"
	for _, c := range []struct {
		name, method, path, body string
		status                   int
		want                     string
	}{
		{"the compute id again", "POST", "/v2/listeners", `{"compute_type":"cluster","compute_id":"east","compute_config":{"cluster_namespaces":["z"]}}`, 409, `"detail":"a listener of compute_id`},
		{"a compute type there is not", "POST", "/v2/listeners", `{"compute_type":"vm","compute_id":"x","compute_config":{}}`, 422, `"loc":["body","compute_type"]`},
		{"no compute id", "POST", "/v2/listeners", `{"compute_type":"cluster","compute_config":{}}`, 422, `"loc":["body","compute_id"],"msg":"Field required"`},
		{"no config", "POST", "/v2/listeners", `{"compute_type":"cluster","compute_id":"x"}`, 422, `"loc":["body","compute_config"]`},
		{"no namespaces", "POST", "/v2/listeners", `{"compute_type":"cluster","compute_id":"x","compute_config":{"cluster_namespaces":[]}}`, 422, `"loc":["body","compute_config","cluster_namespaces"]`},
		{"a namespace that is no label", "PATCH", one, `{"compute_config":{"cluster_namespaces":["ok","Not_ok"]}}`, 422, `"loc":["body","compute_config","cluster_namespaces",1]`},
		{"a namespace twice", "PATCH", one, `{"compute_config":{"cluster_namespaces":["a","a"]}}`, 422, `named twice`},
		{"no version", "PATCH", one, `{"version":"x y"}`, 422, `"loc":["body","version"]`},
		{"another compute id", "PATCH", one, `{"compute_id":"west"}`, 400, `"detail":"compute_id cannot be changed`},
		{"another compute type", "PATCH", one, `{"compute_type":"vm"}`, 400, `"detail":"compute_type cannot be changed`},
		{"the stored compute id", "PATCH", one, `{"compute_id":"east","version":"0.1.0"}`, 200, `"version":"0.1.0"`},
		{"an unknown listener", "GET", "/v2/listeners/" + unknown, ``, 404, `{"detail":"Listener ID ` + unknown + ` not found."}`},
		{"an unknown listener's state", "GET", "/v2/listeners/" + unknown + "/state", ``, 404, `{"detail":"Listener ID ` + unknown + ` not found."}`},
		{"a deployment at an unknown listener", "POST", "/v2/deployments", placedAt("x", unknown), 422, `"loc":["body","source_config","listener_id"]`},
		{"a deployment that names no namespace of several", "POST", "/v2/deployments", placedAt("x", id), 422, `"loc":["body","source_config","listener_config","cluster_namespace"]`},
		{"a deployment in a namespace of others", "POST", "/v2/deployments", imageAt("x", `"listener_id":"`+id+`","listener_config":{"cluster_namespace":"c"}`), 422, `use one of its cluster_namespaces: a, b`},
		{"a namespace of no listener", "POST", "/v2/deployments", imageAt("x", `"listener_config":{"cluster_namespace":"a"}`), 422, `"loc":["body","source_config","listener_config","cluster_namespace"]`},
		{"a wait that is too long", "GET", one + "/state?wait=51", ``, 422, `"loc":["query","wait"]`},
		{"a report without a status", "POST", one + "/reports", `{"deployment_id":"` + unknown + `","generation":1,"revision_id":"` + unknown + `"}`, 422, `"loc":["body","status"]`},
		{"a report of nobody's deployment", "POST", one + "/reports", `{"deployment_id":"` + unknown + `","generation":1,"gone":true}`, 409, `no longer the current one`},
		{"a log of no level", "POST", one + "/logs", `{"entries":[{"deployment_id":"` + unknown + `","revision_id":"` + unknown + `","timestamp":"2026-01-01T00:00:00Z","level":"LOUD","message":"x"}]}`, 422, `"loc":["body","entries",0,"level"]`},
		{"a log of nobody's deployment", "POST", one + "/logs", `{"entries":[{"deployment_id":"` + unknown + `","revision_id":"` + unknown + `","timestamp":"2026-01-01T00:00:00Z","level":"INFO","message":"x"}]}`, 200, `{"accepted":0,"dropped":1}`},
	} {
		got, text := s.raw(s.Key, c.method, c.path, c.body)
		if got != c.status || !strings.Contains(string(text), c.want) {
			t.Errorf("%s: %d %s\nwant %d with %s", c.name, got, text, c.status, c.want)
		}
	}
}

func TestNamespacesOfOneComputeDoNotOverlap(t *testing.T) {
	t.Parallel()
	s := newImageServer(t)
	other := s.keyOf("other tenant")
	post := func(namespaces string) (int, map[string]any) {
		return s.callAs(other, "POST", "/v2/listeners", `{"compute_type":"cluster","compute_id":"east","compute_config":{"cluster_namespaces":`+namespaces+`}}`)
	}
	mine := s.listener("east", `["a","b"]`)
	for namespaces, want := range map[string]int{`["b","c"]`: 409, `null`: 409} {
		if got, answer := post(namespaces); got != want {
			t.Errorf("another tenant's listener of %s = %d %v, want %d", namespaces, got, answer, want)
		}
	}
	got, theirs := post(`["c"]`)
	if got != 201 {
		t.Fatalf("a listener of a free namespace = %d %v", got, theirs)
	}
	for body, want := range map[string]int{
		`{"compute_config":{"cluster_namespaces":["a","c"]}}`: 409, `{"compute_config":{"cluster_namespaces":null}}`: 409, `{"compute_config":{"cluster_namespaces":["a"]}}`: 200,
	} {
		s.want(want, "PATCH", "/v2/listeners/"+mine, body)
	}
	if got, _ := s.callAs(other, "GET", "/v2/listeners/"+mine, ""); got != 404 {
		t.Errorf("another tenant's listener = %d, want 404", got)
	}
}

func TestAListenerInUseStays(t *testing.T) {
	t.Parallel()
	s := newImageServer(t)
	id := s.listener("east", `["a"]`)
	d := s.want(201, "POST", "/v2/deployments", placedAt("desk", id))
	if got := d["source_config"].(map[string]any)["listener_config"].(map[string]any)["cluster_namespace"]; got != "a" {
		t.Errorf("cluster_namespace = %v, want the listener's only one", got)
	}
	s.want(400, "PATCH", "/v2/listeners/"+id, `{"compute_config":{"cluster_namespaces":["b"]}}`)
	s.want(400, "DELETE", "/v2/listeners/"+id, "")
	s.want(400, "PATCH", "/v2/deployments/"+d["id"].(string), `{"source_config":{"listener_config":{"cluster_namespace":"b"}}}`)
	s.want(204, "DELETE", "/v2/deployments/"+d["id"].(string), "")
	s.want(400, "DELETE", "/v2/listeners/"+id, "") // only it can tear the deployment down
	s.want(204, "DELETE", "/v2/deployments/"+d["id"].(string)+"?force=true", "")
	s.want(204, "DELETE", "/v2/listeners/"+id, "")
	s.want(404, "GET", "/v2/listeners/"+id, "")
}

func TestOneOfSeveralListenersIsChosen(t *testing.T) {
	t.Parallel()
	s := newImageServer(t)
	s.want(201, "POST", "/v2/deployments", imageAt("none", ""))
	s.listener("east", "null")
	s.want(201, "POST", "/v2/deployments", imageAt("one", ""))
	s.listener("west", "null")
	got, text := s.raw(s.Key, "POST", "/v2/deployments", imageAt("two", ""))
	if got != 400 || !strings.Contains(string(text), "listener_id' is required") {
		t.Errorf("without listener_id = %d %s, want 400 with the words that clients look for", got, text)
	}
	s.want(201, "POST", "/v2/deployments", createGit) // other sources have no listener
}

// state asks for a listener's state without waiting.
func (s *server) state(id, cursor string) map[string]any {
	s.t.Helper()
	return s.want(200, "GET", "/v2/listeners/"+id+"/state?wait=0&cursor="+cursor, "")
}

func TestAListenerSeesOnlyItsDeployments(t *testing.T) {
	t.Parallel()
	s := newImageServer(t)
	east, west := s.listener("east", "null"), s.listener("west", "null")
	desk := s.want(201, "POST", "/v2/deployments", placedAt("desk", east))["id"].(string)
	s.want(201, "POST", "/v2/deployments", createGit)
	whole := s.state(east, "")
	all := whole["deployments"].([]any)
	if len(all) != 1 || whole["partial"] != false {
		t.Fatalf("state = %v, want one deployment, whole", whole)
	}
	d := all[0].(map[string]any)
	candidate := d["candidate"].(map[string]any)
	if env := candidate["env"].(map[string]any); d["deployment_id"] != desk || env["TOKEN"] != "canary-1" {
		t.Errorf("deployment = %v", d)
	}
	if got := s.state(west, ""); len(got["deployments"].([]any)) != 0 {
		t.Errorf("the other listener sees %v", got)
	}
	cursor := whole["cursor"].(string)
	s.want(200, "PATCH", "/v2/deployments/"+desk, `{"source_config":{"resource_spec":{"cpu":1}}}`)
	next := s.state(east, cursor)
	if next["partial"] != true || len(next["deployments"].([]any)) != 1 || next["cursor"] == cursor {
		t.Errorf("state after a change = %v, want what changed", next)
	}
	s.want(201, "POST", "/v2/deployments", placedAt("tea", west))
	if still := s.state(east, next["cursor"].(string)); still["cursor"] != next["cursor"] || len(still["deployments"].([]any)) != 0 {
		t.Errorf("a change of another listener's shows as %v", still)
	}
	report := func(status string, generation any, want int) {
		body := fmt.Sprintf(`{"deployment_id":%q,"generation":%v,"revision_id":%q,"status":%q,"reason":"it is so","probe":"GET /ok: 503"}`, desk, generation, candidate["revision_id"], status)
		s.want(want, "POST", "/v2/listeners/"+east+"/reports", body)
	}
	now := next["deployments"].([]any)[0].(map[string]any)["generation"]
	report("DEPLOYING", d["generation"], 409)
	s.want(409, "POST", "/v2/listeners/"+west+"/reports", fmt.Sprintf(`{"deployment_id":%q,"generation":%v,"gone":true}`, desk, now))
	report("DEPLOYING", now, 204)
	s.want(200, "POST", "/v2/listeners/"+east+"/logs", fmt.Sprintf(`{"entries":[{"deployment_id":%q,"revision_id":%q,"timestamp":"2026-01-01T00:00:00Z","level":"INFO","message":"a\u0000line"}]}`, desk, candidate["revision_id"]))
	if logs := s.want(200, "GET", "/v2/deployments/"+desk+"/logs", "")["logs"].([]any); len(logs) != 1 {
		t.Errorf("logs = %v, want the line", logs)
	}
	s.want(200, "POST", "/v2/listeners/"+east+"/metrics", fmt.Sprintf(`{"samples":[{"deployment_id":%q,"timestamp":"2026-01-01T00:00:00Z","replicas":2,"cpu_cores":0.5}]}`, desk))
	if m := s.want(200, "GET", "/v2/deployments/"+desk+"/metrics", "")["metrics"].(map[string]any); m["replicas"] != 2.0 || m["cpu_cores"] != 0.5 {
		t.Errorf("metrics = %v", m)
	}
}

func TestASilentListenersDeploymentsAreUnknown(t *testing.T) {
	t.Parallel()
	s := newImageServer(t)
	id := s.listener("east", "null")
	one := "/v2/deployments/" + s.want(201, "POST", "/v2/deployments", placedAt("desk", id))["id"].(string)
	s.state(id, "")
	look := func() (string, string, bool) {
		d, r := s.want(200, "GET", one, ""), s.want(200, "GET", one+"/revisions", "")["resources"].([]any)[0].(map[string]any)
		return d["status"].(string), fmt.Sprint(r["status"], " ", r["status_reason"]), s.want(200, "GET", "/v2/listeners/"+id, "")["online"].(bool)
	}
	if status, revision, online := look(); status != "AWAITING_DATABASE" || revision != "AWAITING_DEPLOY <nil>" || !online {
		t.Fatalf("seen: %s %s online=%v", status, revision, online)
	}
	s.Advance(2 * time.Minute)
	if _, err := s.SweepListeners(t.Context()); err != nil {
		t.Fatal(err)
	}
	if status, revision, online := look(); status != "UNKNOWN" || !strings.HasPrefix(revision, "UNKNOWN listener east offline since 2026-01-02T") || online {
		t.Errorf("silent: %s %s online=%v", status, revision, online)
	}
	if d := s.want(200, "PATCH", one, `{"source_config":{"resource_spec":{"cpu":1}}}`); d["status"] != "UNKNOWN" {
		t.Errorf("status after a PATCH = %v, want UNKNOWN still", d["status"])
	}
	if d := s.want(201, "POST", "/v2/deployments", placedAt("new", id)); d["status"] != "UNKNOWN" {
		t.Errorf("a new deployment of a silent listener is %v", d["status"])
	}
	s.state(id, "")
	list := s.want(200, "GET", one+"/revisions", "")["resources"].([]any)
	d := s.want(200, "GET", one, "")
	if first := list[1].(map[string]any); d["status"] != "AWAITING_DATABASE" || first["status"] != "AWAITING_DEPLOY" || first["status_reason"] != nil {
		t.Errorf("back: %v, revision %v", d["status"], first)
	}
}

func TestTheProtocolKnowsItsVersions(t *testing.T) {
	t.Parallel()
	s := newImageServer(t)
	id := s.listener("east", "null")
	for version, want := range map[string]int{"0.1.0": 200, "v1.9.3": 200, "2.0.0": 400, "a b": 422, "nightly": 200, "": 200} {
		req, err := http.NewRequest("GET", "/v2/listeners/"+id+"/state?wait=0", nil)
		if err != nil {
			t.Fatal(err)
		}
		if req.Header.Set("X-Api-Key", s.Key); version != "" {
			req.Header.Set("Slipway-Listener-Version", version)
		}
		rec := httptest.NewRecorder()
		s.handler.ServeHTTP(rec, req)
		if rec.Code != want {
			t.Errorf("version %q = %d %s, want %d", version, rec.Code, rec.Body, want)
		}
		if got := s.want(200, "GET", "/v2/listeners/"+id, "")["version"]; want == 200 && version != "" && got != version {
			t.Errorf("version of the listener = %v, want %q", got, version)
		}
	}
}

func TestTheKeyOfAListener(t *testing.T) {
	t.Parallel()
	s := newImageServer(t)
	id, unknown := s.listener("east", "null"), "01900000-0000-7000-8000-999999999999"
	foreign := s.want(201, "POST", "/v2/tenants", `{"name":"foreign"}`)["id"].(string)
	_, theirs := s.rawIn(foreign, s.Key, "POST", "/v2/listeners", `{"compute_type":"cluster","compute_id":"far","compute_config":{}}`)
	var other struct{ ID string }
	if err := json.Unmarshal(theirs, &other); err != nil || other.ID == "" {
		t.Fatalf("listener of another tenant = %s, %v", theirs, err)
	}
	for name, c := range map[string]struct {
		body, want string
	}{
		"no listener":                  {`{"role":"listener"}`, `"loc":["body","listener_id"]`},
		"another role":                 {`{"role":"viewer","listener_id":"` + id + `"}`, `"loc":["body","listener_id"]`},
		"no role":                      {`{"listener_id":"` + id + `"}`, `"loc":["body","role"]`},
		"a deployment too":             {`{"role":"listener","listener_id":"` + id + `","deployment_id":"` + unknown + `"}`, `"loc":["body","deployment_id"]`},
		"organisation-wide":            {`{"role":"listener","listener_id":"` + id + `","organization_wide":true}`, `leave organisation or listener_id out`},
		"an unknown listener":          {`{"role":"listener","listener_id":"` + unknown + `"}`, `there is no listener`},
		"a listener of another tenant": {`{"role":"listener","listener_id":"` + other.ID + `"}`, `there is no listener`},
	} {
		if got, text := s.raw(s.Key, "POST", "/v2/api-keys", c.body); got != 422 || !strings.Contains(string(text), c.want) {
			t.Errorf("%s: %d %s, want 422 with %s", name, got, text, c.want)
		}
	}
	made := s.want(201, "POST", "/v2/api-keys", `{"name":"cluster","role":"listener","listener_id":"`+id+`"}`)
	key := made["key"].(string)
	if _, who := s.callAs(key, "GET", "/v2/whoami", ""); who["listener_id"] != id || who["role"] != "listener" || fmt.Sprint(who["permissions"]) != "[listeners:listen]" {
		t.Errorf("whoami = %v", who)
	}
	if list := s.want(200, "GET", "/v2/api-keys", "")["resources"].([]any); list[0].(map[string]any)["listener_id"] != id {
		t.Errorf("keys = %v", list)
	}
	fresh := s.want(201, "POST", "/v2/api-keys/"+made["id"].(string)+"/rotate", "")
	if fresh["listener_id"] != id || fresh["role"] != "listener" {
		t.Errorf("rotated = %v", fresh)
	}
	state := "/v2/listeners/" + id + "/state?wait=0"
	for k, want := range map[string]int{key: 401, fresh["key"].(string): 200} {
		if got, _ := s.raw(k, "GET", state, ""); got != want {
			t.Errorf("after the rotation: %d, want %d", got, want)
		}
	}
	s.want(204, "DELETE", "/v2/api-keys/"+fresh["id"].(string), "")
	if got, _ := s.raw(fresh["key"].(string), "GET", state, ""); got != 401 {
		t.Errorf("revoked: %d, want 401", got)
	}
	entries := s.want(200, "GET", "/v2/audit-logs?operation=create_api_key", "")
	if text := fmt.Sprint(entries); !strings.Contains(text, "listener_id") || !strings.Contains(text, id) {
		t.Errorf("the audit log does not say which listener the key is for: %s", text)
	}
}
