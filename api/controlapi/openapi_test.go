package controlapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/control"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

const golden = "../../openapi/control.json"

func TestDescriptionIsCheckedIn(t *testing.T) {
	t.Parallel()
	_, got := newServer(t).raw("", "GET", "/openapi.json", "")
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("/openapi.json differs from openapi/control.json; look at the difference, then: go test ./api/controlapi -run Description -update")
	}
}

type described struct {
	Method, Path string
	Secured      bool
}

// operations lists what the description says there is, by operation id.
func (s *server) operations() map[string]described {
	_, text := s.raw("", "GET", "/openapi.json", "")
	var doc struct {
		Paths map[string]map[string]struct {
			OperationID string           `json:"operationId"`
			Security    []map[string]any `json:"security"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		s.t.Fatal(err)
	}
	out := map[string]described{}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			out[op.OperationID] = described{strings.ToUpper(method), path, len(op.Security) > 0}
		}
	}
	return out
}

const (
	read   = "200 for all"
	write  = "200 for admin and editor"
	remove = "200 for admin"
	tenant = "200 for admin, whatever the deployment" // not for deploy keys
	listen = "200 for admin and the listener's own key"
	open   = "200 for everybody" // who is authenticated
	wide   = "200 for organisation-wide admins"
	build  = "let in for admin and builder" // what of a build that does not exist is not found

	lease = `"lease":{"deployment_id":"01900000-0000-7000-8000-999999999999","owner":"b","epoch":1}`
)

// rights says, for every secured operation, which permission of control-plane reference 1 it asks for, and its body.
var rights = map[string]struct{ need, body string }{
	"list_deployments":                      {read, ""},
	"create_deployment":                     {write, strings.Replace(createGit, `"git"`, `"another"`, 1)},
	"get_deployment":                        {read, ""},
	"patch_deployment":                      {write, `{}`},
	"delete_deployment":                     {remove, ""},
	"delete_deployments":                    {remove, ""},
	"restore_deployment":                    {remove, ""},
	"purge_deployment":                      {remove, ""},
	"count_free_deployments":                {read, ""},
	"change_deployment_tier":                {write, `{"deployment_tier":"DEDICATED_S"}`},
	"change_resource_tiers":                 {write, `{"compute_tier":"DEDICATED_S"}`},
	"list_revisions":                        {read, ""},
	"create_revision":                       {write, `{}`},
	"get_revision":                          {read, ""},
	"redeploy_revision":                     {write, ""},
	"interrupt_revision":                    {write, ""},
	"list_revision_events":                  {read, ""},
	"get_revision_logs":                     {read, ""},
	"get_deployment_logs":                   {read, ""},
	"list_deployment_logs":                  {read, ""},
	"read_project_build_logs":               {read, ""},
	"read_project_revision_deploy_logs":     {read, ""},
	"read_project_deploy_logs":              {read, ""},
	"list_templates":                        {read, ""},
	"list_tracing_projects":                 {read, ""},
	"get_tracing_project":                   {read, ""},
	"get_who_am_i":                          {open, ""},
	"list_tenants":                          {open, ""},
	"get_tenant":                            {open, ""},
	"create_tenant":                         {wide, `{"name":"another"}`},
	"patch_tenant":                          {tenant, `{"name":"renamed"}`},
	"delete_tenant":                         {wide, ""},
	"list_api_keys":                         {tenant, ""},
	"create_api_key":                        {tenant, `{"role":"viewer"}`},
	"revoke_api_key":                        {tenant, ""},
	"rotate_api_key":                        {tenant, ""},
	"list_audit_logs":                       {tenant, ""},
	"export_audit_logs":                     {tenant, ""},
	"list_audit_logs_ocsf":                  {tenant, ""},
	"get_telemetry_status":                  {wide, ""},
	"preview_telemetry":                     {wide, ""},
	"create_push_token":                     {write, ""},
	"list_listeners":                        {read, ""},
	"create_listener":                       {remove, `{"compute_type":"cluster","compute_id":"another","compute_config":{"cluster_namespaces":["a"]}}`},
	"get_listener":                          {read, ""},
	"patch_listener":                        {remove, `{"version":"0.2.0"}`},
	"delete_listener":                       {remove, ""},
	"get_listener_state":                    {listen, ""},
	"report_listener_status":                {listen, `{"deployment_id":"01900000-0000-7000-8000-999999999999","generation":1,"gone":true}`},
	"append_listener_logs":                  {listen, `{"entries":[]}`},
	"put_listener_metrics":                  {listen, `{"samples":[]}`},
	"get_deployment_metrics":                {read, ""},
	"list_githost_integrations":             {read, ""},
	"get_githost_repositories":              {read, ""},
	"list_githost_installations":            {read, ""},
	"get_githost_installation_repositories": {read, ""},
	"create_githost_installation_link":      {write, ""},
	"create_app_manifest":                   {remove, `{"name":"app","redirect_url":"http://127.0.0.1:1/"}`},
	"create_app_conversion":                 {remove, `{"integration_id":"INTEGRATION","code":"x"}`},
	"list_integrations":                     {read, ""},
	"create_integration":                    {remove, strings.Replace(createGitea, `"name":"gitea"`, `"name":"another"`, 1)},
	"delete_integration":                    {remove, ""},
	"diff_revisions":                        {read, ""},
	"claim_build":                           {build, `{"owner":"b"}`},
	"renew_build":                           {build, `{` + lease + `}`},
	"append_build_logs":                     {build, `{` + lease + `,"entries":[]}`},
	"find_missing_blobs":                    {build, `{` + lease + `,"digests":[]}`},
	"complete_build":                        {build, `{` + lease + `,"artifact_digest":"x","parts":[]}`},
	"fail_build":                            {build, `{` + lease + `,"reason":"x"}`},
	"collect_garbage":                       {wide, ""},
	"create_upload_url":                     {write, ""},
	"create_upload_url_unversioned":         {write, ""},
	"list_webhooks":                         {read, ""},
	"create_webhook":                        {remove, `{"url":"https://example.com/other"}`},
	"get_webhook":                           {read, ""},
	"patch_webhook":                         {remove, `{"enabled":false}`},
	"delete_webhook":                        {remove, ""},
	"rotate_webhook_secret":                 {remove, ""},
	"ping_webhook":                          {remove, ""},
	"list_webhook_deliveries":               {read, ""},
	"redeliver_webhook":                     {remove, ""},
}

// about are the lists that hang on one deployment.
var about = map[string]bool{"list_revisions": true, "list_revision_events": true, "list_deployment_logs": true, "list_webhook_deliveries": true}

// onOwn are the operations that act on what is the caller's own, or make it.
var onOwn = map[string]bool{
	"create_deployment": true, "get_who_am_i": true, "create_api_key": true, "export_audit_logs": true,
	"create_listener": true, "create_webhook": true, "count_free_deployments": true, "create_integration": true, "create_app_manifest": true,
}

// aboutAll are the operations that need no tenant to be chosen.
var aboutAll = map[string]bool{
	"get_who_am_i": true, "list_tenants": true, "get_tenant": true, "create_tenant": true, "patch_tenant": true, "delete_tenant": true,
	"claim_build": true, "renew_build": true, "append_build_logs": true, "find_missing_blobs": true, "complete_build": true, "fail_build": true,
	"collect_garbage": true,
	"list_audit_logs": true, "export_audit_logs": true, "list_audit_logs_ocsf": true,
	"get_telemetry_status": true, "preview_telemetry": true,
}

// callers of the matrix.
var callers = []string{
	"none", "bad key", "expired", "revoked", "builder", "viewer", "editor", "admin", "deploy key", "foreign deploy key", "org key without tenant",
	"org key", "org viewer", "other tenant", "listener key", "foreign listener key",
}

// wanted is what a caller of each kind must get, given what the operation needs.
func wanted(caller, need, op, path string) (low, high int) {
	ok := func(may bool) (int, int) {
		switch {
		case !may:
			return 403, 403
		case need == build && op != "claim_build":
			return 404, 404
		case op == "report_listener_status":
			return 409, 409 // let in; what the body names is not the listener's
		}
		return 200, 299
	}
	deployment := strings.Contains(path, "{deployment_id}") || strings.Contains(path, "{project_id}") || op == "list_deployment_logs"
	switch caller {
	case "none", "bad key", "expired", "revoked":
		return 401, 401
	case "other tenant":
		switch {
		case need == wide:
			return 403, 403
		case need == build:
			return ok(true)
		case strings.HasPrefix(op, "list_") && !about[op] || onOwn[op]:
			return 200, 299 // of its own
		}
		return 404, 404
	case "builder":
		return ok(need == build || op == "get_who_am_i")
	case "viewer":
		return ok(need == read || need == open)
	case "editor":
		return ok(need == read || need == open || need == write)
	case "admin":
		return ok(need != wide)
	case "deploy key":
		return ok(need == open || deployment && need != remove || op == "list_deployments")
	case "foreign deploy key":
		if deployment {
			return 404, 404
		}
		return ok(need == open || op == "list_deployments")
	case "listener key":
		return ok(op == "get_who_am_i" || need == listen)
	case "foreign listener key":
		if need == listen {
			return 404, 404
		}
		return ok(op == "get_who_am_i")
	case "org key without tenant":
		return ok(aboutAll[op])
	case "org viewer":
		return ok(need == read || need == open)
	}
	return ok(true)
}

func TestAuthorisationMatrix(t *testing.T) {
	t.Parallel()
	operations := newServer(t).operations()
	for id, op := range operations {
		_, covered := rights[id]
		if op.Secured != covered {
			t.Errorf("%s: secured = %v, in the matrix = %v; every operation has one place", id, op.Secured, covered)
			continue
		}
		if !op.Secured {
			continue
		}
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			tryCallers(t, id, op)
		})
	}
	for id := range rights {
		if _, ok := operations[id]; !ok {
			t.Errorf("the matrix names %s, which does not exist", id)
		}
	}
}

// tryCallers calls one operation as everybody. Those who are refused share a world, since they must not change it.
func tryCallers(t *testing.T, id string, op described) {
	right, shared := rights[id], newServer(t)
	sharedPath := shared.world(op.Method, op.Path)
	for _, caller := range callers {
		s, path := shared, sharedPath
		low, high := wanted(caller, right.need, id, op.Path)
		if low < 400 {
			s = newServer(t)
			path = s.world(op.Method, op.Path)
		}
		key, tenantID := s.credentialOf(caller)
		if got, text := s.rawIn(tenantID, key, op.Method, path, strings.Replace(right.body, "INTEGRATION", s.integration, 1)); got < low || got > high {
			t.Errorf("%s: %s %s = %d %s, want %d", caller, op.Method, path, got, text, low)
		}
	}
}

// world makes a deployment with an unfinished revision and fills the path's parameters.
func (s *server) world(method, path string) string {
	d := s.want(201, "POST", "/v2/deployments", createGit)
	id, revision := d["id"].(string), d["latest_revision_id"].(string)
	if strings.HasSuffix(path, "/push-token") {
		d = s.want(201, "POST", "/v2/deployments", createContainer)
		id = d["id"].(string)
	}
	s.deployKey = s.want(201, "POST", "/v2/api-keys", `{"deployment_id":"`+id+`"}`)["key"].(string)
	if strings.Contains(path, "{tracing_project_id}") {
		project := s.want(200, "GET", "/v2/tracing-projects", "")["resources"].([]any)[0].(map[string]any)
		path = strings.ReplaceAll(path, "{tracing_project_id}", project["id"].(string))
	}
	if strings.Contains(path, "{webhook_id}") {
		hook := "/v2/webhooks/" + s.want(201, "POST", "/v2/webhooks", `{"url":"https://example.com/hook"}`)["id"].(string)
		ping := s.want(201, "POST", hook+"/ping", "")["id"].(string)
		path = strings.NewReplacer("/v2/webhooks/{webhook_id}", hook, "{delivery_id}", ping).Replace(path)
	}
	east, west := s.listener("east", "null"), s.listener("west", "null")
	s.listenerKey, s.foreignListenerKey = s.listenerKeyOf(east), s.listenerKeyOf(west)
	path = strings.ReplaceAll(path, "{listener_id}", east)
	switch {
	case strings.Contains(path, "{integration_id}"):
		s.integration = s.want(201, "POST", "/v2/integrations", createGitea)["id"].(string)
		return strings.ReplaceAll(path, "{integration_id}", s.integration)
	case strings.HasSuffix(path, "/app-conversion"), strings.HasSuffix(path, "/installation-link"):
		s.integration = s.describeApp()
		if strings.HasSuffix(path, "/installation-link") {
			s.convertApp(s.integration)
		}
	case path == "/v2/deployments" && method == "DELETE":
		return path + "?deployment_ids=" + id
	case strings.HasSuffix(path, "/restore"), strings.HasSuffix(path, "/purge"):
		s.want(204, "DELETE", "/v2/deployments/"+id, "")
	}
	if strings.Contains(path, "{api_key_id}") {
		key := s.want(201, "POST", "/v2/api-keys", `{"role":"viewer"}`)["id"].(string)
		path = strings.ReplaceAll(path, "{api_key_id}", key)
	}
	tenantID := s.Admin.TenantID
	if strings.HasSuffix(path, "{tenant_id}") && method == "DELETE" {
		tenantID = s.want(201, "POST", "/v2/tenants", `{"name":"empty"}`)["id"].(string)
	}
	path = strings.NewReplacer("{tenant_id}", tenantID, "{deployment_id}", id, "{project_id}", id, "{revision_id}", revision).Replace(path)
	switch {
	case strings.HasSuffix(path, "/v2/deployment-logs"):
		return path + "?deployment_id=" + id
	case strings.HasSuffix(path, revision+"/logs"):
		return path + "?type=build"
	}
	return path
}

// keyOf makes the key of a caller of the matrix.
func (s *server) keyOf(caller string) string {
	key, _ := s.credentialOf(caller)
	return key
}

// credentialOf makes the key of a caller of the matrix, and the tenant that it sends along.
func (s *server) credentialOf(caller string) (key, tenantID string) {
	issue := func(tenant string, role slipway.Role) string {
		key, err := s.IssueKey(context.Background(), tenant, role)
		if err != nil {
			s.t.Fatal(err)
		}
		return key
	}
	made := func(body string) (string, string) {
		k := s.want(201, "POST", "/v2/api-keys", body)
		return k["key"].(string), k["id"].(string)
	}
	switch caller {
	case "none":
		return "", ""
	case "bad key":
		return "slw_nobody", ""
	case "expired":
		key, _ := made(`{"role":"admin","expires_at":"` + s.Now().Add(time.Hour).Format(time.RFC3339) + `"}`)
		s.Advance(time.Hour)
		return key, ""
	case "revoked":
		key, id := made(`{"role":"admin"}`)
		if got, text := s.raw(key, "GET", "/v2/whoami", ""); got != 200 {
			s.t.Fatalf("before the revocation: %d %s", got, text)
		}
		s.raw(s.Key, "DELETE", "/v2/api-keys/"+id, "")
		return key, ""
	case "admin":
		return issue(s.Admin.TenantID, slipway.RoleAdmin), ""
	case "deploy key":
		return s.deployKey, ""
	case "foreign deploy key":
		d := s.want(201, "POST", "/v2/deployments", strings.Replace(createGit, `"git"`, `"foreign"`, 1))
		key, _ := made(`{"deployment_id":"` + d["id"].(string) + `"}`)
		return key, ""
	case "listener key":
		return s.listenerKey, ""
	case "foreign listener key":
		return s.foreignListenerKey, ""
	case "org key without tenant":
		return issue("", slipway.RoleAdmin), ""
	case "org key":
		return issue("", slipway.RoleAdmin), s.Admin.TenantID
	case "org viewer":
		return issue("", slipway.RoleViewer), s.Admin.TenantID
	case "other tenant":
		return issue(s.NextID(), slipway.RoleAdmin), ""
	}
	return issue(s.Admin.TenantID, slipway.Role(caller)), ""
}

func TestAnotherTenantsThingLooksLikeNothing(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	id := s.want(201, "POST", "/v2/deployments", createGit)["id"].(string)
	other := s.keyOf("other tenant")
	unknown := "01900000-0000-7000-8000-999999999999"
	_, foreign := s.raw(other, "GET", "/v2/deployments/"+id, "")
	_, absent := s.raw(other, "GET", "/v2/deployments/"+unknown, "")
	if want := strings.ReplaceAll(string(absent), unknown, id); string(foreign) != want {
		t.Errorf("foreign = %s, want %s byte for byte", foreign, want)
	}
}

func TestTenantHeader(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	wide, err := s.IssueKey(t.Context(), "", slipway.RoleAdmin)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, key, tenant string
		want              slipway.Code
	}{
		{"own tenant", s.Key, s.Admin.TenantID, ""},
		{"another tenant", s.Key, s.NextID(), slipway.CodeForbidden},
		{"header alone", "", s.Admin.TenantID, slipway.CodeUnauthenticated},
		{"wide key without tenant", wide, "", slipway.CodeForbidden},
		{"wide key", wide, s.Admin.TenantID, ""},
		{"wide key, unknown tenant", wide, s.NextID(), slipway.CodeForbidden},
	} {
		_, err := s.Authenticate(t.Context(), control.Credential{Key: c.key, TenantID: c.tenant})
		if got := slipway.ErrorCode(err); got != c.want {
			t.Errorf("%s: %v, want code %q", c.name, err, c.want)
		}
		if c.name == "wide key without tenant" && !strings.Contains(err.Error(), "requires workspace specification") {
			t.Errorf("%v lacks the words clients look for", err)
		}
	}
}
