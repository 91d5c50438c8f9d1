package controlapi_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A filter that selects wrongly, or not at all, is worse than a refusal.
func TestFiltersSelectOrRefuse(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	git := s.want(201, "POST", "/v2/deployments", createGit)
	one := "/v2/deployments/" + git["id"].(string)
	for query, want := range map[string]int{
		"?remote_reconciled=true": 0, "?remote_reconciled=false": 1, "?tag_value_ids=0": 0, "?tag_value_ids=": 1,
		"?status=AWAITING_DATABASE,READY": 1, "?status=READY": 0, "?deployment_type=dev": 0, "?deployment_ids=" + git["id"].(string): 1,
	} {
		if got := len(s.want(200, "GET", "/v2/deployments"+query, "")["resources"].([]any)); got != want {
			t.Errorf("GET /v2/deployments%s lists %d, want %d", query, got, want)
		}
	}
	if got := len(s.want(200, "GET", one+"/revisions?remote_reconciled=true", "")["resources"].([]any)); got != 0 {
		t.Errorf("%d revisions of listeners elsewhere, want none", got)
	}
	for _, path := range []string{
		"/v2/deployments?status=FOO", "/v2/deployments?deployment_ids=nope", "/v2/deployments?deployment_type=big",
		"/v2/deployments?remote_reconciled=x", one + "/revisions?status=READY", one + "/revisions?remote_reconciled=x",
		one + "/logs?run_id=x",
	} {
		s.want(422, "GET", path, "")
	}
}

func TestLogsOfARun(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	git := s.want(201, "POST", "/v2/deployments", createGit)
	page := s.want(200, "GET", "/v2/deployments/"+git["id"].(string)+"/logs?run_id="+git["id"].(string), "")
	if got := len(page["logs"].([]any)); got != 0 {
		t.Errorf("%d lines of a run that never was", got)
	}
}

func TestForceIsForTheDeleted(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	one := "/v2/deployments/" + s.want(201, "POST", "/v2/deployments", createGit)["id"].(string)
	s.want(422, "DELETE", one+"?force=maybe", "")
	s.want(400, "DELETE", one+"?force=true", "")
	s.want(204, "DELETE", one, "")
	s.want(204, "DELETE", one, "")
	s.want(409, "POST", "/v2/deployments", createGit)
	s.want(204, "DELETE", one+"?force=true", "")
	s.want(201, "POST", "/v2/deployments", createGit)
	s.want(404, "DELETE", one, "")
}

func TestWrongMethodIsSaid(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for call, allow := range map[string]string{"PUT /v2/deployments": "GET, POST, DELETE", "POST /ok": "GET", "DELETE /info": "GET", "GET /uploads/x": "PUT"} {
		method, path, _ := strings.Cut(call, " ")
		rec := httptest.NewRecorder()
		s.handler.ServeHTTP(rec, httptest.NewRequest(method, path, nil))
		if rec.Code != http.StatusMethodNotAllowed || rec.Header().Get("Allow") != allow {
			t.Errorf("%s = %d, Allow %q; want 405, %q", call, rec.Code, rec.Header().Get("Allow"), allow)
		}
	}
	s.want(404, "GET", "/nothing", "")
}
