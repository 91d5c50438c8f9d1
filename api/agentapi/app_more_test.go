package agentapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/api/agentapi"
	workerfake "github.com/slipway-dev/slipway/worker/fake"
)

func users() map[string]string {
	return map[string]string{"Bearer ada": "ada", "Bearer ben": "ben"}
}

func TestWhoMayUseTheAppsRoutes(t *testing.T) {
	t.Parallel()
	says := func(x agent.Exchange) { answer(x, 200, "user "+string(x.Request().User)) }
	own := agent.PartInfo{Routes: []agent.AppRoute{route1("/mine", "GET")}}
	open := newAppWorld(t, site{info: own, app: says, users: users()})
	if resp, body := open.send(t, "GET", "/mine", ""); resp.StatusCode != 200 || body != "user " {
		t.Errorf("an open route: got %d %s", resp.StatusCode, body)
	}
	if resp, body := open.send(t, "POST", "/threads", "{}"); resp.StatusCode != 401 {
		t.Errorf("a built-in one: got %d %s", resp.StatusCode, body)
	}
	guarded := newAppWorld(t, site{info: own, app: says, users: users(), api: agentapi.Config{App: agentapi.AppConfig{RouteAuth: true}}})
	if resp, body := guarded.send(t, "GET", "/mine", ""); resp.StatusCode != 401 || !strings.Contains(body, "who are you?") {
		t.Errorf("a guarded route: got %d %s", resp.StatusCode, body)
	}
	if _, body := guarded.send(t, "GET", "/mine", "", "Authorization", "Bearer ada"); !strings.Contains(body, `"identity":"ada"`) {
		t.Errorf("with a user: got %s", body)
	}
	var pool *workerfake.Pool
	loose := newAppWorld(t, site{info: agent.PartInfo{Routes: own.Routes, Middleware: true}, app: func(x agent.Exchange) {
		if q := x.Request(); strings.HasPrefix(q.Target, "/mine") { // with a slash more than its list of routes says
			says(x)
			return
		}
		middleware(&pool)(x)
	}, users: users(), api: agentapi.Config{App: agentapi.AppConfig{RouteAuth: true, AuthFirst: true}}})
	pool = loose.pool
	if resp, body := loose.send(t, "GET", "/mine/", ""); resp.StatusCode != 401 {
		t.Errorf("a path that only the app's router takes: got %d %s", resp.StatusCode, body)
	}
	if resp, _ := loose.send(t, "OPTIONS", "/threads", "", "Origin", "http://here", "Access-Control-Request-Method", "POST"); resp.StatusCode != 204 {
		t.Errorf("a preflight, which has no credentials: got %d", resp.StatusCode)
	}
	opaque := newAppWorld(t, site{app: says, users: users(), api: agentapi.Config{App: agentapi.AppConfig{RouteAuth: true}}})
	if resp, _ := opaque.send(t, "GET", "/mine", ""); resp.StatusCode != 401 {
		t.Errorf("a route that may be the app's: got %d", resp.StatusCode)
	}
}

func TestTheOrderOfMiddlewareAndAuthentication(t *testing.T) {
	t.Parallel()
	for _, authFirst := range []bool{false, true} {
		var pool *workerfake.Pool
		w := newAppWorld(t, site{
			info: agent.PartInfo{Routes: []agent.AppRoute{route1("/mine", "GET")}, Middleware: true}, app: middleware(&pool), users: users(),
			api: agentapi.Config{App: agentapi.AppConfig{AuthFirst: authFirst}},
		})
		pool = w.pool
		resp, _ := w.send(t, "POST", "/threads", "{}")
		if through := resp.Header.Get("X-Through") != ""; resp.StatusCode != 401 || through == authFirst {
			t.Errorf("auth first %v, nobody: got %d, through middleware %v", authFirst, resp.StatusCode, through)
		}
		resp, body := w.send(t, "POST", "/threads", `{"metadata":{"owner":"ada"}}`, "Authorization", "Bearer ada")
		if resp.StatusCode != 200 || resp.Header.Get("X-Through") == "" {
			t.Errorf("auth first %v, a user: got %d %s", authFirst, resp.StatusCode, body)
		}
		if resp, _ := w.send(t, "GET", "/info", ""); resp.StatusCode != 200 {
			t.Errorf("auth first %v, /info: got %d", authFirst, resp.StatusCode)
		}
		if resp, body := w.send(t, "GET", "/mine", ""); resp.StatusCode != 200 || !strings.HasPrefix(body, "mine") {
			t.Errorf("auth first %v, an open route: got %d %s", authFirst, resp.StatusCode, body)
		}
	}
}

