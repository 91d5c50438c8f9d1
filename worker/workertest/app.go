package workertest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/agent"
)

// RunApp checks what pools promise of the application's HTTP app (agent.PartApp). open returns a pool that has not been
// started, with one worker whose app has these routes and a middleware for none of them:
//
//	GET  /hello/{name}  "hello NAME Q" with the query's q, the status 201 and the header x-app: yes
//	POST /echo          the body of the request
//	GET  /ticks         "tick\n" again and again, until the client leaves
//	GET  /loop          what the own server answers to GET /from-inside
//	WS   /ws            every message back; after the text "bye" it closes with 4001 "bye"
func RunApp(t *testing.T, open func(t *testing.T) agent.Workers) {
	cases := map[string]func(*testing.T, agent.Worker){
		"the app's routes are told":                appIsTold,
		"a request is answered":                    appAnswers,
		"a body larger than the window comes back": appEchoes,
		"a stream comes as it is made":             appStreams,
		"an unknown path is passed":                appPasses,
		"a WebSocket carries messages":             appSocket,
		"user code asks its own server":            appLoops,
	}
	pool, h := open(t), &serverEar{ear: ear{up: make(chan agent.Worker, 100), down: make(chan error, 100)}}
	if err := pool.Start(h); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Stop)
	w := receive(t, h.up, "worker")
	for name, check := range cases {
		t.Run(name, func(t *testing.T) { check(t, w) })
	}
}

// serverEar is an ear that answers what user code asks.
type serverEar struct{ ear }

// WorkerRequest answers with the request's target.
func (e *serverEar) WorkerRequest(_ agent.Worker, x agent.Exchange) {
	_ = x.Respond(agent.HTTPResponse{Status: 200, Headers: [][2]string{{"content-type", "text/plain"}}})
	_ = x.Send(context.Background(), agent.Part{Data: []byte("inside " + x.Request().Target), End: true})
	<-x.Done()
}

func appIsTold(t *testing.T, w agent.Worker) {
	app := w.Info().Loaded(agent.PartApp)
	if app == nil || app.Middleware {
		t.Fatalf("got %+v of %+v", app, w.Info().Parts[agent.PartApp])
	}
	for _, want := range []string{"/hello/{name}", "/echo", "/ticks", "/ws"} {
		found := false
		for _, r := range app.Routes {
			found = found || r.Path == want
		}
		if !found {
			t.Errorf("there is no %s in %+v", want, app.Routes)
		}
	}
}

// ask begins a request, which the test ends if nobody else does.
func ask(t *testing.T, w agent.Worker, method, target, body string) (agent.Exchange, agent.HTTPResponse) {
	t.Helper()
	x, err := w.Exchange(agent.HTTPRequest{
		Method: method, Target: target, Scheme: "http", Client: "127.0.0.1:1", Headers: [][2]string{{"host", "api"}, {"content-type", "text/plain"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.HangUp(0, "the test is over") })
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	t.Cleanup(cancel)
	go func() { _ = x.Send(ctx, agent.Part{Data: []byte(body), End: true}) }()
	r, err := x.Response(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return x, r
}

// all reads an answer to its end.
func all(t *testing.T, x agent.Exchange) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	var b bytes.Buffer
	for {
		p, err := x.Receive(ctx)
		if errors.Is(err, io.EOF) {
			return b.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		b.Write(p.Data)
	}
}

func appAnswers(t *testing.T, w agent.Worker) {
	x, r := ask(t, w, "GET", "/hello/ad%C3%A9?q=a%20b", "")
	app := ""
	for _, h := range r.Headers {
		if strings.EqualFold(h[0], "x-app") {
			app = h[1]
		}
	}
	if got := all(t, x); r.Status != 201 || app != "yes" || got != "hello adé a b" {
		t.Errorf("got %+v %q", r, got)
	}
	<-x.Done()
}

func appEchoes(t *testing.T, w agent.Worker) {
	body := strings.Repeat("0123456789", 100_000)
	x, r := ask(t, w, "POST", "/echo", body)
	if got := all(t, x); r.Status != 200 || got != body {
		t.Errorf("got %d with %d bytes, want %d", r.Status, len(got), len(body))
	}
}

func appStreams(t *testing.T, w agent.Worker) {
	x, r := ask(t, w, "GET", "/ticks", "")
	for range 3 {
		p, err := x.Receive(t.Context())
		if err != nil || r.Status != 200 || !strings.HasPrefix(string(p.Data), "tick") {
			t.Errorf("got %d %q, %v", r.Status, p.Data, err)
		}
	}
	x.HangUp(0, "seen enough")
}

func appPasses(t *testing.T, w agent.Worker) {
	if _, r := ask(t, w, "GET", "/nowhere", ""); !r.Pass {
		t.Errorf("got %+v", r)
	}
}

func appLoops(t *testing.T, w agent.Worker) {
	x, r := ask(t, w, "GET", "/loop", "")
	if got := all(t, x); r.Status != 200 || !strings.Contains(got, "inside /from-inside") {
		t.Errorf("got %d %q", r.Status, got)
	}
}

func appSocket(t *testing.T, w agent.Worker) {
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	x, err := w.Exchange(agent.HTTPRequest{Method: "GET", Target: "/ws", Scheme: "http", WebSocket: true, Headers: [][2]string{
		{"host", "api"}, {"sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="}, {"sec-websocket-version", "13"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := x.Response(ctx); err != nil || r.Status != 101 {
		t.Fatalf("got %+v, %v", r, err)
	}
	for _, m := range []agent.Part{{Data: []byte("hällo"), Text: true}, {Data: bytes.Repeat([]byte{0, 255}, 200_000)}} {
		if err := x.Send(ctx, m); err != nil {
			t.Fatal(err)
		}
		if got, err := x.Receive(ctx); err != nil || !bytes.Equal(got.Data, m.Data) || got.Text != m.Text {
			t.Fatalf("got %d bytes, text %v, %v", len(got.Data), got.Text, err)
		}
	}
	_ = x.Send(ctx, agent.Part{Data: []byte("bye"), Text: true})
	var over *agent.HangUp
	if _, err := x.Receive(ctx); !errors.As(err, &over) || over.Code != 4001 || over.Reason != "bye" {
		t.Errorf("got %v", err)
	}
}
