package agentapi_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/uuid"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/api/agentapi"
	"github.com/slipway-dev/slipway/bus/local"
	"github.com/slipway-dev/slipway/engine"
	"github.com/slipway-dev/slipway/schedule"
	"github.com/slipway-dev/slipway/store/sqlite"
	workerfake "github.com/slipway-dev/slipway/worker/fake"
)

// appWorld is a server whose application has an HTTP app, over the real engine with a scripted worker.
type appWorld struct {
	*httptest.Server
	pool *workerfake.Pool
}

// site is what a test says of the world before it starts.
type site struct {
	info  agent.PartInfo // of the app
	app   func(x agent.Exchange)
	graph workerfake.Graph
	// users maps the Authorization header to an identity; nil = everything is open.
	users map[string]string
	api   agentapi.Config
}

func newAppWorld(t *testing.T, s site) *appWorld {
	t.Helper()
	dir := t.TempDir()
	store, err := sqlite.OpenAgent(filepath.Join(dir, "agent.db"))
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	bus, err := local.Open(filepath.Join(dir, "bus"), "a", log)
	if err != nil {
		t.Fatal(err)
	}
	cfg := engine.Config{
		Instance: "a", Graphs: map[string]engine.Graph{"g": {Language: slipway.Node}}, DrainGrace: time.Millisecond, NextDate: schedule.Next,
		Parts: map[slipway.Language][]agent.PartName{slipway.Node: {agent.PartApp}},
	}
	w := &appWorld{pool: &workerfake.Pool{
		Store: store, App: s.app, Parts: map[agent.PartName]*agent.PartInfo{agent.PartApp: &s.info},
	}}
	if s.users != nil {
		cfg.Parts[slipway.Node] = append(cfg.Parts[slipway.Node], agent.PartAuth)
		w.pool.Parts[agent.PartAuth] = &agent.PartInfo{Authenticates: true, Handlers: []string{"threads"}}
		w.pool.AnswerCall = authenticator(s.users)
	}
	if s.graph == nil {
		s.graph = echoGraph
	}
	w.pool.OnStart = func(p *workerfake.Pool) { p.Add(10, map[string]workerfake.Graph{"g": s.graph}) }
	ids := func() string { return uuid.Must(uuid.NewV7()).String() }
	e := engine.New(cfg, store, bus, w.pool, time.Now, ids, log)
	if err := e.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.api.IDs, s.api.Log, s.api.App.There = ids, log, true
	api := agentapi.New(agentapi.Over(e), s.api)
	e.AnswerLoopback(api.ServeExchange)
	w.Server = httptest.NewServer(api)
	t.Cleanup(func() {
		w.CloseClientConnections()
		if err := e.Drain(context.Background()); err != nil {
			t.Error(err)
		}
		w.Close()
		_ = bus.Close()
		_ = store.Close()
	})
	return w
}

// authenticator is an Auth object: who is in the list is let in, and sees the threads of their own.
func authenticator(users map[string]string) func(context.Context, json.RawMessage, []byte) (json.RawMessage, error) {
	return func(_ context.Context, envelope json.RawMessage, _ []byte) (json.RawMessage, error) {
		var call struct {
			Verb    string
			Headers [][2]string
			User    struct{ Identity string }
			Value   json.RawMessage
		}
		if err := json.Unmarshal(envelope, &call); err != nil {
			return nil, err
		}
		if call.Verb == "auth.authorize" {
			return json.RawMessage(`{"allow":true,"filter":{"owner":"` + call.User.Identity + `"},"value":` + string(call.Value) + `}`), nil
		}
		for _, h := range call.Headers {
			if who, ok := users[h[1]]; ok && h[0] == "authorization" {
				return json.RawMessage(`{"identity":"` + who + `","is_authenticated":true,"permissions":[]}`), nil
			}
		}
		return nil, &agent.HTTPRefusal{Status: 401, Detail: "who are you?"}
	}
}