// inside makes a request of user code and returns what it is answered.
func inside(x agent.Exchange, err error, body string) (int, string) {
	if err != nil {
		return 0, err.Error()
	}
	go func() { _ = x.Send(context.Background(), agent.Part{Data: []byte(body), End: true}) }()
	r, err := x.Response(context.Background())
	if err != nil {
		return 0, err.Error()
	}
	return r.Status, received(x)
}

func TestUserCodeTalksToItsOwnServerWithTheRightsOfItsRun(t *testing.T) {
	t.Parallel()
	type said struct {
		status int
		body   string
	}
	got := make(chan said, 10)
	w := newAppWorld(t, site{
		info: agent.PartInfo{Routes: []agent.AppRoute{route1("/mine", "GET")}}, users: users(),
		app: func(x agent.Exchange) { answer(x, 200, "mine") },
		graph: func(_ context.Context, r *workerfake.Run) agent.Done {
			for _, q := range []agent.HTTPRequest{
				{Method: "POST", Target: "/threads/search", Headers: [][2]string{{"content-type", "application/json"}}},
				{Method: "GET", Target: "/mine"},
				{Method: "POST", Target: "/threads/search", Inner: true},
				{Method: "GET", Target: "/ws", WebSocket: true},
				{Method: "GET", Target: "::"},
			} {
				x, err := r.Request(q)
				status, body := inside(x, err, `{"limit":5}`)
				got <- said{status, body}
			}
			return r.Success("1f000000-0000-6000-8000-000000000001", `{}`)
		},
	})
	for _, who := range []string{"ada", "ben"} {
		if resp, body := w.send(t, "POST", "/threads", `{"metadata":{"owner":"`+who+`","of":"`+who+`"}}`, "Authorization", "Bearer "+who); resp.StatusCode != 200 {
			t.Fatalf("got %d %s", resp.StatusCode, body)
		}
	}
	w.send(t, "POST", "/runs/wait", `{"assistant_id":"g","input":{}}`, "Authorization", "Bearer ben")
	if s := <-got; s.status != 200 || !strings.Contains(s.body, `"of":"ben"`) || strings.Contains(s.body, `"of":"ada"`) {
		t.Errorf("threads of the run's user: got %d %s", s.status, s.body)
	}
	if s := <-got; s.status != 200 || s.body != "mine" {
		t.Errorf("the app's own route: got %d %s", s.status, s.body)
	}
	if s := <-got; s.status != 401 {
		t.Errorf("an inner request of nobody: got %d %s", s.status, s.body)
	}
	if s := <-got; s.status != 404 {
		t.Errorf("a WebSocket: got %d", s.status)
	}
	if s := <-got; s.status != 400 {
		t.Errorf("no path: got %d %s", s.status, s.body)
	}
	worker := w.pool.Workers()[0]
	x, err := worker.Request(agent.HTTPRequest{Method: "POST", Target: "/threads/search"}, "", nil)
	if status, body := inside(x, err, `{}`); status != 200 || !strings.Contains(body, `"of":"ada"`) || !strings.Contains(body, `"of":"ben"`) {
		t.Errorf("the application itself, outside of runs: got %d %s", status, body)
	}
	large := `{"metadata":{"note":"` + strings.Repeat("n", 400_000) + `"}}`
	x, err = worker.Request(agent.HTTPRequest{Method: "POST", Target: "/threads"}, "", nil)
	if status, body := inside(x, err, large); status != 200 || len(body) < len(large) {
		t.Errorf("bodies larger than the window: got %d with %d bytes", status, len(body))
	}
	x, err = worker.Request(agent.HTTPRequest{Method: "POST", Target: "/runs/stream", Headers: [][2]string{{"authorization", "x"}}}, "", nil)
	if status, body := inside(x, err, `{"assistant_id":"g","input":{}}`); status != 200 || !strings.Contains(body, "event: end") {
		t.Errorf("a stream: got %d %s", status, body)
	}
}

