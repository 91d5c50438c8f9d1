package control_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/control"
	"github.com/slipway-dev/slipway/control/controltest"
)

// told returns the changes of the newest entry of an operation, a field a line, and that entry.
func (w *world) told(operation string) (map[string]string, slipway.AuditEntry) {
	w.t.Helper()
	found, err := w.Audit(w.t.Context(), w.Admin, slipway.AuditQuery{Operation: operation, Limit: 1})
	if err != nil || len(found) != 1 {
		w.t.Fatalf("entries of %s = %+v, %v; want one", operation, found, err)
	}
	got := map[string]string{}
	for _, c := range found[0].Changes {
		before, after := string(c.Before), string(c.After)
		if before == "" {
			before = "null"
		}
		if after == "" {
			after = "null"
		}
		got[c.Field] = before + " -> " + after
	}
	return got, found[0]
}

// tells checks the newest entry of an operation: these fields, and with "" that one is told of whatever its values are.
func (w *world) tells(operation string, want map[string]string) {
	w.t.Helper()
	got, _ := w.told(operation)
	for field, change := range want {
		if g, ok := got[field]; !ok || change != "" && g != change {
			w.t.Errorf("%s tells of %s: %q, want %q; all: %v", operation, field, g, change, got)
		}
	}
}

func TestEveryChangeOfADeploymentIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.create()
	w.tells("create_deployment", map[string]string{
		"name": `null -> "desk"`, "source_config.repo_url": `null -> "https://example.com/a/b"`, "latest_revision_id": "",
		"secrets.TOKEN": `null -> "` + slipway.MaskedSecret + `"`,
	})
	first := w.deploy()
	w.tells("switch_revision", map[string]string{"active_revision_id": fmt.Sprintf("null -> %q", first)})
	w.patch(d.ID)
	second := w.deploy()
	w.tells("switch_revision", map[string]string{"active_revision_id": fmt.Sprintf("%q -> %q", first, second)})
	redeployed := w.redeploy(d.ID, first)
	w.tells("update_deployment", map[string]string{"latest_revision_id": fmt.Sprintf("%q -> %q", second, redeployed)})
	if _, err := w.Interrupt(t.Context(), w.Admin, d.ID, redeployed); err != nil {
		t.Fatal(err)
	}
	w.tells("update_deployment", map[string]string{"revision_status": `"AWAITING_DEPLOY" -> "INTERRUPTED"`})
	if err := w.Delete(t.Context(), w.Admin, d.ID, control.Deletion{}); err != nil {
		t.Fatal(err)
	}
	w.tells("delete_deployment", map[string]string{"status": `"READY" -> "AWAITING_DELETE"`, "deleted_at": "", "purge_at": ""})
	if _, err := w.Restore(t.Context(), w.Admin, d.ID); err != nil {
		t.Fatal(err)
	}
	w.tells("restore_deployment", map[string]string{"status": "", "deleted_at": "", "purge_at": ""})
}

func TestEveryChangeOfAnIntegrationIsTold(t *testing.T) {
	t.Parallel()
	w := newWorldOn(t, controltest.NewStore())
	i, err := w.CreateIntegration(t.Context(), w.Admin, slipway.IntegrationCreate{
		Kind: slipway.HostGitea, Name: "home", HostURL: "https://git.example.com", Secrets: slipway.IntegrationSecrets{Token: canary, WebhookSecret: strings.Repeat("s", 16)},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.tells("create_integration", map[string]string{
		"name": `null -> "home"`, "host_url": `null -> "https://git.example.com"`, "credentials": `null -> "` + slipway.MaskedSecret + `"`,
	})
	if err := w.DeleteIntegration(t.Context(), w.Admin, i.ID); err != nil {
		t.Fatal(err)
	}
	w.tells("delete_integration", map[string]string{"name": `"home" -> null`, "credentials": `"` + slipway.MaskedSecret + `" -> null`})
}

func TestEveryChangeOfAListenerIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l, err := w.CreateListener(t.Context(), w.Admin, slipway.ListenerCreate{ComputeType: "cluster", ComputeID: "c1", Namespaces: &[]string{"a"}})
	if err != nil {
		t.Fatal(err)
	}
	w.tells("create_listener", map[string]string{"compute_id": `null -> "c1"`, "compute_config.cluster_namespaces": `null -> ["a"]`})
	version := "1.2.3"
	if _, err := w.PatchListener(t.Context(), w.Admin, l.ID, slipway.ListenerPatch{Version: &version}); err != nil {
		t.Fatal(err)
	}
	w.tells("update_listener", map[string]string{"version": `null -> "1.2.3"`})
	if got, _ := w.told("update_listener"); len(got) != 1 {
		t.Errorf("update_listener tells %v, want the version alone", got)
	}
	if err := w.DeleteListener(t.Context(), w.Admin, l.ID); err != nil {
		t.Fatal(err)
	}
	w.tells("delete_listener", map[string]string{"compute_id": `"c1" -> null`})
}

func TestEveryChangeOfAWebhookIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url, off := "https://example.com/hook", false
	hook, _, err := w.CreateWebhook(t.Context(), w.Admin, slipway.WebhookChange{URL: &url})
	if err != nil {
		t.Fatal(err)
	}
	w.tells("create_webhook", map[string]string{"url": `null -> "https://example.com/hook"`, "enabled": "null -> true"})
	if _, err := w.PatchWebhook(t.Context(), w.Admin, hook.ID, slipway.WebhookChange{Enabled: &off}); err != nil {
		t.Fatal(err)
	}
	w.tells("update_webhook", map[string]string{"enabled": "true -> false"})
	if _, _, err := w.RotateWebhook(t.Context(), w.Admin, hook.ID); err != nil {
		t.Fatal(err)
	}
	mask := `"` + slipway.MaskedSecret + `"`
	w.tells("rotate_webhook_secret", map[string]string{"secrets.signing": mask + " -> " + mask})
	if err := w.DeleteWebhook(t.Context(), w.Admin, hook.ID); err != nil {
		t.Fatal(err)
	}
	w.tells("delete_webhook", map[string]string{"url": `"https://example.com/hook" -> null`, "enabled": "false -> null"})
}

func (w *world) redeploy(deployment, revision string) string {
	w.t.Helper()
	d, err := w.Redeploy(w.t.Context(), w.Admin, deployment, revision)
	return must(w.t, d, err).LatestRevisionID
}