// get sends a request and returns the answer's status and body.
func (w *appWorld) send(t *testing.T, method, path, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, w.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return resp, string(raw)
}

// answer responds to a request with one body.
func answer(x agent.Exchange, status int, body string, headers ...[2]string) {
	_ = x.Respond(agent.HTTPResponse{Status: status, Headers: headers})
	_ = x.Send(context.Background(), agent.Part{Data: []byte(body), End: true})
}

// received reads a body to its end.
func received(x agent.Exchange) string {
	var b bytes.Buffer
	for {
		p, err := x.Receive(context.Background())
		if err != nil {
			return b.String()
		}
		b.Write(p.Data)
	}
}

func header(q agent.HTTPRequest, name string) string {
	for _, h := range q.Headers {
		if h[0] == name {
			return h[1]
		}
	}
	return ""
}

func route1(path string, methods ...string) agent.AppRoute {
	return agent.AppRoute{Path: path, Methods: methods, Kind: "http"}
}

func TestTheAppsOwnRoutesComeBeforeBuiltInOnes(t *testing.T) {
	t.Parallel()
	w := newAppWorld(t, site{
		info: agent.PartInfo{Routes: []agent.AppRoute{route1("/hello/{name}", "GET", "POST"), route1("/info", "GET")}},
		app: func(x agent.Exchange) {
			q := x.Request()
			answer(x, 201, q.Method+" "+q.Target+" "+header(q, "x-a")+" "+received(x), [2]string{"x-b", "é"}, [2]string{"set-cookie", "a=1"}, [2]string{"set-cookie", "b=2"})
		},
	})
	large := strings.Repeat("0123456789", 100_000)
	resp, body := w.send(t, "POST", "/hello/w%20d?q=a%2Fb", large, "X-A", "given")
	if want := "POST /hello/w%20d?q=a%2Fb given " + large; resp.StatusCode != 201 || body != want {
		t.Errorf("got %d with %d bytes, want %d", resp.StatusCode, len(body), len(want))
	}
	if got := resp.Header; got.Get("X-B") != "\xe9" || !slices.Equal(got.Values("Set-Cookie"), []string{"a=1", "b=2"}) || got.Get("X-Request-Id") == "" {
		t.Errorf("headers: got %v", got)
	}
	if resp, body := w.send(t, "GET", "/info", ""); resp.StatusCode != 201 || !strings.HasPrefix(body, "GET /info") {
		t.Errorf("a built-in path that the app has too: got %d %s", resp.StatusCode, body)
	}
	for path, want := range map[string]int{"/ok": 200, "/threads/" + thread: 404, "/hello": 404, "/hello/a/b": 404} {
		if resp, body := w.send(t, "GET", path, ""); resp.StatusCode != want || strings.HasPrefix(body, "GET") {
			t.Errorf("%s: got %d %s, want %d of ours", path, resp.StatusCode, body, want)
		}
	}
	if resp, _ := w.send(t, "DELETE", "/hello/x", ""); resp.StatusCode != 404 {
		t.Errorf("a method the app does not have: got %d", resp.StatusCode)
	}
}

func TestWhatAnOpaqueAppPassesIsOursWithItsBody(t *testing.T) {
	t.Parallel()
	w := newAppWorld(t, site{app: func(x agent.Exchange) {
		if strings.HasPrefix(x.Request().Target, "/mine") {
			answer(x, 200, "mine")
			return
		}
		if strings.HasPrefix(x.Request().Target, "/threads") {
			_, _ = x.Receive(context.Background()) // it looks into the body first
		}
		_ = x.Respond(agent.HTTPResponse{Pass: true})
	}})
	if _, body := w.send(t, "GET", "/mine", ""); body != "mine" {
		t.Errorf("got %s", body)
	}
	note := strings.Repeat("n", 300_000)
	resp, body := w.send(t, "POST", "/threads", `{"metadata":{"note":"`+note+`"}}`)
	if resp.StatusCode != 200 || !strings.Contains(body, note) {
		t.Errorf("a body larger than the window: got %d with %d bytes", resp.StatusCode, len(body))
	}
	if resp, _ := w.send(t, "GET", "/nothing", ""); resp.StatusCode != 404 {
		t.Errorf("got %d", resp.StatusCode)
	}
}