func TestAnInnerRequestActsForTheOuterOnesUser(t *testing.T) {
	t.Parallel()
	var pool *workerfake.Pool
	strip := func(x agent.Exchange) { // middleware that takes the credentials off
		q := x.Request()
		q.Inner, q.Headers = true, nil
		in, err := pool.Workers()[0].Request(q, "", x)
		status, body := inside(in, err, received(x))
		answer(x, status, body)
	}
	w := newAppWorld(t, site{
		info: agent.PartInfo{Routes: []agent.AppRoute{}, Middleware: true}, app: strip, users: users(),
		api: agentapi.Config{App: agentapi.AppConfig{AuthFirst: true}},
	})
	pool = w.pool
	if resp, body := w.send(t, "POST", "/threads", "{}", "Authorization", "Bearer ada"); resp.StatusCode != 200 {
		t.Errorf("got %d %s", resp.StatusCode, body)
	}
}

func TestCORSAsConfigured(t *testing.T) {
	t.Parallel()
	no, age := false, 7
	api := agentapi.New(&fake{}, agentapi.Config{
		AllowOrigins: []string{"http://a"}, FixedCORS: true,
		CORS: agentapi.CORS{
			OriginPattern: regexp.MustCompile(`http://.*\.b`), Methods: []string{"GET", "POST"}, Headers: []string{"x-a"}, Expose: []string{"x-e"},
			Credentials: &no, MaxAge: &age,
		},
	})
	ask := func(method, origin string) http.Header {
		w, r := httptest.NewRecorder(), httptest.NewRequest(method, "/ok", nil)
		r.Header.Set("Origin", origin)
		r.Header.Set("Access-Control-Request-Method", "GET")
		r.Header.Set("Access-Control-Request-Headers", "x-z")
		api.ServeHTTP(w, r)
		return w.Header()
	}
	for origin, want := range map[string]string{"http://a": "http://a", "http://x.b": "http://x.b", "http://x.b.evil": "", "http://c": ""} {
		if got := ask("GET", origin).Get("Access-Control-Allow-Origin"); got != want {
			t.Errorf("%s: got %q, want %q", origin, got, want)
		}
	}
	h := ask("OPTIONS", "http://a")
	for name, want := range map[string]string{
		"Access-Control-Allow-Methods": "GET, POST", "Access-Control-Allow-Headers": "x-a", "Access-Control-Max-Age": "7",
		"Access-Control-Allow-Credentials": "",
		"Access-Control-Expose-Headers":    "content-location, location, x-pagination-total, x-pagination-next, x-request-id, x-e",
	} {
		if got := h.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestHeadersThatReachRuns(t *testing.T) {
	t.Parallel()
	f := &fake{}
	h := agentapi.New(f, agentapi.Config{ConfigurableHeaders: agentapi.HeaderRule{
		Includes: []string{"X-User-*", "x-plain", "*-end"}, Excludes: []string{"x-user-secret", "the-*"},
	}})
	r := httptest.NewRequest("POST", "/runs", strings.NewReader(`{"assistant_id":"g","config":{"tags":["t"],"configurable":{"x-plain":"body","n":12345678901234567890}}}`))
	for name, value := range map[string]string{
		"X-User-Id": "7", "X-User-Secret": "s", "X-Plain": "head", "Other": "o", "An-End": "e", "The-End": "no", "Authorization": "Bearer x",
	} {
		r.Header.Set(name, value)
	}
	h.ServeHTTP(httptest.NewRecorder(), r)
	var got struct {
		Tags         []string
		Configurable map[string]json.RawMessage
	}
	if err := json.Unmarshal(f.request.Config, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"x-user-id": `"7"`, "x-plain": `"head"`, "an-end": `"e"`, "n": "12345678901234567890"}
	if len(got.Configurable) != len(want) || len(got.Tags) != 1 {
		t.Errorf("got %s", f.request.Config)
	}
	for name, value := range want {
		if string(got.Configurable[name]) != value {
			t.Errorf("%s: got %s, want %s", name, got.Configurable[name], value)
		}
	}
	for _, path := range []string{"/runs", "/runs/stream"} { // without a config of the body's
		f, body := &fake{}, `{"assistant_id":"g"}`
		h := agentapi.New(f, agentapi.Config{ConfigurableHeaders: agentapi.HeaderRule{Includes: []string{"x-a"}}})
		r := httptest.NewRequest("POST", path, strings.NewReader(body))
		r.Header.Set("X-A", "1")
		h.ServeHTTP(httptest.NewRecorder(), r)
		if string(f.request.Config) != `{"configurable":{"x-a":"1"}}` {
			t.Errorf("%s: got %s", path, f.request.Config)
		}
	}
}

func TestGroupsOfRoutesThatAreSwitchedOff(t *testing.T) {
	t.Parallel()
	for group, paths := range map[string][]string{
		"assistants": {"POST /assistants/search", "GET /assistants/g"},
		"threads":    {"POST /threads", "GET /threads/" + thread},
		"runs":       {"POST /runs", "GET /threads/" + thread + "/runs", "POST /runs/crons/search"},
		"store":      {"GET /store/items"},
		"ui":         {"POST /ui/agent", "GET /ui/agent/entrypoint.js"},
		"meta":       {"GET /info", "GET /docs", "GET /openapi.json", "GET /metrics"},
	} {
		api := agentapi.New(&fake{}, agentapi.Config{Disable: []string{group}})
		for _, call := range append(paths, "GET /ok") {
			method, path, _ := strings.Cut(call, " ")
			w := httptest.NewRecorder()
			api.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader("{}")))
			if missing := w.Code == 404 && strings.Contains(w.Body.String(), `"Not Found"`); missing != (call != "GET /ok") {
				t.Errorf("without %s, %s: got %d %s", group, call, w.Code, w.Body)
			}
		}
		for _, route := range api.Routes() {
			if group == "runs" && strings.Contains(route, "/runs") || group != "runs" && strings.Contains(route, " /"+group) && !strings.Contains(route, "/runs") {
				t.Errorf("without %s there is %s", group, route)
			}
		}
	}
}

