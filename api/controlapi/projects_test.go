package controlapi_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestTracingProjectsComeAndGoWithTheirDeployments(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	kept := s.want(201, "POST", "/v2/deployments", createGit)["id"].(string)
	gone := s.want(201, "POST", "/v2/deployments", createSource)["id"].(string)
	list := s.want(200, "GET", "/v2/tracing-projects?limit=1", "")
	first := list["resources"].([]any)[0].(map[string]any)
	if first["name"] != "desk" || first["deployment_id"] != gone || list["offset"] != 1.0 {
		t.Errorf("first page = %v, want the project of desk and offset 1", list)
	}
	rest := s.want(200, "GET", "/v2/tracing-projects?limit=1&offset=1", "")["resources"].([]any)
	if len(rest) != 1 || rest[0].(map[string]any)["deployment_id"] != kept {
		t.Errorf("second page = %v, want the project of git", rest)
	}
	one := s.want(200, "GET", "/v2/tracing-projects/"+first["id"].(string), "")
	if fmt.Sprint(one) != fmt.Sprint(first) {
		t.Errorf("get = %v, want %v", one, first)
	}

	s.raw(s.Key, "DELETE", "/v2/deployments/"+kept, "")
	named := s.want(200, "GET", "/v2/tracing-projects?name=git", "")["resources"].([]any)
	if len(named) != 1 || named[0].(map[string]any)["deployment_id"] != nil {
		t.Errorf("after the deletion = %v, want the project without a deployment", named)
	}
}

// Whoever thinks of the project only at the second or at the last DELETE is heard too.
func TestATracingProjectGoesWhenItIsAskedForLate(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for name, calls := range map[string][]string{
		"at once":           {"?delete_tracing_project=true", "?force=true"},
		"with a repetition": {"", "?delete_tracing_project=true", "?force=true"},
		"with the force":    {"", "?force=true&delete_tracing_project=true"},
	} {
		id := s.want(201, "POST", "/v2/deployments", createGit)["id"].(string)
		for _, call := range calls {
			if status, text := s.raw(s.Key, "DELETE", "/v2/deployments/"+id+call, ""); status != 204 {
				t.Fatalf("%s: DELETE %q = %d %s", name, call, status, text)
			}
		}
		if left := s.want(200, "GET", "/v2/tracing-projects?name=git", "")["resources"].([]any); len(left) != 0 {
			t.Errorf("%s: %v is left, want nothing", name, left)
		}
	}
}

func TestForeignTracingProjectLooksLikeNothing(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.want(201, "POST", "/v2/deployments", createGit)
	id := s.want(200, "GET", "/v2/tracing-projects", "")["resources"].([]any)[0].(map[string]any)["id"].(string)
	other := s.keyOf("other tenant")
	unknown := "01900000-0000-7000-8000-999999999999"
	status, foreign := s.raw(other, "GET", "/v2/tracing-projects/"+id, "")
	_, absent := s.raw(other, "GET", "/v2/tracing-projects/"+unknown, "")
	if want := strings.ReplaceAll(string(absent), unknown, id); status != 404 || string(foreign) != want {
		t.Errorf("foreign = %d %s, want 404 %s byte for byte", status, foreign, want)
	}
	if status, list := s.callAs(other, "GET", "/v2/tracing-projects", ""); status != 200 || len(list["resources"].([]any)) != 0 {
		t.Errorf("list of another tenant = %d %v, want none", status, list)
	}
}

func TestTemplates(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	list := s.want(200, "GET", "/v2/templates?limit=1&offset=1", "")
	if got := fmt.Sprint(list["resources"], list["offset"]); got != "[map[description:Prints Y. id:chat-y language:python title:Y]] 2" {
		t.Errorf("templates = %s", got)
	}
	if list := s.want(200, "GET", "/v2/templates?offset=99", ""); len(list["resources"].([]any)) != 0 {
		t.Errorf("templates behind the end = %v", list)
	}
	unknown := `{"name":"x","source":"internal_template","source_config":{"template_id":"chat-z"},"source_revision_config":{},"secrets":[]}`
	got, text := s.raw(s.Key, "POST", "/v2/deployments", unknown)
	if got != 422 || !strings.Contains(string(text), `"loc":["body","source_config","template_id"]`) || !strings.Contains(string(text), "chat-x, chat-y") {
		t.Errorf("an unknown template = %d %s, want 422 that lists those there are", got, text)
	}
}
