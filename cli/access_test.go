package cli_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/cli"
)

const (
	firstTenant  = "0190d3c1-0000-7000-8000-000000000001"
	secondTenant = "0190d3c1-0000-7000-8000-000000000002"
	oneKey       = "0190d3c1-0000-7000-8000-00000000000a"
)

// office is a control service that answers what the commands about access need and remembers what it was asked.
type office struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string // "METHOD path?query tenant body"
}

func newOffice(t *testing.T) *office {
	o := &office{}
	tenant := func(id, name string) map[string]any {
		return map[string]any{"id": id, "name": name, "created_at": "2031-05-01T12:00:00Z"}
	}
	key := func(id, prefix string) map[string]any {
		return map[string]any{"id": id, "prefix": prefix, "role": "editor", "created_at": "2031-05-01T12:00:00Z"}
	}
	revoked := key("0190d3c1-0000-7000-8000-00000000000b", "slw_gone")
	revoked["revoked_at"] = "2031-05-02T12:00:00Z"
	made := key(oneKey, "slw_made")
	made["key"] = "slw_made-in-full"
	mux := http.NewServeMux()
	reply := func(pattern string, v any) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) { answer(w, v) })
	}
	reply("GET /v2/whoami", map[string]any{
		"principal": "key:slw_AbCd", "role": "admin", "tenant_id": firstTenant, "tenant_name": "default", "organization_wide": true,
		"permissions": []string{"deployments:read", "api-keys:manage"},
	})
	mux.HandleFunc("GET /v2/tenants", func(w http.ResponseWriter, r *http.Request) {
		all := []any{}
		for _, t := range []map[string]any{tenant(firstTenant, "default"), tenant(secondTenant, "second")} {
			if name := r.URL.Query().Get("name"); name == "" || name == t["name"] {
				all = append(all, t)
			}
		}
		answer(w, map[string]any{"resources": all, "offset": len(all)})
	})
	reply("GET /v2/tenants/"+secondTenant, tenant(secondTenant, "second"))
	reply("POST /v2/tenants", tenant(secondTenant, "second"))
	reply("PATCH /v2/tenants/"+secondTenant, tenant(secondTenant, "third"))
	reply("DELETE /v2/tenants/"+secondTenant, nil)
	reply("GET /v2/deployments", map[string]any{"resources": []any{map[string]any{"id": "d1", "name": "desk", "status": "READY"}}, "offset": 1})
	mux.HandleFunc("GET /v2/api-keys", func(w http.ResponseWriter, r *http.Request) {
		all := []any{key(oneKey, "slw_live"), revoked}
		if r.URL.Query().Get("organization_wide") == "true" {
			all = []any{key("0190d3c1-0000-7000-8000-00000000000c", "slw_orga")}
		}
		answer(w, map[string]any{"resources": all, "offset": len(all)})
	})
	reply("POST /v2/api-keys", made)
	reply("POST /v2/api-keys/"+oneKey+"/rotate", made)
	reply("DELETE /v2/api-keys/"+oneKey, nil)
	mux.HandleFunc("GET /v2/audit-logs", func(w http.ResponseWriter, r *http.Request) {
		entry := map[string]any{
			"id": "e", "time": "2031-05-01T12:00:00Z", "principal": "key:\x1b[31mslw", "operation": "update_deployment", "subject": "d1", "outcome": "success",
			"changes": []any{map[string]any{"field": "a"}, map[string]any{"field": "b"}, map[string]any{"field": "c"}, map[string]any{"field": "d"}},
		}
		cursor := any("more")
		if r.URL.Query().Get("cursor") == "more" {
			cursor = nil
		}
		answer(w, map[string]any{"resources": []any{entry}, "cursor": cursor})
	})
	mux.HandleFunc("GET /v2/audit-logs/export", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "time,who\n1,me\n") })
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		o.mu.Lock()
		o.asked = append(o.asked, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+r.Header.Get("X-Tenant-Id")+" "+string(body)))
		o.mu.Unlock()
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(o.Close)
	return o
}

