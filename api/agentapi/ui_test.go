package agentapi_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/api/agentapi"
)

// cards are components of two names; one is no path.
func cards() agentapi.UI {
	built := func(dir string) slipway.BundleUI {
		return slipway.BundleUI{Dir: dir, Files: []slipway.BundleUIFile{{Name: "entrypoint.css", SHA256: "c55"}, {Name: "entrypoint.js", SHA256: "5c21"}}}
	}
	return agentapi.UI{
		Files: fstest.MapFS{
			"bundle.json": {Data: []byte("secret")}, "ui/0/entrypoint.js": {Data: []byte("script")}, "ui/0/entrypoint.css": {Data: []byte("style")},
			"ui/0/other": {Data: []byte("secret")}, "ui/1/entrypoint.js": {Data: []byte("odd")},
		},
		Components: map[string]slipway.BundleUI{"agent": built("ui/0"), "a/b 'ü😀": built("ui/1")},
	}
}

func askUI(t *testing.T, cfg agentapi.Config, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	cfg.UI = cards()
	w, r := httptest.NewRecorder(), httptest.NewRequest(method, target, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	var h http.Handler = agentapi.New(&fake{}, cfg)
	if cfg.MountPrefix == "" {
		h = truthful(t, h)
	}
	h.ServeHTTP(w, r)
	return w
}

func TestTagsOfAComponent(t *testing.T) {
	t.Parallel()
	w := askUI(t, agentapi.Config{}, "POST", "http://localhost:2024/ui/agent", `{"name":"card"}`)
	want := `<link rel="stylesheet" href="http://localhost:2024/ui/agent/entrypoint.css?v=c55" />` + "\n" +
		`<script src="http://localhost:2024/ui/agent/entrypoint.js?v=5c21" onload='__LGUI_agent.render("card", "{{shadowRootId}}")'></script>`
	if got := w.Body.String(); w.Code != 200 || got != want || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
		t.Errorf("got %d %v\n%s\nwant\n%s", w.Code, w.Header(), got, want)
	}
	w = askUI(t, agentapi.Config{}, "POST", "http://localhost/ui/a%2Fb%20'%C3%BC%F0%9F%98%80", `{"name":"it's \"</script>{{shadowRootId}}\\"}`)
	want = `<script src="http://localhost/ui/a%2Fb%20%27%C3%BC%F0%9F%98%80/entrypoint.js?v=5c21" onload='__LGUI_a_b_____.render("it&#39;s \"\u003c/script\u003e\u007b\u007bshadowRootId}}\\", "{{shadowRootId}}")'></script>`
	if _, got, _ := strings.Cut(w.Body.String(), "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestWhereBrowsersReachTheComponents(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		target  string
		mount   string
		headers []string
		want    string
	}{
		"a page's own scheme": {"http://agents.example/ui/agent", "", nil, "//agents.example/ui/agent/"},
		"TLS":                 {"http://agents.example/ui/agent", "", []string{"X-Forwarded-Proto", "https"}, "https://agents.example/ui/agent/"},
		"no scheme":           {"http://agents.example/ui/agent", "", []string{"X-Forwarded-Proto", "javascript"}, "//agents.example/ui/agent/"},
		"this machine":        {"http://[::1]:80/ui/agent", "", nil, "http://[::1]:80/ui/agent/"},
		"proxies":             {"http://inner/ui/agent", "", []string{"X-Forwarded-Host", "outer:8443, inner", "X-Forwarded-Proto", "https"}, "https://outer:8443/ui/agent/"},
		"a gateway's prefix":  {"http://127.0.0.1:1/x/ui/agent", "/x", []string{"X-Forwarded-Prefix", "/d/desk/"}, "http://127.0.0.1:1/d/desk/x/ui/agent/"},
		"no prefix":           {"http://127.0.0.1:1/ui/agent", "", []string{"X-Forwarded-Prefix", "//evil.example"}, "http://127.0.0.1:1/ui/agent/"},
		"no markup":           {"http://h/ui/agent", "", []string{"X-Forwarded-Host", `x"><script>`}, "//x&#34;&gt;&lt;script&gt;/ui/agent/"},
	} {
		w := askUI(t, agentapi.Config{MountPrefix: c.mount}, "POST", c.target, `{"name":"card"}`, c.headers...)
		if got := w.Body.String(); w.Code != 200 || strings.Count(got, `="`+c.want+"entrypoint.") != 2 {
			t.Errorf("%s: got %d %s, want two tags with %s", name, w.Code, got, c.want)
		}
	}
}

