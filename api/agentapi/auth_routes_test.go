package agentapi_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/api/agentapi"
)

// access is a route as ann uses it on what is hers: how, and what the application's handlers are asked for it.
type access struct {
	route  string
	path   string
	body   string
	asks   string
	status int  // of success; 0 = 200
	open   bool // for everybody
	fresh  bool // makes something new: there is nothing to be hidden
}

const (
	runAsks  = "threads:create_run"
	userRun  = `{"assistant_id":"{assistant}","input":{"n":1}}`
	withSeen = "assistants:read " + runAsks
)

// accesses holds every route of the router at least once.
func accesses() []access {
	return []access{
		{route: "GET /ok", path: "/ok", open: true},
		{route: "GET /info", path: "/info", open: true},
		{route: "GET /metrics", path: "/metrics", fresh: true},
		{route: "GET /openapi.json", path: "/openapi.json", fresh: true},
		{route: "GET /docs", path: "/docs", fresh: true},
		{route: "POST /ui/{graph}", path: "/ui/agent", body: `{"name":"card"}`, fresh: true},
		{route: "GET /ui/{graph}/{file}", path: "/ui/agent/entrypoint.js", open: true},

		{route: "POST /assistants/search", path: "/assistants/search", asks: "assistants:search", fresh: true},
		{route: "POST /assistants/count", path: "/assistants/count", asks: "assistants:search", fresh: true},
		{route: "POST /assistants", path: "/assistants", body: `{"graph_id":"agent"}`, asks: "assistants:create", fresh: true},
		{route: "GET /assistants/{assistant_id}", path: "/assistants/{assistant}", asks: "assistants:read"},
		{route: "PATCH /assistants/{assistant_id}", path: "/assistants/{assistant}", body: `{"name":"n"}`, asks: "assistants:update"},
		{route: "DELETE /assistants/{assistant_id}", path: "/assistants/{assistant}", asks: "assistants:delete", status: 204},
		{route: "DELETE /assistants/{assistant_id}", path: "/assistants/{assistant}?delete_threads=1", asks: "assistants:delete threads:search", status: 204},
		{route: "POST /assistants/{assistant_id}/versions", path: "/assistants/{assistant}/versions", asks: "assistants:read"},
		{route: "POST /assistants/{assistant_id}/latest", path: "/assistants/{assistant}/latest", body: `{"version":1}`, asks: "assistants:update"},
		{route: "GET /assistants/{assistant_id}/schemas", path: "/assistants/{assistant}/schemas", asks: "assistants:read"},
		{route: "GET /assistants/{assistant_id}/graph", path: "/assistants/{assistant}/graph", asks: "assistants:read"},
		{route: "GET /assistants/{assistant_id}/subgraphs", path: "/assistants/{assistant}/subgraphs", asks: "assistants:read"},
		{route: "GET /assistants/{assistant_id}/subgraphs/{namespace}", path: "/assistants/{assistant}/subgraphs/x", asks: "assistants:read"},

		{route: "POST /threads", path: "/threads", asks: "threads:create", fresh: true},
		{route: "POST /threads/search", path: "/threads/search", asks: "threads:search", fresh: true},
		{route: "POST /threads/count", path: "/threads/count", asks: "threads:search", fresh: true},
		{route: "POST /threads/prune", path: "/threads/prune", body: `{"thread_ids":["{thread}"]}`, asks: "threads:delete"},
		{route: "POST /threads/prune", path: "/threads/prune", body: `{"thread_ids":["{thread}"],"strategy":"keep_latest"}`, asks: "threads:update"},
		{route: "GET /threads/{thread_id}/storage", path: "/threads/{thread}/storage", asks: "threads:read"},
		{route: "GET /threads/{thread_id}", path: "/threads/{thread}", asks: "threads:read"},
		{route: "PATCH /threads/{thread_id}", path: "/threads/{thread}", body: `{"metadata":{"a":1}}`, asks: "threads:update"},
		{route: "DELETE /threads/{thread_id}", path: "/threads/{thread}", asks: "threads:delete", status: 204},
		{route: "POST /threads/{thread_id}/copy", path: "/threads/{thread}/copy", asks: "threads:read"},
		{route: "GET /threads/{thread_id}/state", path: "/threads/{thread}/state", asks: "threads:read"},
		{route: "GET /threads/{thread_id}/state", path: "/threads/{thread}/state?subgraphs=1", asks: "threads:read"},
		{route: "POST /threads/{thread_id}/state", path: "/threads/{thread}/state", body: `{"values":{"a":1}}`, asks: "threads:update"},
		{route: "PATCH /threads/{thread_id}/state", path: "/threads/{thread}/state", body: `{"metadata":{"a":1}}`, asks: "threads:update"},
		{route: "GET /threads/{thread_id}/state/{checkpoint_id}", path: "/threads/{thread}/state/{checkpoint}", asks: "threads:read"},
		{route: "POST /threads/{thread_id}/state/checkpoint", path: "/threads/{thread}/state/checkpoint", body: `{"checkpoint":{"checkpoint_id":"{checkpoint}"}}`, asks: "threads:read"},
		{route: "GET /threads/{thread_id}/history", path: "/threads/{thread}/history", asks: "threads:read"},
		{route: "POST /threads/{thread_id}/history", path: "/threads/{thread}/history", asks: "threads:read"},
		{route: "GET /threads/{thread_id}/stream", path: "/threads/{thread}/stream", asks: "threads:read"},

		{route: "POST /threads/{thread_id}/runs", path: "/threads/{thread}/runs", body: `{"assistant_id":"agent"}`, asks: runAsks},
		{route: "POST /threads/{thread_id}/runs", path: "/threads/{thread}/runs", body: userRun, asks: withSeen},
		{route: "POST /threads/{thread_id}/runs", path: "/threads/{thread}/runs", body: `{"assistant_id":"agent","multitask_strategy":"rollback"}`, asks: runAsks},
		{route: "POST /threads/{thread_id}/runs/stream", path: "/threads/{thread}/runs/stream", body: `{"assistant_id":"agent"}`, asks: runAsks},
		{route: "POST /threads/{thread_id}/runs/wait", path: "/threads/{thread}/runs/wait", body: `{"assistant_id":"agent"}`, asks: runAsks},
		{route: "POST /runs", path: "/runs", body: userRun, asks: withSeen},
		{route: "POST /runs/stream", path: "/runs/stream", body: userRun, asks: withSeen},
		{route: "POST /runs/wait", path: "/runs/wait", body: userRun, asks: withSeen},
		{route: "POST /runs/batch", path: "/runs/batch", body: `[{"assistant_id":"agent"},` + userRun + `]`, asks: runAsks + " " + withSeen},
		{route: "GET /threads/{thread_id}/runs/{run_id}/stream", path: "/threads/{thread}/runs/{run}/stream", asks: "threads:read"},
		{route: "GET /threads/{thread_id}/runs/{run_id}/stream", path: "/threads/{thread}/runs/{run}/stream?cancel_on_disconnect=1", asks: "threads:update threads:read"},
		{route: "GET /runs/{first}/{second}", path: "/runs/{run}/stream", asks: "threads:read"},
		{route: "GET /runs/{first}/{second}", path: "/runs/crons/{cron}", asks: "crons:read"},
		{route: "POST /runs/cancel", path: "/runs/cancel", body: `{"thread_id":"{waiting}","run_ids":["{pending}"]}`, asks: "threads:update", status: 204},
		{route: "POST /runs/cancel", path: "/runs/cancel", body: `{"status":"all"}`, asks: "threads:update", status: 204},
		{route: "POST /runs/cancel", path: "/runs/cancel", body: `{"assistant_id":"agent"}`, asks: "threads:update", status: 204},
		{route: "GET /threads/{thread_id}/runs", path: "/threads/{thread}/runs", asks: "threads:search"},
		{route: "GET /threads/{thread_id}/runs/{run_id}", path: "/threads/{thread}/runs/{run}", asks: "threads:read"},
		{route: "DELETE /threads/{thread_id}/runs/{run_id}", path: "/threads/{thread}/runs/{run}", asks: "threads:delete", status: 204},
		{route: "GET /threads/{thread_id}/runs/{run_id}/join", path: "/threads/{thread}/runs/{run}/join", asks: "threads:read threads:read"},
		{route: "GET /threads/{thread_id}/runs/{run_id}/join", path: "/threads/{thread}/runs/{run}/join?cancel_on_disconnect=1", asks: "threads:read threads:update threads:read"},
		{route: "POST /threads/{thread_id}/runs/{run_id}/cancel", path: "/threads/{waiting}/runs/{pending}/cancel", asks: "threads:update", status: 202},
		{route: "POST /threads/{thread_id}/runs/{run_id}/cancel", path: "/threads/{waiting}/runs/{pending}/cancel?action=rollback&wait=1", asks: "threads:update", status: 204},

		{route: "POST /runs/crons", path: "/runs/crons", body: `{"schedule":"0 0 1 1 *","assistant_id":"{assistant}"}`, asks: "crons:create " + withSeen},
		{route: "POST /threads/{thread_id}/runs/crons", path: "/threads/{thread}/runs/crons", body: `{"schedule":"0 0 1 1 *","assistant_id":"agent"}`, asks: "crons:create " + runAsks},
		{route: "POST /runs/crons/search", path: "/runs/crons/search", asks: "crons:search", fresh: true},
		{route: "POST /runs/crons/count", path: "/runs/crons/count", asks: "crons:search", fresh: true},
		{route: "PATCH /runs/crons/{cron_id}", path: "/runs/crons/{cron}", body: `{"enabled":false}`, asks: "crons:update " + runAsks},
		{route: "DELETE /runs/crons/{cron_id}", path: "/runs/crons/{cron}", asks: "crons:delete", status: 204},

		{route: "PUT /store/items", path: "/store/items", body: `{"namespace":["n"],"key":"k","value":{}}`, asks: "store:put", status: 204, fresh: true},
		{route: "GET /store/items", path: "/store/items?namespace=x&key=k", asks: "store:get", fresh: true},
		{route: "DELETE /store/items", path: "/store/items", body: `{"namespace":["x"],"key":"k"}`, asks: "store:delete", status: 204, fresh: true},
		{route: "POST /store/items/search", path: "/store/items/search", body: `{"namespace_prefix":["x"]}`, asks: "store:search", fresh: true},
		{route: "POST /store/namespaces", path: "/store/namespaces", asks: "store:list_namespaces", fresh: true},
	}
}