// middleware is an app that wraps everything: it marks what it passes through in both directions.
func middleware(pool **workerfake.Pool) func(x agent.Exchange) {
	return func(x agent.Exchange) {
		q := x.Request()
		if q.Target == "/mine" {
			answer(x, 200, "mine "+string(q.User))
			return
		}
		q.Inner = true
		q.Headers = append(q.Headers, [2]string{"x-marked", "yes"})
		in, err := (*pool).Workers()[0].Request(q, "", x)
		if err != nil {
			answer(x, 500, err.Error())
			return
		}
		go func() {
			_ = in.Send(context.Background(), agent.Part{Data: []byte(received(x)), End: true})
		}()
		r, err := in.Response(context.Background())
		if err != nil {
			answer(x, 500, err.Error())
			return
		}
		r.Headers = append(r.Headers, [2]string{"x-through", "middleware"})
		_ = x.Respond(r)
		for {
			p, err := in.Receive(context.Background())
			if errors.Is(err, io.EOF) {
				_ = x.Send(context.Background(), agent.Part{End: true})
				return
			}
			if err != nil || x.Send(context.Background(), agent.Part{Data: p.Data}) != nil {
				x.HangUp(0, "inner broke off")
				return
			}
		}
	}
}

func TestMiddlewareWrapsEveryRoute(t *testing.T) {
	t.Parallel()
	var pool *workerfake.Pool
	w := newAppWorld(t, site{info: agent.PartInfo{Routes: []agent.AppRoute{route1("/mine", "GET")}, Middleware: true}, app: middleware(&pool)})
	pool = w.pool
	resp, body := w.send(t, "POST", "/threads", `{"metadata":{"a":1}}`)
	if resp.StatusCode != 200 || resp.Header.Get("X-Through") != "middleware" || !strings.Contains(body, `"a":1`) {
		t.Errorf("a built-in route: got %d %v %s", resp.StatusCode, resp.Header, body)
	}
	if len(resp.Header.Values("X-Request-Id")) != 1 {
		t.Errorf("request ids: got %v", resp.Header.Values("X-Request-Id"))
	}
	if _, body := w.send(t, "GET", "/mine", ""); !strings.HasPrefix(body, "mine") {
		t.Errorf("got %s", body)
	}
	if resp, _ := w.send(t, "GET", "/nothing", ""); resp.StatusCode != 404 || resp.Header.Get("X-Through") == "" {
		t.Errorf("what nobody has: got %d %v", resp.StatusCode, resp.Header)
	}
	if resp, _ := w.send(t, "GET", "/ok", ""); resp.StatusCode != 200 || resp.Header.Get("X-Through") != "" {
		t.Errorf("health went through user code: %v", resp.Header)
	}
	resp, body = w.send(t, "POST", "/runs/stream", `{"assistant_id":"g","input":{"x":1}}`)
	if resp.StatusCode != 200 || !strings.Contains(body, "event: end") || resp.Header.Get("X-Through") == "" {
		t.Errorf("a stream: got %d %s", resp.StatusCode, body)
	}
	resp, _ = w.send(t, "OPTIONS", "/threads", "", "Origin", "http://here", "Access-Control-Request-Method", "POST")
	if resp.StatusCode != 204 || resp.Header.Get("Access-Control-Allow-Origin") != "*" || resp.Header.Get("X-Through") == "" {
		t.Errorf("a preflight: got %d %v", resp.StatusCode, resp.Header)
	}
	for _, w := range w.pool.Workers() {
		w.Kill("gone")
	}
	done := make(chan int, 1)
	go func() {
		resp, err := http.Get(w.URL + "/ok")
		if err == nil {
			_ = resp.Body.Close()
			done <- resp.StatusCode
		}
	}()
	if got := <-done; got != 200 {
		t.Errorf("health without a worker: got %d", got)
	}
}

