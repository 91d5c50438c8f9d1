package controlapi_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
)

const createContainer = `{"name":"boat","source":"internal_container","source_config":{},"source_revision_config":{},"secrets":[]}`

func digestOf(digit string) string { return "sha256:" + strings.Repeat(digit, 64) }

func TestPushToken(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	id := s.want(201, "POST", "/v2/deployments", createContainer)["id"].(string)
	out := s.want(200, "POST", "/v2/deployments/"+id+"/push-token", "")
	if got, want := out["registry_url"], "slipway.test/registry/"+s.Admin.TenantID; got != want {
		t.Errorf("registry_url = %v, want %s", got, want)
	}
	token := out["token"].(string)
	if got, err := s.AuthorizePush(token); err != nil || got != s.Admin.TenantID {
		t.Errorf("the token is good for %q, %v; want the tenant", got, err)
	}
	forged := strings.Replace(token, s.Admin.TenantID, s.NextID(), 1)
	for _, bad := range []string{"", "slp_", forged, token + "x", token[1:], s.Key, "slp_a.b.c", "slp_..", strings.Repeat(".", 9999)} {
		if tenant, err := s.AuthorizePush(bad); slipway.ErrorCode(err) != slipway.CodeUnauthenticated {
			t.Errorf("token %.80q is good for %q, %v; want CodeUnauthenticated", bad, tenant, err)
		}
	}
	s.Advance(time.Hour)
	if _, err := s.AuthorizePush(token); slipway.ErrorCode(err) != slipway.CodeUnauthenticated {
		t.Errorf("after an hour: %v, want CodeUnauthenticated", err)
	}
}

func TestPushTokenOfOtherSources(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	id := s.want(201, "POST", "/v2/deployments", createGit)["id"].(string)
	got, text := s.raw(s.Key, http.MethodPost, "/v2/deployments/"+id+"/push-token", "")
	if got != 400 || !strings.Contains(string(text), "only available for 'internal_docker' source deployments") {
		t.Errorf("push-token = %d %s, want 400 with the words clients look for", got, text)
	}
	if got, _ := s.raw(s.Key, http.MethodPost, "/v2/deployments/"+s.NextID()+"/push-token", ""); got != 404 {
		t.Errorf("push-token of nothing = %d, want 404", got)
	}
}

func TestAPushedImageIsPinned(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	id := s.want(201, "POST", "/v2/deployments", createContainer)["id"].(string)
	repository := "registry/" + s.Admin.TenantID + "/boat"
	patch := `{"revision_source":"internal_container","source_revision_config":{"image_uri":"slipway.test/` + repository + `:v1"}}`
	got, text := s.raw(s.Key, "PATCH", "/v2/deployments/"+id, patch)
	if got != 422 || !strings.Contains(string(text), `"loc":["body","source_revision_config","image_uri"]`) {
		t.Fatalf("an image that is not there = %d %s, want 422 at image_uri", got, text)
	}
	s.Images.Tag(s.Admin.TenantID, repository+":v1", digestOf("a"))
	s.want(200, "PATCH", "/v2/deployments/"+id, patch)
	s.Images.Tag(s.Admin.TenantID, repository+":v1", digestOf("b"))
	s.want(200, "PATCH", "/v2/deployments/"+id, `{"secrets":[]}`) // the tag has moved, what runs has not

	list := s.want(200, "GET", "/v2/deployments/"+id+"/revisions", "")["resources"].([]any)
	if len(list) != 2 {
		t.Fatalf("revisions = %v, want two", list)
	}
	for _, r := range list {
		r := r.(map[string]any)
		image, digest := r["source_revision_config"].(map[string]any)["image_uri"], r["source_config"].(map[string]any)["image_digest"]
		if image != "slipway.test/"+repository+"@"+digestOf("a") || digest != digestOf("a") || r["artifact_digest"] != digestOf("a") {
			t.Errorf("revision runs %v, %v, want the digest that the tag stood for at first", image, digest)
		}
	}
	state, err := s.Desired(t.Context(), "")
	if err != nil || len(state.Deployments) != 1 || state.Deployments[0].Candidate == nil {
		t.Fatalf("desired = %+v, %v; want the first revision as a candidate", state, err)
	}
	if got, want := state.Deployments[0].Candidate.Image, "slipway.test/"+repository+"@"+digestOf("a"); got != want {
		t.Errorf("the data plane is to run %q, want %q", got, want)
	}
	s.want(200, "PATCH", "/v2/deployments/"+id, patch)
	if got := s.want(200, "GET", "/v2/deployments/"+id, "")["source_revision_config"].(map[string]any)["image_uri"]; got != "slipway.test/"+repository+"@"+digestOf("b") {
		t.Errorf("image_uri = %v, want what the tag stands for now", got)
	}
	if got := list[1].(map[string]any); got["status"] != "AWAITING_DEPLOY" {
		t.Errorf("status = %v, want AWAITING_DEPLOY: nothing is built", got["status"])
	}
}

func TestCreateWithAnImage(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	create := func(image string) (int, []byte) {
		return s.raw(s.Key, "POST", "/v2/deployments", strings.Replace(createContainer, `"source_revision_config":{}`, `"source_revision_config":{"image_uri":"`+image+`"}`, 1))
	}
	s.Images.Tag(s.Admin.TenantID, "acme/boat:v1", digestOf("c"))
	for image, want := range map[string]int{"host.test/acme/boat:v2": 422, "host.test/Acme": 422, "https://host.test/acme/boat:v1": 422, "host.test/acme/boat:v1": 201} {
		if got, text := create(image); got != want {
			t.Errorf("create with %q = %d %s, want %d", image, got, text, want)
		}
	}
}