func (a access) verb() string { verb, _, _ := strings.Cut(a.route, " "); return verb }

func (a access) success() int {
	if a.status == 0 {
		return 200
	}
	return a.status
}

// A route that nobody has said of what it asks is not reached before somebody does.
func TestEveryRouteAsksTheApplication(t *testing.T) {
	t.Parallel()
	s := newAuthServer(t)
	known := map[string]bool{}
	for _, a := range accesses() {
		known[a.route] = true
		mine := s.annsThings()
		got := s.do("ann", a.verb(), mine.fill(a.path), mine.fill(a.body))
		asked := strings.Join(s.takeAsked(), " ")
		want := ""
		if a.asks != "" {
			want = "ann " + strings.ReplaceAll(a.asks, " ", " ann ")
		}
		if got.status != a.success() || asked != want {
			t.Errorf("%s (%s %s): got %d %s after asking %q; want %d after %q", a.route, a.path, a.body, got.status, got.body, asked, a.success(), want)
		}
		if got := s.do("", a.verb(), mine.fill(a.path), mine.fill(a.body)); (got.status == 401) == a.open {
			t.Errorf("%s as nobody: got %d %s", a.route, got.status, got.body)
		}
		if asked := s.takeAsked(); len(asked) > 0 {
			t.Errorf("%s as nobody: %v was asked", a.route, asked)
		}
	}
	for _, route := range agentapi.New(&fake{}, agentapi.Config{}).Routes() {
		if !known[route] {
			t.Errorf("route %s has no row in accesses(): say what it asks the application's handlers", route)
		}
	}
}

