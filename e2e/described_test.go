package e2e_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/slipway-dev/slipway/api/answers"
)

// TestAnswersOfRealGraphsAreDescribed runs the stock SDKs of both languages against graphs of both languages, and holds every
// answer against the description that the deployment gives of itself.
func TestAnswersOfRealGraphsAreDescribed(t *testing.T) {
	t.Parallel()
	m, seen := newMachine(t), map[string]int{}
	for _, deployment := range m.bothLanguages() {
		c, at := m.witness(deployment)
		m.in(shared.clientJS, "node", "sdk.mjs", at)
		m.in(shared.clientPy, filepath.Join(shared.clientPy, "venv/bin/python"), "sdk.py", at)
		for _, call := range beyondTheSDKs {
			method, rest, _ := strings.Cut(call, " ")
			path, body, _ := strings.Cut(rest, " ")
			if status, err := m.call(method, at+path, body, nil); err != nil || status >= 300 {
				t.Errorf("%s: %d, %v", call, status, err)
			}
		}
		for id, n := range c.Seen() {
			seen[id] += n
		}
	}
	if len(seen) < 40 {
		t.Errorf("%d operations were called: %v; there were more", len(seen), seen)
	}
}

// beyondTheSDKs are calls that the SDKs' programs do not make.
var beyondTheSDKs = []string{
	"GET /assistants/relay/schemas", "GET /assistants/family/graph?xray=1", "GET /assistants/family/subgraphs?recurse=1", "POST /assistants/count {}",
	`POST /assistants {"graph_id":"relay","assistant_id":"0199f0a0-0000-7000-8000-00000000000a","if_exists":"do_nothing"}`,
	`PATCH /assistants/0199f0a0-0000-7000-8000-00000000000a {"name":"other"}`, "POST /assistants/0199f0a0-0000-7000-8000-00000000000a/versions {}",
	`POST /assistants/0199f0a0-0000-7000-8000-00000000000a/latest {"version":1}`, "DELETE /assistants/0199f0a0-0000-7000-8000-00000000000a",
	"POST /threads/count {}", `POST /threads {"thread_id":"0199f0a0-0000-7000-8000-00000000000b","if_exists":"do_nothing","ttl":5}`,
	`POST /threads/0199f0a0-0000-7000-8000-00000000000b/runs/wait {"assistant_id":"relay","input":{"messages":[{"role":"user","content":"hi"}]}}`,
	"GET /threads/0199f0a0-0000-7000-8000-00000000000b/storage", "GET /threads/0199f0a0-0000-7000-8000-00000000000b/history",
	`PATCH /threads/0199f0a0-0000-7000-8000-00000000000b {"metadata":{"a":1}}`, `PATCH /threads/0199f0a0-0000-7000-8000-00000000000b/state {"metadata":{"a":1}}`,
	"POST /threads/0199f0a0-0000-7000-8000-00000000000b/copy", `POST /threads/prune {"thread_ids":["0199f0a0-0000-7000-8000-00000000000b"],"strategy":"keep_latest"}`,
	`POST /runs/batch [{"assistant_id":"relay","input":{"messages":[]}}]`, `POST /runs/crons {"assistant_id":"relay","schedule":"0 0 1 1 *"}`,
	"POST /runs/crons/search {}", "POST /runs/crons/count {}", `PUT /store/items {"namespace":["a"],"key":"k","value":{"v":1}}`,
	"GET /store/items?namespace=a&key=k", "POST /store/items/search {}", "POST /store/namespaces {}", "GET /info", "GET /ok?check_db=1", "GET /metrics",
	"GET /metrics?format=json", "GET /docs",
}

// witness stands between a deployment and its clients and tells what of its answers is not described.
func (m *machine) witness(deployment string) (c *answers.Check, at string) {
	m.t.Helper()
	res, err := http.Get(deployment + "/openapi.json")
	check(m.t, err)
	defer res.Body.Close()
	document, err := io.ReadAll(res.Body)
	check(m.t, err)
	c, err = answers.New(document)
	check(m.t, err)
	target, err := url.Parse(deployment)
	check(m.t, err)
	var mu sync.Mutex
	told := map[string]bool{}
	server := httptest.NewServer(c.Handler(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, FlushInterval: -1,
	}, func(wrong string) {
		mu.Lock()
		defer mu.Unlock()
		if !told[wrong] {
			told[wrong] = true
			m.t.Error(wrong)
		}
	}))
	m.t.Cleanup(server.Close)
	return c, server.URL
}