func TestAnAppsStreamIsNotBuffered(t *testing.T) {
	t.Parallel()
	next, ended := make(chan string), make(chan struct{})
	w := newAppWorld(t, site{info: agent.PartInfo{Routes: []agent.AppRoute{route1("/sse")}}, app: func(x agent.Exchange) {
		_ = x.Respond(agent.HTTPResponse{Status: 200, Headers: [][2]string{{"content-type", "text/event-stream"}}})
		for line := range next {
			_ = x.Send(context.Background(), agent.Part{Data: []byte(line + "\n")})
		}
		<-x.Done()
		close(ended)
	}})
	ctx, leave := context.WithCancel(t.Context())
	r, _ := http.NewRequestWithContext(ctx, "GET", w.URL+"/sse", nil)
	resp, err := http.DefaultClient.Do(r) // returns with the headers, before there is a body
	if err != nil || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("got %v, %v", resp, err)
	}
	in := bufio.NewReader(resp.Body)
	for _, line := range []string{"one", "two"} {
		next <- line
		if got, err := in.ReadString('\n'); err != nil || got != line+"\n" {
			t.Errorf("got %q, %v", got, err)
		}
	}
	close(next)
	leave()
	<-ended // the app hears that the client has gone
	_ = resp.Body.Close()
}

func TestAnswersThatBreakOff(t *testing.T) {
	t.Parallel()
	w := newAppWorld(t, site{info: agent.PartInfo{Routes: []agent.AppRoute{route1("/{when}")}}, app: func(x agent.Exchange) {
		switch x.Request().Target {
		case "/early":
			x.HangUp(0, "no")
		case "/late":
			_ = x.Respond(agent.HTTPResponse{Status: 200})
			_ = x.Send(context.Background(), agent.Part{Data: []byte("half")})
			x.HangUp(0, "no")
		case "/odd":
			answer(x, 42, "")
		case "/unread":
			answer(x, 200, "no need of it")
		default:
			answer(x, 200, received(x))
		}
	}, api: agentapi.Config{MaxBody: 1 << 20}})
	if resp, body := w.send(t, "GET", "/early", ""); resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" || !strings.Contains(body, "broke off") {
		t.Errorf("before the answer: got %d %s", resp.StatusCode, body)
	}
	resp, err := http.Get(w.URL + "/late")
	if err != nil {
		t.Fatal(err)
	}
	if raw, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("in the middle: the client takes %q for the whole", raw)
	}
	_ = resp.Body.Close()
	if resp, _ := w.send(t, "GET", "/odd", ""); resp.StatusCode != 500 {
		t.Errorf("no status: got %d", resp.StatusCode)
	}
	if resp, body := w.send(t, "POST", "/unread", strings.Repeat("x", 900_000)); resp.StatusCode != 200 || body != "no need of it" {
		t.Errorf("an answer without reading the body: got %d %s", resp.StatusCode, body)
	}
	if resp, _ := w.send(t, "POST", "/read", strings.Repeat("x", 1<<20+1)); resp.StatusCode != 413 {
		t.Errorf("a body that is too large: got %d", resp.StatusCode)
	}
	r, _ := http.NewRequestWithContext(t.Context(), "POST", w.URL+"/read", io.MultiReader(strings.NewReader(strings.Repeat("x", 1<<20)), strings.NewReader("y")))
	if resp, err := http.DefaultClient.Do(r); err != nil || resp.StatusCode != 413 {
		t.Errorf("one whose length is not told: got %v, %v", resp, err)
	}
}

