package controlapi_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sort"
	"strings"
	"testing"
)

// hostileValues are JSON texts that take the place of one value at a time.
var hostileValues = []string{
	`"\u0000"`, `"a\u0000b"`, `"\ud800"`, `"\udc00\ud800"`, "\"\xff\xfe\"", `""`, `" "`, `"\u202e"`, `null`, `[]`, `{}`, `[null]`, `{"a":{"a":{}}}`, `true`,
	`0`, `-1`, `1e400`, `-1e400`, `1e308`, `9223372036854775807`, `9223372036854775808`, `-9223372036854775808`, `4294967296`, `0.1e-400`,
	`"0001-01-01T00:00:00Z"`, `"9999-12-31T23:59:59.999999999Z"`, `"2026-01-01T00:00:00+23:59"`, `"../../x"`, `"' OR 1=1 --"`, `"%00"`, `"https://[::1]:0/%00"`,
	`"` + strings.Repeat("a", 70_000) + `"`, `"` + strings.Repeat(`\u0000`, 3000) + `"`, `[` + strings.Repeat(`"a",`, 20_000) + `"a"]`,
}

// hostileTexts take the place of one parameter at a time.
var hostileTexts = []string{"\x00", "a\x00b", "\xff", "\xed\xa0\x80", "%", "_", "\\", "' OR 1=1 --", strings.Repeat("a", 7000), "9223372036854775808", "-1", "1e9", "0001-01-01T00:00:00Z",
	"9999-12-31T23:59:59Z", "MSAA", "MSD_", "LTk5OTk5OTk5OTk5OTk5OTk5OTkgeA", "MQ", "\u202e"}

// probe is one request.
type probe struct{ method, path, body string }

// schemaNode is what is needed of a schema to make up a value.
type schemaNode struct {
	Ref        string                 `json:"$ref"`
	Type       any                    `json:"type"`
	Format     string                 `json:"format"`
	Enum       []any                  `json:"enum"`
	Properties map[string]*schemaNode `json:"properties"`
	Items      *schemaNode            `json:"items"`
	AnyOf      []*schemaNode          `json:"anyOf"`
	Extra      any                    `json:"additionalProperties"`
}

// hostile makes up requests over the whole interface description: a valid request of each operation, with one value at a
// time gone wrong.
type hostile struct {
	schemas map[string]*schemaNode
	ids     map[string]string // by the name of a path parameter or a field
}

func (h hostile) probes(doc hostileDoc) []probe {
	var all []probe
	for path, methods := range doc.Paths {
		for method, op := range methods {
			method := strings.ToUpper(method)
			target := h.target(path)
			for _, p := range op.Parameters {
				for _, text := range hostileTexts {
					switch p.In {
					case "query":
						all = append(all, probe{method, target + "?" + url.Values{p.Name: {text}, "deployment_id": {h.ids["deployment_id"]}}.Encode(), "{}"})
					case "path":
						all = append(all, probe{method, h.target(strings.Replace(path, "{"+p.Name+"}", url.PathEscape(text), 1)), "{}"})
					}
				}
			}
			if body := op.RequestBody.Content["application/json"].Schema; body != nil {
				h.bodies(body, 0, func(text string) { all = append(all, probe{method, target, text}) })
			}
		}
	}
	slices.SortFunc(all, func(a, b probe) int { return strings.Compare(a.method+a.path+a.body, b.method+b.path+b.body) })
	return all
}

// rank puts what needs things as they are first, and what removes them last.
func rank(p probe) int {
	switch {
	case p.method == "DELETE":
		return 3
	case strings.HasSuffix(p.path, "/reports"):
		return 1
	}
	return 2
}

func (h hostile) target(path string) string {
	for name, id := range h.ids {
		path = strings.ReplaceAll(path, "{"+name+"}", id)
	}
	return path
}

func (h hostile) resolve(n *schemaNode) *schemaNode {
	for n.Ref != "" {
		n = h.schemas[n.Ref[strings.LastIndexByte(n.Ref, '/')+1:]]
	}
	for _, one := range n.AnyOf {
		if one = h.resolve(one); one.Type != "null" {
			return one
		}
	}
	return n
}

