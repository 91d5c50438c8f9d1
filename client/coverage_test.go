package client_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/client"
)

const id = "0190a0a0-0000-7000-8000-000000000000"

// call makes one call of the client; at is the address of the server.
type call func(ctx context.Context, c *client.Client, at string) error

// methods says, for each operation of the description, which method of the client makes it. A new operation comes with a new
// line here.
var methods = map[string]call{
	"ok": func(ctx context.Context, c *client.Client, _ string) error { return c.OK(ctx) },
	"info": func(ctx context.Context, c *client.Client, _ string) error {
		_, err := c.Info(ctx)
		return err
	},
	"get_telemetry_status": func(ctx context.Context, c *client.Client, _ string) error {
		_, err := c.TelemetryStatus(ctx)
		return err
	},
	"preview_telemetry": func(ctx context.Context, c *client.Client, _ string) error {
		_, _, err := c.TelemetryPreview(ctx, 5)
		return err
	},
	"claim_build": func(ctx context.Context, c *client.Client, _ string) error {
		_, err := c.ClaimBuild(ctx, "b", 0)
		return err
	},
	"renew_build": func(ctx context.Context, c *client.Client, _ string) error {
		return c.RenewBuild(ctx, id, client.BuildLease{})
	},
	"append_build_logs": func(ctx context.Context, c *client.Client, _ string) error {
		return c.AppendBuildLogs(ctx, id, client.BuildLease{}, nil)
	},
	"find_missing_blobs": func(ctx context.Context, c *client.Client, _ string) error {
		_, err := c.FindMissingBlobs(ctx, id, client.BuildLease{}, nil)
		return err
	},
	"complete_build": func(ctx context.Context, c *client.Client, _ string) error {
		return c.CompleteBuild(ctx, id, client.BuildCompletion{})
	},
	"fail_build": func(ctx context.Context, c *client.Client, _ string) error {
		return c.FailBuild(ctx, id, client.BuildLease{}, "")
	},
	"get_blob": func(ctx context.Context, c *client.Client, _ string) error {
		body, err := c.GetBlob(ctx, "/blobs/x")
		if err == nil {
			err = body.Close()
		}
		return err
	},
	"put_blob": func(ctx context.Context, c *client.Client, _ string) error {
		return c.PutBlob(ctx, "/blobs/x", strings.NewReader(""))
	},
	"collect_garbage": func(ctx context.Context, c *client.Client, _ string) error {
		_, err := c.Collect(ctx, client.CollectionRequest{})
		return err
	},
	"diff_revisions": func(ctx context.Context, c *client.Client, _ string) error {
		_, err := c.DiffRevisions(ctx, id, id, "")
		return err
	},
	"list_deployments": func(ctx context.Context, c *client.Client, _ string) error {
		_, _, err := c.FindDeployments(ctx, client.DeploymentFilter{})
		return err
	},
	"create_deployment": func(ctx context.Context, c *client.Client, _ string) error {
		_, err := c.CreateDeployment(ctx, client.DeploymentCreate{})
		return err
	},
	"get_deployment": func(ctx context.Context, c *client.Client, _ string) error {
		_, err := c.Deployment(ctx, id)
		return err
	},
	"patch_deployment": func(ctx context.Context, c *client.Client, _ string) error {
		_, err := c.PatchDeployment(ctx, id, client.DeploymentPatch{})
		return err
	},
	"delete_deployment": func(ctx context.Context, c *client.Client, _ string) error { return c.DeleteDeployment(ctx, id) },
	"delete_deployments": func(ctx context.Context, c *client.Client, _ string) error {
		_, err := c.DeleteDeployments(ctx, []string{id})
		return err
	},
	"restore_deployment": func(ctx context.Context, c *client.Client, _ string) error {
		_, err := c.RestoreDeployment(ctx, id)
		return err
	},
	"purge_deployment": func(ctx context.Context, c *client.Client, _ string) error { return c.PurgeDeployment(ctx, id) },
	"change_deployment_tier": func(ctx context.Context, c *client.Client, _ string) error {
		_, err := c.ChangeDeploymentTier(ctx, id, "DEDICATED_S")
		return err
	},
	"change_resource_tiers": func(ctx context.Context, c *client.Client, _ string) error {
		_, err := c.ChangeResourceTiers(ctx, id, "DEDICATED_S", "")
		return err
	},
	"count_free_deployments": func(ctx context.Context, c *client.Client, _ string) error {
		_, err := c.FreeCount(ctx)
		return err
	},
	"list_revisions": func(ctx context.Context, c *client.Client, _ string) error {
		_, _, err := c.FindRevisions(ctx, id, client.RevisionFilter{})
		return err
	},
	"create_revision": func(ctx context.Context, c *client.Client, _ string) error {
		_, err := c.CreateRevision(ctx, id, client.DeploymentPatch{})
		return err
	},
	"get_revision": func(ctx context.Context, c *client.Client, _ string) error {
		_, err := c.Revision(ctx, id, id)
		return err
	},
	"redeploy_revision": func(ctx context.Context, c *client.Client, _ string) error {
		_, err := c.Redeploy(ctx, id, id)
		return err
	},
	"interrupt_revision": func(ctx context.Context, c *client.Client, _ string) error {
		_, err := c.Interrupt(ctx, id, id)
		return err
	},
	"list_revision_events": func(ctx context.Context, c *client.Client, _ string) error {
		_, err := c.RevisionEvents(ctx, id, id)
		return err
	},
	"get_deployment_logs": func(ctx context.Context, c *client.Client, _ string) error {
		_, _, err := c.Logs(ctx, client.LogQuery{DeploymentID: id})
		return err
	},
	"get_revision_logs": func(ctx context.Context, c *client.Client, _ string) error {
		_, _, err := c.Logs(ctx, client.LogQuery{DeploymentID: id, RevisionID: id, Build: true})
		return err
	},
	"list_deployment_logs": func(ctx context.Context, c *client.Client, _ string) error {
		_, _, err := c.DeploymentLogs(ctx, client.LogQuery{DeploymentID: id})
		return err
	},
	"read_project_build_logs": func(ctx context.Context, c *client.Client, _ string) error {
		_, _, err := c.ProjectLogs(ctx, client.LogQuery{DeploymentID: id, RevisionID: id, Build: true})
		return err
	},
	"read_project_revision_deploy_logs": func(ctx context.Context, c *client.Client, _ string) error {
		_, _, err := c.ProjectLogs(ctx, client.LogQuery{DeploymentID: id, RevisionID: id})
		return err
	},
	"read_project_deploy_logs": func(ctx context.Context, c *client.Client, _ string) error {
		_, _, err := c.ProjectLogs(ctx, client.LogQuery{DeploymentID: id})
		return err
	},
	"create_upload_url": func(ctx context.Context, c *client.Client, _ string) error {
		_, _, err := c.UploadURL(ctx, id)
		return err
	},
	"put_upload": func(ctx context.Context, c *client.Client, at string) error {
		return c.Upload(ctx, at+"/uploads/"+id+"?expires=1&signature=x", strings.NewReader("x"), 1)
	},
	"create_push_token": func(ctx context.Context, c *client.Client, _ string) error {
		_, err := c.PushToken(ctx, id)
		return err
	},
	"list_templates": func(ctx context.Context, c *client.Client, _ string) error {
		_, _, err := c.Templates(ctx, 1, 0)
		return err
	},
	"list_tracing_projects": func(ctx context.Context, c *client.Client, _ string) error {
		_, _, err := c.TracingProjects(ctx, 1, 0)
		return err
	},
	"get_tracing_project": func(ctx context.Context, c *client.Client, _ string) error {
		_, err := c.TracingProject(ctx, id)
		return err
	},
}

