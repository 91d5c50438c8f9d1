package agentapi_test

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/agent"
	workerfake "github.com/slipway-dev/slipway/worker/fake"
)

// proof is a call that succeeds, and a part of its answer. In body and query, THREAD, RUN, CRON, ASSISTANT, CHECKPOINT and
// NEW stand for ids of things that are there, NEW for one that is not.
type proof struct{ query, body, want string }

// proofs holds one for every operation of the description; a new operation comes with a new line.
var proofs = map[string]proof{
	"ok":                           {"?check_db=1", "", `200 {"ok":true,"services":{"database":"ok","workers":"ok"}}`},
	"info":                         {"", "", `"flags":{"assistants":true,"crons":true,"langsmith":false,"langsmith_tracing_replicas":true,"stream_namespaces":true,"strict_resume":true}`},
	"metrics":                      {"?format=json", "", `"queue":{"pending":`},
	"openapi":                      {"", "", `"openapi": "3.1.0"`},
	"docs":                         {"", "", `<!doctype html>`},
	"load_ui":                      {"", `{"name":"card"}`, `onload='__LGUI_agent.render("card", "{{shadowRootId}}")'`},
	"get_ui_file":                  {"", "", "200 script"},
	"create_assistant":             {"", `{"graph_id":"agent","name":"made"}`, `"name":"made"`},
	"search_assistants":            {"", `{"graph_id":"agent","metadata":{"created_by":"system"},"select":["assistant_id"]}`, `[{"assistant_id":"fe096781-5601-53d2-b2f6-0d3403f7e9ca"}]`},
	"count_assistants":             {"", `{"metadata":{"created_by":"system"}}`, "200 1"},
	"get_assistant":                {"", "", `"graph_id":"agent"`},
	"patch_assistant":              {"", `{"description":"better"}`, `"version":2`},
	"delete_assistant":             {"?delete_threads=1", "", "204 "},
	"get_assistant_graph":          {"?xray=1", "", `"nodes":[]`},
	"list_assistant_subgraphs":     {"?recurse=true", "", "200 {"},
	"get_assistant_subgraph":       {"", "", "200 {"},
	"get_assistant_schemas":        {"", "", `"graph_id":"agent"`},
	"list_assistant_versions":      {"", `{}`, `[{"assistant_id":"ASSISTANT"`},
	"set_latest_assistant_version": {"", `{"version":1}`, `"version":1`},
	"create_thread":                {"", `{"thread_id":"NEW","metadata":{"a":1}}`, `"thread_id":"NEW"`},
	"search_threads":               {"", `{"ids":["THREAD"],"select":["status"],"extract":{"x":"values.x"}}`, `[{"status":"idle","extracted":{"x":1}}]`},
	"count_threads":                {"", `{"values":{"x":1},"metadata":{"of":"THREAD"}}`, "200 1"},
	"prune_threads":                {"", `{"thread_ids":["THREAD"]}`, `{"pruned_count":1}`},
	"get_thread":                   {"?include=ttl", "", `"ttl":null`},
	"patch_thread":                 {"", `{"metadata":{"b":2},"ttl":5}`, `"b":2`},
	"delete_thread":                {"", "", "204 "},
	"copy_thread":                  {"", "", `"values":{"x":1}`},
	"get_thread_storage":           {"", "", `"thread_id":"THREAD"`},
	"stream_thread":                {"?stream_modes=lifecycle", "", "200 "},
	"get_thread_state":             {"", "", `"values":{"x":1}`},
	"update_thread_state":          {"", `{"values":{"x":2},"as_node":"n"}`, `"checkpoint_id":"`},
	"patch_thread_state":           {"", `{"metadata":{"m":1}}`, `"checkpoint_id":"CHECKPOINT"`},
	"get_thread_state_at":          {"", "", `"values":{"x":1}`},
	"post_thread_state_at":         {"", `{"checkpoint":{"checkpoint_id":"CHECKPOINT"},"select":["values"]}`, `{"values":{"x":1}}`},
	"get_thread_history":           {"?limit=2", "", "200 ["},
	"search_thread_history":        {"", `{"limit":2}`, "200 ["},
	"list_runs":                    {"?select=run_id", "", `[{"run_id":"RUN"}]`},
	"create_run":                   {"", `{"assistant_id":"agent","input":{}}`, `"thread_id":"THREAD"`},
	"stream_run":                   {"", `{"assistant_id":"agent","input":{"x":5}}`, "event: values\ndata: {\"x\":5}\n"},
	"wait_run":                     {"", `{"assistant_id":"agent","input":{"x":6}}`, `200 {"x":6}`},
	"get_run":                      {"", "", `"status":"success"`},
	"delete_run":                   {"", "", "204 "},
	"join_run":                     {"", "", `200 {"x":1}`},
	"join_run_stream":              {"", "", "event: end\n"},
	"cancel_run":                   {"?wait=1&action=rollback", "", "204 "},
	"create_stateless_run":         {"", `{"assistant_id":"agent","input":{}}`, `"status":"`},
	"stream_stateless_run":         {"", `{"assistant_id":"agent","input":{"x":7}}`, "event: values\ndata: {\"x\":7}\n"},
	"wait_stateless_run":           {"", `{"assistant_id":"agent","input":{"x":8}}`, `200 {"x":8}`},
	"create_stateless_runs":        {"", `[{"assistant_id":"agent"},{"assistant_id":"agent"}]`, `"run_id":"`},
	"cancel_runs":                  {"?action=rollback", `{"thread_id":"THREAD","run_ids":["RUN"]}`, "204 "},
	"join_stateless_run_stream":    {"", "", "event: end\n"},
	"create_cron":                  {"", `{"assistant_id":"agent","schedule":"0 0 1 1 *"}`, `"schedule":"0 0 1 1 *"`},
	"create_thread_cron":           {"", `{"assistant_id":"agent","schedule":"0 0 1 1 *"}`, `"thread_id":"THREAD"`},
	"search_crons":                 {"", `{"thread_id":"THREAD","select":["cron_id"]}`, `[{"cron_id":"CRON"}]`},
	"count_crons":                  {"", `{"thread_id":"THREAD"}`, "200 1"},
	"get_cron":                     {"", "", `"cron_id":"CRON"`},
	"patch_cron":                   {"", `{"enabled":false}`, `"next_run_date":null`},
	"delete_cron":                  {"", "", "204 "},
	"put_item":                     {"", `{"namespace":["THREAD"],"key":"l","value":{"v":2}}`, "204 "},
	"get_item":                     {"?namespace=THREAD&key=k", "", `"value":{"v":1}`},
	"delete_item":                  {"", `{"namespace":["THREAD"],"key":"k"}`, "204 "},
	"search_items":                 {"", `{"namespace_prefix":["THREAD"],"filter":{"v":{"$gt":0}}}`, `"key":"k"`},
	"list_namespaces":              {"", `{"prefix":["THREAD"]}`, `{"namespaces":[["THREAD"]]}`},
}