func (n *schemaNode) is(kind string) bool {
	if list, ok := n.Type.([]any); ok {
		return len(list) > 0 && list[0] == kind
	}
	return n.Type == kind
}

// bodies yields the valid value and every one of which one part is hostile.
func (h hostile) bodies(n *schemaNode, depth int, yield func(string)) {
	n = h.resolve(n)
	for _, v := range hostileValues {
		yield(v)
	}
	if depth > 5 {
		return
	}
	switch {
	case n.is("array") && n.Items != nil:
		h.bodies(n.Items, depth+1, func(text string) { yield("[" + text + "]") })
	case len(n.Properties) > 0:
		for name, of := range n.Properties {
			h.bodies(of, depth+1, func(text string) { yield(h.object(n, depth, name, text)) })
		}
	}
}

// object is the valid object with one member replaced.
func (h hostile) object(n *schemaNode, depth int, other, text string) string {
	var members []string
	for name, of := range n.Properties {
		value := h.valid(name, of, depth+1)
		if name == other {
			value = text
		}
		if value != "" {
			members = append(members, fmt.Sprintf("%q:%s", name, value))
		}
	}
	sort.Strings(members)
	return "{" + strings.Join(members, ",") + "}"
}

// valid is a value that may be right, "" for none.
func (h hostile) valid(name string, n *schemaNode, depth int) string {
	n = h.resolve(n)
	if fixed, ok := hostileFixed[name]; ok {
		return fixed
	}
	if id := h.ids[name]; id != "" {
		return `"` + id + `"`
	}
	switch {
	case len(n.Enum) > 0:
		raw, _ := json.Marshal(n.Enum[0])
		return string(raw)
	case n.Format == "date-time":
		return `"2026-01-01T00:00:00Z"`
	case n.Format == "uuid":
		return ""
	case n.is("integer"), n.is("number"):
		return "1"
	case n.is("boolean"):
		return "false"
	case n.is("array") && n.Items != nil && depth < 4:
		if one := h.valid("", n.Items, depth+1); one != "" {
			return "[" + one + "]"
		}
		return "[]"
	case len(n.Properties) > 0 && depth < 4:
		return h.object(n, depth, "", "")
	case n.is("string"):
		return `"x1"`
	}
	return ""
}

// hostileFixed are values of fields that a form alone does not tell.
var hostileFixed = map[string]string{
	"source": `"external_container"`, "image_uri": `"docker.io/a/b:1"`, "agentgraph_config_path": "null", "repo_url": "null", "repo_ref": "null",
	"deployment_type": "null", "template_id": "null", "build_on_push": "null", "install_command": "null", "build_command": "null", "source_tarball_path": "null",
	"repo_commit_sha": "null", "cluster_namespace": `"n1"`, "cluster_namespaces": `["n1"]`, "compute_type": `"cluster"`, "url": `"http://127.0.0.1:9/x"`,
	"revision_source": "null", "resource_spec": "null", "host_url": `"https://127.0.0.1:9"`, "gone": "false", "custom_url": "null", "force": "false",
	"organization_wide": "false", "expires_at": "null", "events": "[]", "offset": `"0"`, "compute_id": `"c"`, "role": `"viewer"`, "kind": `"generic"`,
	"api_url": "null", "redirect_url": `"https://example.com/"`,
}

type hostileDoc struct {
	Paths map[string]map[string]struct {
		Parameters  []struct{ Name, In string }
		RequestBody struct {
			Content map[string]struct{ Schema *schemaNode }
		}
	}
	Components struct{ Schemas map[string]*schemaNode }
}

// hostileRequests is how many of the some 20 000 requests one run sends.
const hostileRequests = 1500