// webhookMethods are those about webhooks of events.
var webhookMethods = map[string]call{
	"list_webhooks": func(ctx context.Context, c *client.Client, _ string) error {
		_, _, err := c.Webhooks(ctx, 1, 0)
		return err
	},
	"create_webhook": func(ctx context.Context, c *client.Client, _ string) error {
		_, err := c.CreateWebhook(ctx, client.WebhookChange{})
		return err
	},
	"get_webhook": func(ctx context.Context, c *client.Client, _ string) error {
		_, err := c.Webhook(ctx, id)
		return err
	},
	"patch_webhook": func(ctx context.Context, c *client.Client, _ string) error {
		_, err := c.PatchWebhook(ctx, id, client.WebhookChange{})
		return err
	},
	"delete_webhook": func(ctx context.Context, c *client.Client, _ string) error { return c.DeleteWebhook(ctx, id) },
	"rotate_webhook_secret": func(ctx context.Context, c *client.Client, _ string) error {
		_, err := c.RotateWebhook(ctx, id)
		return err
	},
	"ping_webhook": func(ctx context.Context, c *client.Client, _ string) error {
		_, err := c.PingWebhook(ctx, id)
		return err
	},
	"list_webhook_deliveries": func(ctx context.Context, c *client.Client, _ string) error {
		_, _, err := c.Deliveries(ctx, id, "", 1, 0)
		return err
	},
	"redeliver_webhook": func(ctx context.Context, c *client.Client, _ string) error {
		_, err := c.Redeliver(ctx, id, id)
		return err
	},
}