func TestWebSocketsOfTheApp(t *testing.T) {
	t.Parallel()
	closed := make(chan error, 10)
	w := newAppWorld(t, site{
		info: agent.PartInfo{Routes: []agent.AppRoute{{Path: "/ws/{what}", Kind: "websocket"}, route1("/ws/{what}", "GET")}},
		api:  agentapi.Config{AllowOrigins: []string{"http://good"}},
		app: func(x agent.Exchange) {
			q := x.Request()
			switch {
			case !q.WebSocket:
				answer(x, 200, "plain")
				return
			case q.Target == "/ws/refuse":
				answer(x, 418, "tea only", [2]string{"x-why", "tea"})
				return
			}
			_ = x.Respond(agent.HTTPResponse{Status: 101, Headers: [][2]string{{"sec-websocket-protocol", "b"}, {"x-h", "1"}}})
			for {
				p, err := x.Receive(context.Background())
				if err != nil {
					closed <- err
					return
				}
				if string(p.Data) == "close" {
					x.HangUp(4321, "as you like")
					return
				}
				_ = x.Send(context.Background(), p)
			}
		},
	})
	url := "ws" + strings.TrimPrefix(w.URL, "http")
	dial := func(path, origin string) (*websocket.Conn, *http.Response, error) {
		return websocket.Dial(t.Context(), url+path, &websocket.DialOptions{Subprotocols: []string{"a", "b"}, HTTPHeader: http.Header{"Origin": {origin}}})
	}
	c, resp, err := dial("/ws/echo", "http://good")
	if err != nil || c.Subprotocol() != "b" || resp.Header.Get("X-H") != "1" {
		t.Fatalf("got %v, %v", resp, err)
	}
	c.SetReadLimit(1 << 20)
	for _, m := range []struct {
		kind websocket.MessageType
		data string
	}{{websocket.MessageText, "hällo"}, {websocket.MessageBinary, strings.Repeat("\x00\xff", 200_000)}, {websocket.MessageText, ""}} {
		if err := c.Write(t.Context(), m.kind, []byte(m.data)); err != nil {
			t.Fatal(err)
		}
		if kind, data, err := c.Read(t.Context()); err != nil || kind != m.kind || string(data) != m.data {
			t.Errorf("got %v with %d bytes, %v", kind, len(data), err)
		}
	}
	_ = c.Write(t.Context(), websocket.MessageText, []byte("close"))
	if _, _, err := c.Read(t.Context()); websocket.CloseStatus(err) != 4321 || !strings.Contains(err.Error(), "as you like") {
		t.Errorf("closed by the app: got %v", err)
	}
	c, _, err = dial("/ws/echo", "http://good")
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close(4000, "done")
	var over *agent.HangUp
	if err := <-closed; !errors.As(err, &over) || over.Code != 4000 || over.Reason != "done" {
		t.Errorf("closed by the client: the app got %v", err)
	}
	if _, resp, err := dial("/ws/refuse", "http://good"); err == nil || resp.StatusCode != 418 || resp.Header.Get("X-Why") != "tea" {
		t.Errorf("refused: got %v, %v", resp, err)
	}
	if _, resp, err := dial("/ws/echo", "http://evil"); err == nil || resp.StatusCode != 403 {
		t.Errorf("from another origin: got %v, %v", resp, err)
	}
	if _, resp, err := dial("/threads", "http://good"); err == nil || resp.StatusCode < 400 {
		t.Errorf("where there is none: got %v, %v", resp, err)
	}
	if _, body := w.send(t, "GET", "/ws/x", ""); body != "plain" {
		t.Errorf("the same path without one: got %s", body)
	}
	c, _, err = dial("/ws/echo", "http://good")
	if err != nil {
		t.Fatal(err)
	}
	for _, worker := range w.pool.Workers() {
		worker.Kill("gone")
	}
	if _, _, err := c.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusServiceRestart {
		t.Errorf("its worker has gone: got %v", err)
	}
}