func TestFilesOfComponents(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]struct{ body, media, cache string }{
		"/ui/agent/entrypoint.js":                       {"script", "text/javascript; charset=utf-8", "no-cache"},
		"/ui/agent/entrypoint.js?v=old":                 {"script", "text/javascript; charset=utf-8", "no-cache"},
		"/ui/agent/entrypoint.css?v=c55":                {"style", "text/css; charset=utf-8", "public, max-age=31536000, immutable"},
		"/ui/a%2Fb%20'%C3%BC%F0%9F%98%80/entrypoint.js": {"odd", "text/javascript; charset=utf-8", "no-cache"},
	} {
		w := askUI(t, agentapi.Config{}, "GET", target, "", "Range", "bytes=0-1")
		h := w.Header()
		if w.Code != 200 || w.Body.String() != want.body || h.Get("Content-Type") != want.media || h.Get("Cache-Control") != want.cache || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: got %d %q %v, want %v", target, w.Code, w.Body, h, want)
		}
		if again := askUI(t, agentapi.Config{}, "GET", target, "", "If-None-Match", h.Get("ETag")); again.Code != 304 || again.Body.Len() != 0 {
			t.Errorf("%s again: got %d %q, want 304", target, again.Code, again.Body)
		}
		if head := askUI(t, agentapi.Config{}, "HEAD", target, ""); head.Code != 200 || head.Body.Len() != 0 {
			t.Errorf("HEAD %s: got %d %q", target, head.Code, head.Body)
		}
	}
}

func TestComponentsThatAreNotThere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method, target, body string
		status               int
		want                 string
	}{
		{"POST", "/ui/nobody", `{"name":"card"}`, 404, `there are no components of \"nobody\": name them in ui of the graph configuration and deploy again; there are components of a/b 'ü😀, agent`},
		{"POST", "/ui/agent", ``, 422, "name"},
		{"POST", "/ui/agent", `{"name":7}`, 422, `{"detail":"body.name: must be a string, got 7"}`},
		{"POST", "/ui/agent", `{"name":""}`, 422, "body.name: has 0 bytes"},
		{"POST", "/ui/agent", `{"name":"` + strings.Repeat("n", 1001) + `"}`, 422, "body.name: has 1001 bytes"},
		{"GET", "/ui/nobody/entrypoint.js", ``, 404, "nobody"},
		{"GET", "/ui/agent/other", ``, 404, `the components of \"agent\" have no file \"other\"`},
		{"GET", "/ui/agent/..%2F..%2Fbundle.json", ``, 404, "have no file"},
		{"GET", "/ui/agent/%2e%2e", ``, 404, "have no file"},
		{"GET", "/ui/..%2F..%2Fbundle.json/entrypoint.js", ``, 404, "no components of"},
		{"GET", "/ui/agent/%00", ``, 404, "have no file"},
		{"GET", "/ui/agent/" + strings.Repeat("x", 5000), ``, 404, "…"},
	} {
		w := askUI(t, agentapi.Config{}, c.method, c.target, c.body)
		if got := w.Body.String(); w.Code != c.status || !strings.Contains(got, c.want) || strings.Contains(got, "secret") {
			t.Errorf("%s %.60s %.60s: got %d %s, want %d %s", c.method, c.target, c.body, w.Code, got, c.status, c.want)
		}
	}
}