// listenerMethods are those about listeners and their protocol.
var listenerMethods = map[string]call{
	"list_listeners": func(ctx context.Context, c *client.Client, _ string) error {
		_, _, err := c.Listeners(ctx, 1, 0)
		return err
	},
	"create_listener": func(ctx context.Context, c *client.Client, _ string) error {
		_, err := c.CreateListener(ctx, client.ListenerCreate{})
		return err
	},
	"get_listener": func(ctx context.Context, c *client.Client, _ string) error {
		_, err := c.Listener(ctx, id)
		return err
	},
	"patch_listener": func(ctx context.Context, c *client.Client, _ string) error {
		_, err := c.PatchListener(ctx, id, client.ListenerPatch{})
		return err
	},
	"delete_listener": func(ctx context.Context, c *client.Client, _ string) error { return c.DeleteListener(ctx, id) },
	"get_listener_state": func(ctx context.Context, c *client.Client, _ string) error {
		_, err := c.ListenerState(ctx, id, "", 0)
		return err
	},
	"report_listener_status": func(ctx context.Context, c *client.Client, _ string) error {
		return c.ReportListenerStatus(ctx, id, client.ListenerReport{})
	},
	"append_listener_logs": func(ctx context.Context, c *client.Client, _ string) error {
		_, err := c.AppendListenerLogs(ctx, id, nil)
		return err
	},
	"put_listener_metrics": func(ctx context.Context, c *client.Client, _ string) error {
		_, err := c.PutListenerMetrics(ctx, id, nil)
		return err
	},
	"get_deployment_metrics": func(ctx context.Context, c *client.Client, _ string) error {
		_, _, err := c.DeploymentMetrics(ctx, id)
		return err
	},
}