// run executes one command line with the credentials of a local installation in dir.
func (o *office) run(t *testing.T, dir string, env map[string]string, args ...string) (string, error) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dir, cli.CredentialsFile)); err != nil {
		write(t, dir, map[string]string{cli.CredentialsFile: `{"url":"` + o.URL + `","api_key":"slw_k","tenant_id":"` + firstTenant + `"}`})
	}
	o.mu.Lock()
	o.asked = nil
	o.mu.Unlock()
	var out bytes.Buffer
	root := &cobra.Command{Use: "slipway", SilenceErrors: true, SilenceUsage: true}
	getenv := func(name string) string {
		if name == "SLIPWAY_DATA_DIR" {
			return dir
		}
		return env[name]
	}
	root.AddCommand(cli.Commands(root, cli.Environment{Version: "test", Getenv: getenv, Out: &out})...)
	cli.Helpful(root)
	root.SetArgs(args)
	err := root.Execute()
	return out.String(), err
}

// last is the last request.
func (o *office) last() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.asked) == 0 {
		return ""
	}
	return o.asked[len(o.asked)-1]
}

func TestAccessCommands(t *testing.T) {
	t.Parallel()
	o, dir := newOffice(t), t.TempDir()
	for line, want := range map[string]struct{ asks, says string }{
		"whoami":                                {"GET /v2/whoami " + firstTenant, "default (" + firstTenant + "), and every other with --tenant"},
		"tenants list":                          {"GET /v2/tenants?limit=100&offset=0", "*  default  " + firstTenant},
		"tenants create second":                 {`POST /v2/tenants  {"name":"second"}`, "created second (" + secondTenant + ")"},
		"tenants rename second third":           {"PATCH /v2/tenants/" + secondTenant + `  {"name":"third"}`, "renamed second to third"},
		"tenants delete " + secondTenant:        {"DELETE /v2/tenants/" + secondTenant, "deleted second"},
		"keys list":                             {"GET /v2/api-keys?limit=100&organization_wide=false " + firstTenant, "slw_live…  -     editor  valid"},
		"keys list --organization":              {"GET /v2/api-keys?limit=100&organization_wide=true " + firstTenant, "slw_orga…"},
		"keys list --all":                       {"GET /v2/api-keys?limit=100&organization_wide=false " + firstTenant, "revoked"},
		"keys create --role viewer":             {`POST /v2/api-keys ` + firstTenant + ` {"role":"viewer"}`, "slw_made-in-full\n"},
		"keys create --deployment desk":         {`POST /v2/api-keys ` + firstTenant + ` {"deployment_id":"d1"}`, "shown this once"},
		"keys create --listener l1":             {`POST /v2/api-keys ` + firstTenant + ` {"role":"listener","listener_id":"l1"}`, "slw_made-in-full\n"},
		"keys revoke slw_live":                  {"DELETE /v2/api-keys/" + oneKey + " " + firstTenant, "revoked slw_live"},
		"keys rotate " + oneKey + " --grace 1d": {"POST /v2/api-keys/" + oneKey + "/rotate " + firstTenant + ` {"grace_seconds":86400}`, "slw_made-in-full\n"},
		"keys create --role admin --organization --name ci --expires 2031-05-01T00:00:00Z": {
			`POST /v2/api-keys ` + firstTenant + ` {"name":"ci","role":"admin","organization_wide":true,"expires_at":"2031-05-01T00:00:00Z"}`, "",
		},
		"audit --limit 1": {"GET /v2/audit-logs?limit=1 " + firstTenant, "a, b, c, 1 more"},
		"audit --operation o --principal p --since 2031-05-01T00:00:00Z": {
			"GET /v2/audit-logs?cursor=more&from=2031-05-01T00%3A00%3A00Z&limit=49&operation=o&principal=p " + firstTenant, "update_deployment",
		},
		"audit --export csv --subject d1": {"GET /v2/audit-logs/export?format=csv&subject=d1 " + firstTenant, "time,who\n1,me\n"},
	} {
		out, err := o.run(t, dir, nil, strings.Fields(line)...)
		if err != nil || o.last() != want.asks || !strings.Contains(out, want.says) || strings.Contains(out, "\x1b") {
			t.Errorf("%s: asks %q, want %q; says %q, want %q; %v", line, o.last(), want.asks, out, want.says, err)
		}
		if strings.Contains(line, "--export") {
			continue
		}
		out, err = o.run(t, dir, nil, append(strings.Fields(line), "--json")...)
		if err != nil || !json.Valid([]byte(out)) || out == "null\n" {
			t.Errorf("%s --json: %q, %v; want JSON", line, out, err)
		}
	}
}