// What is hidden does not exist: for bob, what is ann's is answered as what is nobody's, byte for byte.
func TestWhatIsHiddenIsMissing(t *testing.T) {
	t.Parallel()
	s := newAuthServer(t)
	mine, none := s.annsThings(), strange()
	before := s.everythingOfAnn(mine)
	for _, a := range accesses() {
		if a.open || a.fresh {
			continue
		}
		hidden := s.do("bob", a.verb(), mine.fill(a.path), mine.fill(a.body))
		missing := s.do("bob", a.verb(), none.fill(a.path), none.fill(a.body))
		if hidden.status != missing.status || hidden.anonymous(mine) != missing.anonymous(none) {
			t.Errorf("%s %s %s: hidden is %d %s, missing %d %s", a.verb(), a.path, a.body, hidden.status, hidden.body, missing.status, missing.body)
		}
		if hidden.status < 300 && !strings.HasPrefix(a.path, "/threads/prune") {
			t.Errorf("%s %s: bob got %d %s", a.verb(), a.path, hidden.status, hidden.body)
		}
	}
	if after := s.everythingOfAnn(mine); !slices.Equal(after, before) {
		t.Errorf("ann's things have changed:\n%s\nwere\n%s", strings.Join(after, "\n"), strings.Join(before, "\n"))
	}
}

// anonymous is an answer without the ids that were asked for.
func (a answered) anonymous(t things) string {
	return strings.NewReplacer(t.assistant, "*", t.thread, "*", t.run, "*", t.waiting, "*", t.pending, "*", t.cron, "*", t.gone, "*").Replace(a.body)
}

func (s *authServer) everythingOfAnn(mine things) []string {
	var all []string
	for _, path := range []string{
		"/assistants/{assistant}", "/threads/{thread}", "/threads/{thread}/runs", "/threads/{thread}/runs/{run}", "/threads/{waiting}",
		"/threads/{waiting}/runs", "/runs/crons/{cron}", "/store/items?namespace=x&key=k",
	} {
		got := s.do("ann", "GET", mine.fill(path), "")
		if got.status != 200 {
			s.t.Errorf("ann: %s is %d %s", path, got.status, got.body)
		}
		all = append(all, got.body)
	}
	for _, path := range []string{"/assistants/count", "/threads/count", "/runs/crons/count"} {
		all = append(all, s.do("ann", "POST", path, `{}`).body)
	}
	return all
}