// unfinished are the operations that need a run in flight.
var unfinished = map[string]bool{"cancel_run": true, "cancel_runs": true}

// Every operation of the description succeeds once, over HTTP, on the real engine and store.
func TestEveryOperationIsProved(t *testing.T) {
	t.Parallel()
	s := newRealServer(t, map[string]workerfake.Graph{"agent": ownCheckpoint})
	all := operations(t, described())
	for id := range proofs {
		if all[id] == "" {
			t.Errorf("%s is no operation", id)
		}
	}
	for id, call := range all {
		p, ok := proofs[id]
		if !ok {
			t.Errorf("%s %s has no proof; give it a row", id, call)
			continue
		}
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			s.prove(t, id, call, p)
		})
	}
}

// ownCheckpoint writes a checkpoint whose id is made of its run's, and answers its input.
func ownCheckpoint(_ context.Context, r *workerfake.Run) agent.Done {
	id, input := checkpointOf(r.Job.Run.ID), string(r.Job.Run.Kwargs.Input)
	r.Checkpoint(id, input)
	r.Chunk("values", input)
	return r.Success(id, input)
}

func checkpointOf(run string) string { return "1f" + run[2:] }

func (s realServer) prove(t *testing.T, id, call string, p proof) {
	method, path, _ := strings.Cut(call, " ")
	fill := s.things(t, unfinished[id])
	path = strings.NewReplacer("{thread_id}", "THREAD", "{run_id}", "RUN", "{cron_id}", "CRON", "{assistant_id}", "ASSISTANT",
		"{checkpoint_id}", "CHECKPOINT", "{namespace}", "sub", "{graph}", "agent", "{file}", "entrypoint.js").Replace(path)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, s.URL+fill.Replace(path+p.query), strings.NewReader(fill.Replace(p.body)))
	if err != nil {
		t.Fatal(err)
	}
	res, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	got := strconv.Itoa(res.StatusCode) + " "
	if id != "stream_thread" { // it has no end
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		got += string(text)
	}
	if want := fill.Replace(p.want); res.StatusCode >= 300 || !strings.Contains(got, want) {
		t.Errorf("%s: got %.500s, want %s", call, got, want)
	}
}

// things makes one of each and returns what puts their ids into a text.
func (s realServer) things(t *testing.T, unfinished bool) *strings.Replacer {
	t.Helper()
	var made struct {
		Thread    string `json:"thread_id"`
		Run       string `json:"run_id"`
		Cron      string `json:"cron_id"`
		Assistant string `json:"assistant_id"`
	}
	s.post(t, "/assistants", `{"graph_id":"agent"}`, &made)
	assistant := made.Assistant
	s.post(t, "/threads", `{}`, &made)
	s.body(t, "PATCH", "/threads/"+made.Thread, `{"metadata":{"of":"`+made.Thread+`"}}`)
	delay := ""
	if unfinished {
		delay = `,"after_seconds":3600`
	}
	s.post(t, "/threads/"+made.Thread+"/runs", `{"assistant_id":"agent","input":{"x":1}`+delay+`}`, &made)
	if !unfinished {
		s.body(t, "GET", "/threads/"+made.Thread+"/runs/"+made.Run+"/join", "")
	}
	run := made.Run
	s.post(t, "/threads/"+made.Thread+"/runs/crons", `{"assistant_id":"agent","schedule":"0 0 1 1 *"}`, &made)
	s.body(t, "PUT", "/store/items", `{"namespace":["`+made.Thread+`"],"key":"k","value":{"v":1}}`)
	return strings.NewReplacer("THREAD", made.Thread, "RUN", run, "CRON", made.Cron, "ASSISTANT", assistant, "CHECKPOINT", checkpointOf(run),
		"NEW", "a"+made.Thread[1:])
}
