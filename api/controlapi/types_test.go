package controlapi_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// fullPatch has every field of a PATCH, each of the right type.
const fullPatch = `{"revision_source":"githost","display_name":"x","source_config":{"integration_id":"01900000-0000-7000-8000-000000000001",
"repo_url":"https://example.com/a","deployment_type":"dev","build_on_push":false,"custom_url":"https://x","listener_id":"01900000-0000-7000-8000-000000000001",
"listener_config":{"cluster_namespace":"a"},"install_command":"npm ci","build_command":"npm ci","template_id":"a","resource_spec":{"min_scale":1,"max_scale":1,
"cpu":1,"cpu_limit":1,"memory_mb":1,"memory_limit_mb":1,"queue_min_scale":1,"queue_max_scale":1,"queue_cpu":1,"queue_cpu_limit":1,"queue_memory_mb":1,
"queue_memory_limit_mb":1,"cache_cpu":1,"cache_cpu_limit":1,"cache_memory_mb":1,"cache_memory_limit_mb":1,"db_cpu":1,"db_cpu_limit":1,"db_memory_mb":1,
"db_memory_limit_mb":1,"db_storage_gi":1,"db_max_connections":1,"orchestrator_cpu":1,"orchestrator_cpu_limit":1,"orchestrator_memory_mb":1,
"orchestrator_memory_limit_mb":1,"orchestrator_min_scale":1,"orchestrator_max_scale":1,"executor_cpu":1,"executor_cpu_limit":1,"executor_memory_mb":1,
"executor_memory_limit_mb":1,"labels":{"a":"b"},"annotations":{"a":"b"},"service_account_name":"a","image_pull_secrets":[{"name":"a"}],
"volumes":[{"name":"a"}],"volume_mounts":[{"name":"a","mountPath":"/a","subPath":"a","mountPropagation":"None","readOnly":true,"subPathExpr":"a"}],
"sidecars":[{"name":"a","image":"a","imagePullPolicy":"Always","command":["a"],"args":["a"],"workingDir":"/","env":[{"name":"A","value":"b"}],
"resources":{"limits":{"cpu":"1"},"requests":{"cpu":"1"}},"volumeMounts":[{"name":"a","mountPath":"/a"}],"restartPolicy":"Always"}]}},
"source_revision_config":{"repo_ref":"main","agentgraph_config_path":"a","image_uri":"a","source_tarball_path":"a"},
"secrets":[{"name":"A","value":"b"}],"secret_references":[{"name":"A","secret_name":"b","secret_key":"c"}]}`

// TestAWrongTypeIsNamedByItsWholePlace gives every field of a PATCH, one at a time, a value of each wrong type.
func TestAWrongTypeIsNamedByItsWholePlace(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	id := s.want(201, "POST", "/v2/deployments", createGit)["id"].(string)
	var full any
	if err := json.Unmarshal([]byte(fullPatch), &full); err != nil {
		t.Fatal(err)
	}
	checked := 0
	walk(full, nil, func(loc []any, value any) {
		for _, wrong := range []any{"text", 1.5, true, []any{}, map[string]any{}} {
			if reflect.TypeOf(wrong) == reflect.TypeOf(value) || len(loc) == 0 {
				continue
			}
			body, _ := json.Marshal(with(full, loc, wrong))
			got, answer := s.call("PATCH", "/v2/deployments/"+id, string(body))
			if want := fmt.Sprint(append([]any{"body"}, loc...)); got != 422 || !strings.Contains(locs(answer), want) {
				t.Errorf("%v = %v: %d %v, want 422 at %s", loc, wrong, got, answer, want)
			}
			checked++
		}
	})
	if checked < 300 {
		t.Errorf("only %d values were tried", checked)
	}
}

// walk calls fn for every value below v with its place.
func walk(v any, loc []any, fn func([]any, any)) {
	fn(loc, v)
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			walk(member, append(append([]any{}, loc...), name), fn)
		}
	case []any:
		for i, element := range v {
			walk(element, append(append([]any{}, loc...), i), fn)
		}
	}
}

// with returns v with another value at loc.
func with(v any, loc []any, value any) any {
	if len(loc) == 0 {
		return value
	}
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, member := range v {
			out[name] = member
		}
		out[loc[0].(string)] = with(v[loc[0].(string)], loc[1:], value)
		return out
	case []any:
		out := append([]any{}, v...)
		out[loc[0].(int)] = with(v[loc[0].(int)], loc[1:], value)
		return out
	}
	return v
}

func locs(answer map[string]any) string {
	var out []string
	list, _ := answer["detail"].([]any)
	for _, d := range list {
		out = append(out, fmt.Sprint(d.(map[string]any)["loc"]))
	}
	return strings.Join(out, " ")
}

func TestBodiesThatAreNotWhatTheySeem(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	id := s.want(201, "POST", "/v2/deployments", createGit)["id"].(string)
	for name, body := range map[string]string{
		"a member twice":         `{"display_name":"a","display_name":"b"}`,
		"an inner member twice":  `{"source_config":{"build_on_push":true,"build_on_push":false}}`,
		"two source_configs":     `{"source_config":{"repo_url":5},"source_config":{}}`,
		"nested without end":     strings.Repeat(`{"source_config":`, 200) + "1" + strings.Repeat("}", 200),
		"nested and never ended": strings.Repeat("[", 20000),
		"cut off":                `{"display_name":"a`,
	} {
		got, answer := s.call("PATCH", "/v2/deployments/"+id, body)
		if text := fmt.Sprint(answer["detail"]); got != 422 || !strings.Contains(text, "json_invalid") {
			t.Errorf("%s: %d %.200s, want 422 json_invalid", name, got, text)
		}
	}
	if got, _ := s.call("PATCH", "/v2/deployments/"+id, `{"display_name":"`+strings.Repeat("a", 26<<20)+`"}`); got != 413 {
		t.Errorf("an oversized body: %d, want 413", got)
	}
}
