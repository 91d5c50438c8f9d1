package e2e_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/slipway-dev/slipway/api/answers"
)

// TestAnswersOfRealGraphsAreDescribed runs the stock SDKs of both languages against graphs of both languages, and holds every
// answer against the description that the deployment gives of itself.
func TestAnswersOfRealGraphsAreDescribed(t *testing.T) {
	t.Parallel()
	js, py := project(t, "testdata/clients/js"), project(t, "testdata/clients/py")
	check(t, os.Symlink(filepath.Join(shared.clientJS, "node_modules"), filepath.Join(js, "node_modules")))
	m, seen := newMachine(t), map[string]int{}
	for _, deployment := range m.bothLanguages() {
		c, at := m.witness(deployment)
		m.in(js, "node", "sdk.mjs", at)
		m.in(py, filepath.Join(shared.clientPy, "venv/bin/python"), "sdk.py", at)
		for id, n := range c.Seen() {
			seen[id] += n
		}
	}
	if len(seen) < 25 {
		t.Errorf("the SDKs' programs call %d operations: %v; they called more", len(seen), seen)
	}
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