// accessMethods are those about tenants, keys and the audit log.
var accessMethods = map[string]call{
	"get_who_am_i": func(ctx context.Context, c *client.Client, _ string) error {
		_, err := c.WhoAmI(ctx)
		return err
	},
	"list_tenants": func(ctx context.Context, c *client.Client, _ string) error {
		_, _, err := c.Tenants(ctx, "", 1, 0)
		return err
	},
	"create_tenant": func(ctx context.Context, c *client.Client, _ string) error {
		_, err := c.CreateTenant(ctx, "x")
		return err
	},
	"get_tenant": func(ctx context.Context, c *client.Client, _ string) error {
		_, err := c.Tenant(ctx, id)
		return err
	},
	"patch_tenant": func(ctx context.Context, c *client.Client, _ string) error {
		_, err := c.RenameTenant(ctx, id, "x")
		return err
	},
	"delete_tenant": func(ctx context.Context, c *client.Client, _ string) error { return c.DeleteTenant(ctx, id) },
	"list_api_keys": func(ctx context.Context, c *client.Client, _ string) error {
		_, _, err := c.APIKeys(ctx, client.APIKeyFilter{})
		return err
	},
	"create_api_key": func(ctx context.Context, c *client.Client, _ string) error {
		_, err := c.CreateAPIKey(ctx, client.APIKeyCreate{})
		return err
	},
	"rotate_api_key": func(ctx context.Context, c *client.Client, _ string) error {
		_, err := c.RotateAPIKey(ctx, id, client.APIKeyRotate{})
		return err
	},
	"revoke_api_key": func(ctx context.Context, c *client.Client, _ string) error { return c.RevokeAPIKey(ctx, id) },
	"list_audit_logs": func(ctx context.Context, c *client.Client, _ string) error {
		_, _, err := c.AuditLogs(ctx, client.AuditFilter{}, 1, "")
		return err
	},
	"export_audit_logs": func(ctx context.Context, c *client.Client, _ string) error {
		return c.ExportAuditLogs(ctx, client.AuditFilter{}, "csv", io.Discard)
	},
	"list_audit_logs_ocsf": func(ctx context.Context, c *client.Client, _ string) error {
		_, _, err := c.AuditActivities(ctx, time.Time{}, time.Time{}, "", 1, "")
		return err
	},
}

var tables = []map[string]call{methods, listenerMethods, webhookMethods, accessMethods, integrationMethods}

// method looks a call up.
func method(operation string) (call, bool) {
	for _, table := range tables {
		if c, ok := table[operation]; ok {
			return c, true
		}
	}
	return nil, false
}

// same are operations that another one of the table does by another path.
var same = map[string]string{"create_upload_url_unversioned": "create_upload_url"}

// others are operations that are not for this client: git hosts call them.
var others = []string{"deliver_githost_webhook"}

// shapes says which type of the client stands for which schema of the description.
var shapes = map[string]any{
	"Deployment": client.Deployment{}, "SourceConfig": client.SourceConfig{}, "SourceRevisionConfig": client.SourceRevisionConfig{},
	"DeploymentCreateRequest": client.DeploymentCreate{}, "DeploymentPatchRequest": client.DeploymentPatch{},
	"Secret": client.Secret{}, "SecretReference": client.SecretReference{}, "ListenerConfig": client.ListenerConfig{},
	"Revision": client.Revision{}, "RevisionEvent": client.RevisionEvent{}, "LogEntry": client.LogEntry{},
	"ResourceSpec": client.ResourceSpec{}, "Volume": client.Volume{}, "VolumeMount": client.VolumeMount{},
	"Container": client.Container{}, "EnvVar": client.EnvVar{}, "Template": client.Template{},
	"GithostIntegration": client.GithostIntegration{}, "GithostRepository": client.Repository{}, "Integration": client.Integration{},
	"TracingProject": client.TracingProject{}, "PushToken": client.PushToken{}, "Info": client.Info{},
	"Listener": client.Listener{}, "ComputeConfig": client.ComputeConfig{}, "ListenerCreateRequest": client.ListenerCreate{},
	"ListenerPatchRequest": client.ListenerPatch{}, "ListenerState": client.ListenerState{}, "DesiredDeployment": client.DesiredDeployment{},
	"DesiredRevision": client.DesiredRevision{}, "ListenerReport": client.ListenerReport{}, "ListenerLog": client.ListenerLog{},
	"DeploymentMetrics": client.DeploymentMetrics{}, "Accepted": client.Accepted{},
	"Tenant": client.Tenant{}, "WhoAmI": client.WhoAmI{}, "APIKey": client.APIKey{}, "APIKeyCreateRequest": client.APIKeyCreate{},
	"APIKeyRotateRequest": client.APIKeyRotate{}, "AuditLogEntry": client.AuditEntry{}, "AuditChange": client.AuditChange{},
}