// TestHostileValues puts values that nobody should send into one place of a request at a time, over every operation of the
// description and on both databases, which do not refuse the same: the answer is never the server's fault.
func TestHostileValues(t *testing.T) {
	t.Parallel()
	for _, database := range []string{"sqlite", "postgres"} {
		t.Run(database, func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			newRealServer(t, database).hostile(t, rand.New(rand.NewPCG(seed, 1)))
		})
	}
}

func (s *server) hostile(t *testing.T, random *rand.Rand) {
	t.Helper()
	_, text := s.raw("", "GET", "/openapi.json", "")
	var doc hostileDoc
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	h := s.hostileIDs()
	h.schemas = doc.Components.Schemas
	all := h.probes(doc)
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	all = all[:hostileRequests]
	sort.SliceStable(all, func(i, j int) bool { return rank(all[i]) < rank(all[j]) })
	statuses := map[int]int{}
	for _, p := range all {
		req, err := http.NewRequest(p.method, base+p.path, strings.NewReader(p.body))
		if err != nil {
			continue // not even a URL
		}
		req.Header.Set("X-Api-Key", s.Key)
		req.Header.Set("Content-Type", "application/json")
		rec := httptest.NewRecorder()
		s.handler.ServeHTTP(rec, req)
		if statuses[rec.Code]++; rec.Code >= 500 {
			t.Errorf("%s %.300q with %.300q = %d %.300s", p.method, p.path, p.body, rec.Code, rec.Body)
		}
	}
	if statuses[200]+statuses[201] == 0 || statuses[422] == 0 {
		t.Errorf("the answers are %v: the requests are not what they should be", statuses)
	}
}

// hostileIDs makes one of each thing that an id can name.
func (s *server) hostileIDs() hostile {
	s.t.Helper()
	h := hostile{ids: map[string]string{"tracing_project_id": "01900000-0000-7000-8000-000000000001", "integration_id": "01900000-0000-7000-8000-000000000001"}}
	h.ids["listener_id"] = s.want(201, "POST", "/v2/listeners", `{"compute_type":"cluster","compute_id":"c","compute_config":{"cluster_namespaces":["n1"]}}`)["id"].(string)
	made := s.want(201, "POST", "/v2/deployments", `{"name":"ext","source":"external_container","source_config":{"listener_id":"`+h.ids["listener_id"]+`","listener_config":{"cluster_namespace":"n1"}},"source_revision_config":{"image_uri":"docker.io/x/y:1"},"secrets":[]}`)
	h.ids["deployment_id"], h.ids["revision_id"] = made["id"].(string), made["latest_revision_id"].(string)
	h.ids["project_id"] = h.ids["deployment_id"]
	h.ids["webhook_id"] = s.want(201, "POST", "/v2/webhooks", `{"url":"http://127.0.0.1:9/x"}`)["id"].(string)
	h.ids["delivery_id"] = s.want(201, "POST", "/v2/webhooks/"+h.ids["webhook_id"]+"/ping", "")["id"].(string)
	h.ids["api_key_id"] = s.want(201, "POST", "/v2/api-keys", `{"role":"viewer"}`)["id"].(string)
	h.ids["tenant_id"] = s.admin().TenantID
	h.ids["upload_id"] = "01900000-0000-7000-8000-000000000001"
	return h
}

// asTenant makes a request with the organisation's key in a tenant.
func (s *server) asTenant(tenant, method, path, body string) *httptest.ResponseRecorder {
	s.t.Helper()
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	req.Header.Set("X-Api-Key", s.Key)
	req.Header.Set("X-Tenant-Id", tenant)
	req.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	s.handler.ServeHTTP(rec, req)
	return rec
}

func decoded(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return out
}

func TestProblemsAreToldUpToABound(t *testing.T) {
	t.Parallel()
	s := newStormServer(t)
	body := `{"name":"a","source":"githost","secrets":[` + strings.Repeat("1,", 10_000) + `1]}`
	status, text := s.raw(s.Key, "POST", "/v2/deployments", body)
	if status != 422 || len(text) > 20_000 || !strings.Contains(string(text), "more problems") {
		t.Errorf("%d, %d bytes: %.200s; want 422 and a hundred problems", status, len(text), text)
	}
}