func TestTheTenantThatIsUsed(t *testing.T) {
	t.Parallel()
	o, dir := newOffice(t), t.TempDir()
	in := func(env map[string]string, args ...string) string {
		t.Helper()
		out, err := o.run(t, dir, env, append([]string{"whoami"}, args...)...)
		if err != nil {
			t.Errorf("whoami %q: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(strings.TrimPrefix(o.last(), "GET /v2/whoami"))
	}
	if out, err := o.run(t, dir, nil, "tenants", "use", "second"); err != nil || !strings.Contains(out, "using second") {
		t.Fatalf("%s, %v", out, err)
	}
	if info, err := os.Stat(filepath.Join(dir, cli.CredentialsFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the credentials file: %v, %v; want it readable by its owner only", info, err)
	}
	elsewhere := map[string]string{"SLIPWAY_URL": o.URL, "SLIPWAY_API_KEY": "slw_other"}
	for name, c := range map[string]struct{ got, want string }{
		"chosen":                    {in(nil), secondTenant},
		"flag by name":              {in(nil, "--tenant", "default"), firstTenant},
		"flag by id":                {in(nil, "--tenant", strings.ToUpper(firstTenant)), firstTenant},
		"environment":               {in(map[string]string{"SLIPWAY_TENANT": "default"}), firstTenant},
		"flag before environment":   {in(map[string]string{"SLIPWAY_TENANT": "default"}, "--tenant", "second"), secondTenant},
		"another key":               {in(elsewhere), ""},
		"another key and a flag":    {in(elsewhere, "--tenant", "second"), secondTenant},
		"another key, local server": {in(nil, "--api-key", "slw_other"), ""},
	} {
		if c.got != c.want {
			t.Errorf("%s: X-Tenant-Id %q, want %q", name, c.got, c.want)
		}
	}
	if _, err := o.run(t, dir, nil, "tenants", "delete", "second"); err != nil {
		t.Fatal(err)
	}
	if got := in(nil); got != "" {
		t.Errorf("after its deletion X-Tenant-Id is %q, want none", got)
	}
}

func TestAccessCommandsThatCannotBeMeant(t *testing.T) {
	t.Parallel()
	o, dir := newOffice(t), t.TempDir()
	for line, mentions := range map[string]string{
		"tenants use nobody":          `no tenant "nobody"`,
		"list --tenant nobody":        `no tenant "nobody"`,
		"keys revoke slw_none":        `no key "slw_none"`,
		"keys create --expires never": `--expires "never"`,
		"keys rotate x --grace -1h":   `--grace "-1h"`,
		"audit --export xml":          `--export is "xml"`,
		"audit --since then":          `--since "then"`,
		"audit --limit 0":             "--limit is 0",
	} {
		out, err := o.run(t, dir, nil, strings.Fields(line)...)
		if err == nil || !strings.Contains(err.Error(), mentions) {
			t.Errorf("%s: %v, want an error that mentions %q\n%s", line, err, mentions, out)
		}
	}
}