type description struct {
	Paths map[string]map[string]struct {
		OperationID string `json:"operationId"`
	}
	Components struct {
		Schemas map[string]struct{ Properties map[string]any }
	}
}

func described(t *testing.T) description {
	t.Helper()
	raw, err := os.ReadFile("../openapi/control.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc description
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// listener is a server that remembers the last request and answers an empty object, or list where one is described.
type listener struct {
	mu   sync.Mutex
	last string
}

func (l *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = r.Method + " " + r.URL.Path
	if strings.HasSuffix(r.URL.Path, "/install") || strings.HasSuffix(r.URL.Path, "/repos") {
		_, _ = w.Write([]byte("[]"))
		return
	}
	_, _ = w.Write([]byte("{}"))
}

// TestEveryOperationHasAMethod makes each call and compares what arrives with what is described.
func TestEveryOperationHasAMethod(t *testing.T) {
	t.Parallel()
	heard := &listener{}
	srv := httptest.NewServer(heard)
	defer srv.Close()
	c := client.New(srv.URL, "key")
	var known []string
	for path, item := range described(t).Paths {
		for verb, op := range item {
			known = append(known, op.OperationID)
			if _, ok := method(same[op.OperationID]); ok || slices.Contains(others, op.OperationID) {
				continue
			}
			call, ok := method(op.OperationID)
			if !ok {
				t.Errorf("no method of the client makes %s (%s %s)", op.OperationID, strings.ToUpper(verb), path)
				continue
			}
			if err := call(t.Context(), c, srv.URL); err != nil {
				t.Errorf("%s: %v", op.OperationID, err)
			}
			if want := matcher(verb, path); !want.MatchString(heard.last) {
				t.Errorf("%s makes %s, want %s", op.OperationID, heard.last, want)
			}
		}
	}
	for _, table := range tables {
		for name := range table {
			if !slices.Contains(known, name) {
				t.Errorf("the table names %s, which is not described", name)
			}
		}
	}
}

var parameter = regexp.MustCompile(`\\\{[a-z_]+\\\}`)

func matcher(method, path string) *regexp.Regexp {
	return regexp.MustCompile("^" + strings.ToUpper(method) + " " + parameter.ReplaceAllString(regexp.QuoteMeta(path), "[^/]+") + "$")
}

// TestShapesHaveEveryField holds that the client can read and send whatever is described, but what is marked "do not use".
func TestShapesHaveEveryField(t *testing.T) {
	t.Parallel()
	doc := described(t)
	for name, shape := range shapes {
		schema, ok := doc.Components.Schemas[name]
		if !ok {
			t.Errorf("there is no schema %s", name)
		}
		fields := members(reflect.TypeOf(shape))
		for property := range schema.Properties {
			if strings.HasPrefix(property, "orchestrator_") || strings.HasPrefix(property, "executor_") {
				continue
			}
			if !slices.Contains(fields, property) {
				t.Errorf("%s has no field for %q", reflect.TypeOf(shape), property)
			}
		}
	}
}

func members(shape reflect.Type) (names []string) {
	for i := range shape.NumField() {
		name, _, _ := strings.Cut(shape.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

func TestIdempotencyKeyIsSent(t *testing.T) {
	t.Parallel()
	got := make(chan string, 2)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- r.Header.Get("Idempotency-Key")
		_, _ = w.Write([]byte("{}"))
	}))
	defer srv.Close()
	c := client.New(srv.URL, "key")
	for _, ctx := range []context.Context{client.WithIdempotencyKey(t.Context(), "once"), t.Context()} {
		if _, err := c.CreateDeployment(ctx, client.DeploymentCreate{}); err != nil {
			t.Fatal(err)
		}
	}
	if first, second := <-got, <-got; first != "once" || second != "" {
		t.Errorf("keys %q and %q, want once and none", first, second)
	}
}