func TestTheMountPrefixIsOfWholeSegments(t *testing.T) {
	t.Parallel()
	api := agentapi.New(&fake{}, agentapi.Config{MountPrefix: "/agents"})
	for path, want := range map[string]int{"/agents/ok": 200, "/ok": 200, "/agentsok": 404, "/agents": 404, "/docs": 404, "/agents/docs": 200} {
		w := httptest.NewRecorder()
		api.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if w.Code != want {
			t.Errorf("%s: got %d, want %d", path, w.Code, want)
		}
	}
}

func TestPathsOfAppRoutes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		route agent.AppRoute
		hits  []string
		not   []string
	}{
		{route1("/a", "GET"), []string{"/a", "/a?x=1"}, []string{"/a/", "/ab", "/A"}},
		{route1("/a/{id}", "GET"), []string{"/a/1", "/a/%41"}, []string{"/a/", "/a", "/a/1/2"}},
		{route1("/a/{id}.json", "GET"), []string{"/a/1.json", "/a/x.json.json"}, []string{"/a/1", "/a/.json"}},
		{route1("/f/{rest:path}", "GET"), []string{"/f/", "/f/a/b"}, []string{"/f", "/g/a"}},
		{route1("/f/{rest:path}/end", "GET"), []string{"/f/a/b/end", "/f//end"}, []string{"/f/a"}},
		{route1("/{a}/{b}", "GET"), []string{"/x/y"}, []string{"/x", "/x/y/z"}},
		{agent.AppRoute{Path: "/m", Kind: "mount"}, []string{"/m", "/m/x/y"}, []string{"/mm"}},
		{agent.AppRoute{Path: "", Kind: "mount"}, []string{"/", "/x"}, nil},
		{agent.AppRoute{Path: "/w", Kind: "websocket"}, nil, []string{"/w"}},
		{agent.AppRoute{Path: "/broken/{x", Kind: "http"}, nil, []string{"/broken/1"}},
	} {
		w := newAppFront(t, c.route)
		for _, path := range c.hits {
			if got := w(path); got != "app" {
				t.Errorf("%+v: %s: got %s", c.route, path, got)
			}
		}
		for _, path := range c.not {
			if got := w(path); got == "app" {
				t.Errorf("%+v has %s", c.route, path)
			}
		}
	}
}

// newAppFront returns who answers a GET where the app has one route.
func newAppFront(t *testing.T, route agent.AppRoute) func(path string) string {
	t.Helper()
	f := &appFake{info: &agent.PartInfo{Routes: []agent.AppRoute{route}}}
	api := agentapi.New(f, agentapi.Config{App: agentapi.AppConfig{There: true}})
	return func(path string) string {
		f.asked = "built-in"
		api.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", path, nil))
		return f.asked
	}
}

// appFake knows an app and answers nothing.
type appFake struct {
	fake
	info *agent.PartInfo
}

func (f *appFake) App(context.Context) (*agent.PartInfo, error) { return f.info, nil }

func (f *appFake) AppExchange(context.Context, agent.HTTPRequest) (agent.Exchange, error) {
	f.asked = "app"
	return nil, &agent.HTTPRefusal{Status: 418}
}
