package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/gateway"
)

func open(t testing.TB, cfg gateway.Config) (*gateway.Gateway, *httptest.Server) {
	t.Helper()
	g := gateway.New(cfg, slog.New(slog.DiscardHandler))
	server := httptest.NewServer(g)
	t.Cleanup(func() { server.Close(); g.Close() })
	return g, server
}

func upstream(t testing.TB, h http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

func get(t testing.TB, url string) (int, string, http.Header) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body), resp.Header
}

func detail(t testing.TB, body string) string {
	t.Helper()
	var doc map[string]string
	if err := json.Unmarshal([]byte(body), &doc); err != nil || doc["detail"] == "" {
		t.Fatalf("body %q has no detail: %v", body, err)
	}
	return doc["detail"]
}

func TestPathsAreStrippedAndTheRevisionIsNamed(t *testing.T) {
	t.Parallel()
	g, server := open(t, gateway.Config{})
	g.Route("desk", "d1", "r1", upstream(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s?%s %s", r.Method, r.URL.EscapedPath(), r.URL.RawQuery, r.Header.Get("X-Forwarded-Prefix"))
	}))
	for path, want := range map[string]string{
		"/d/desk":                      "GET /? /d/desk",
		"/d/desk/":                     "GET /? /d/desk",
		"/d/desk/threads/a%2Fb/x?q=1;": "GET /threads/a%2Fb/x?q=1; /d/desk",
	} {
		status, body, header := get(t, server.URL+path)
		if status != 200 || body != want || header.Get(gateway.RevisionHeader) != "r1" {
			t.Errorf("%s: got %d %q revision %q, want %q", path, status, body, header.Get(gateway.RevisionHeader), want)
		}
	}
}

func TestUnknownAndForgottenDeploymentsAre404(t *testing.T) {
	t.Parallel()
	g, server := open(t, gateway.Config{})
	g.Route("desk", "d1", "r1", upstream(t, func(http.ResponseWriter, *http.Request) {}))
	g.Unroute("d1")
	g.Unroute("nobody")
	for _, path := range []string{"/d/desk/ok", "/d/other/ok", "/d/", "/x"} {
		status, body, _ := get(t, server.URL+path)
		if detail(t, body); status != 404 {
			t.Errorf("%s: got %d %s, want 404", path, status, body)
		}
	}
}

func TestRequestsWaitForTheFirstRoute(t *testing.T) {
	t.Parallel()
	g, server := open(t, gateway.Config{Wait: time.Minute})
	g.Route("desk", "d1", "", "")
	answers := make(chan string)
	go func() {
		_, body, _ := get(t, server.URL+"/d/desk/x")
		answers <- body
	}()
	g.Route("desk", "d1", "r1", upstream(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "served") }))
	if got := <-answers; got != "served" {
		t.Errorf("got %q", got)
	}
}

func TestWithoutARevisionTheAnswerIs503(t *testing.T) {
	t.Parallel()
	g, server := open(t, gateway.Config{Wait: 10 * time.Millisecond})
	g.Route("desk", "d1", "", "")
	status, body, header := get(t, server.URL+"/d/desk/x")
	if status != 503 || header.Get("Retry-After") == "" || !strings.Contains(detail(t, body), `"desk"`) {
		t.Errorf("got %d %v %s", status, header, body)
	}
}

func TestARefusedRequestGoesToTheNewRouteWithItsBody(t *testing.T) {
	t.Parallel()
	g, server := open(t, gateway.Config{Wait: time.Minute})
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead.Close()
	g.Route("desk", "d1", "r1", "http://"+dead.Addr().String())
	answers := make(chan string)
	go func() {
		resp, err := http.Post(server.URL+"/d/desk/runs", "text/plain", strings.NewReader("the body"))
		if err != nil {
			answers <- err.Error()
			return
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		answers <- string(body) + " by " + resp.Header.Get(gateway.RevisionHeader)
	}()
	g.Route("desk", "d1", "r2", upstream(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
	if got := <-answers; got != "the body by r2" {
		t.Errorf("got %q", got)
	}
}

func TestStreamsAreRelayedAsTheyCome(t *testing.T) {
	t.Parallel()
	g, server := open(t, gateway.Config{})
	turn := make(chan struct{})
	g.Route("desk", "d1", "r1", upstream(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n", i)
			w.(http.Flusher).Flush()
			<-turn // the next one is sent only after this one arrived
		}
	}))
	resp, err := http.Get(server.URL + "/d/desk/stream")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := g.InFlight("d1", "r1"); got != 1 {
		t.Errorf("in flight: got %d, want 1", got)
	}
	lines := bufio.NewScanner(resp.Body)
	for i := range 3 {
		if !lines.Scan() || lines.Text() != fmt.Sprintf("data: %d", i) {
			t.Fatalf("line %d: got %q, %v", i, lines.Text(), lines.Err())
		}
		turn <- struct{}{}
	}
}

func TestAClientThatLeavesEndsTheUpstreamRequest(t *testing.T) {
	t.Parallel()
	g, server := open(t, gateway.Config{})
	began, left := make(chan struct{}), make(chan struct{})
	g.Route("desk", "d1", "r1", upstream(t, func(_ http.ResponseWriter, r *http.Request) {
		close(began)
		<-r.Context().Done()
		close(left)
	}))
	ctx, cancel := context.WithCancel(t.Context())
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/d/desk/wait", nil)
	go func() {
		if resp, err := http.DefaultClient.Do(req); err == nil {
			resp.Body.Close()
		}
	}()
	<-began
	cancel()
	<-left
}

func TestUpgradesPass(t *testing.T) {
	t.Parallel()
	g, server := open(t, gateway.Config{})
	g.Route("desk", "d1", "r1", upstream(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		rw.Flush()
		line, _ := rw.ReadString('\n')
		fmt.Fprint(rw, "echo "+line)
		rw.Flush()
	}))
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET /d/desk/ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, nil)
	if err != nil || resp.StatusCode != 101 {
		t.Fatalf("got %v, %v", resp, err)
	}
	fmt.Fprint(conn, "hello\n")
	if line, _ := r.ReadString('\n'); line != "echo hello\n" || resp.Header.Get(gateway.RevisionHeader) != "r1" {
		t.Errorf("got %q, revision %q", line, resp.Header.Get(gateway.RevisionHeader))
	}
}

func TestOneNameLeadsToTheFirstDeploymentUntilItIsForgotten(t *testing.T) {
	t.Parallel()
	g, server := open(t, gateway.Config{})
	for _, id := range []string{"d1", "d2"} {
		g.Route("desk", id, "r-"+id, upstream(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, id) }))
	}
	_, before, _ := get(t, server.URL+"/d/desk/")
	g.Unroute("d1")
	_, after, _ := get(t, server.URL+"/d/desk/")
	if before != "d1" || after != "d2" {
		t.Errorf("got %s, then %s", before, after)
	}
}

// TestSwitchUnderLoad switches ten times while 2 000 requests are made and 50 streams are open (quality P6).
func TestSwitchUnderLoad(t *testing.T) {
	t.Parallel()
	g, server := open(t, gateway.Config{Wait: time.Minute})
	const streams, requests, clients, switches = 50, 2000, 20, 10
	finish := make(chan struct{})
	revision := func() *httptest.Server {
		return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/stream" {
				fmt.Fprintln(w, "first")
				w.(http.Flusher).Flush()
				<-finish
				fmt.Fprintln(w, "last")
				return
			}
			_, _ = io.Copy(w, r.Body)
		}))
	}
	first := revision()
	defer first.Close()
	g.Route("desk", "d1", "r0", first.URL)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	defer client.CloseIdleConnections()

	var open, all sync.WaitGroup
	var failed atomic.Int64
	fail := func(what string, err error) {
		if failed.Add(1) <= 5 {
			t.Errorf("%s: %v", what, err)
		}
	}
	for range streams {
		open.Add(1)
		all.Go(func() {
			resp, err := client.Get(server.URL + "/d/desk/stream")
			open.Done()
			if err != nil {
				fail("stream", err)
				return
			}
			defer resp.Body.Close()
			if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "first\nlast\n" {
				fail("stream", fmt.Errorf("%q, %w", body, err))
			}
		})
	}
	open.Wait()
	var done atomic.Int64
	steps := make(chan struct{}, switches)
	for c := range clients {
		all.Go(func() {
			for i := range requests / clients {
				want := fmt.Sprintf("%d-%d", c, i)
				resp, err := client.Post(server.URL+"/d/desk/echo", "text/plain", strings.NewReader(want))
				if err != nil {
					fail("request", err)
					continue
				}
				body, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil || resp.StatusCode != 200 || string(body) != want {
					fail("request", fmt.Errorf("%d %q, %w", resp.StatusCode, body, err))
				}
				if done.Add(1)%(requests/switches) == 0 {
					steps <- struct{}{}
				}
			}
		})
	}
	old, oldID := (*httptest.Server)(nil), ""
	for i := range switches {
		<-steps
		next, id := revision(), fmt.Sprintf("r%d", i+1)
		g.Route("desk", "d1", id, next.URL)
		if old != nil { // drained: wait until the gateway says that nobody is with it, as the listener's pause does
			for g.InFlight("d1", oldID) > 0 {
				time.Sleep(time.Millisecond)
			}
			old.Close()
		}
		old, oldID = next, id
	}
	if got := g.InFlight("d1", "r0"); got < streams {
		t.Errorf("streams with the first revision: got %d, want %d", got, streams)
	}
	close(finish)
	all.Wait()
	old.Close()
	if failed.Load() > 0 {
		t.Errorf("%d of %d requests and %d streams failed", failed.Load(), requests, streams)
	}
}

// BenchmarkGateway measures a request through the gateway; BenchmarkDirect the same one without it.
func BenchmarkGateway(b *testing.B) {
	g, server := open(b, gateway.Config{})
	g.Route("desk", "d1", "r1", upstream(b, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") }))
	benchmark(b, server.URL+"/d/desk/ok")
}

// BenchmarkDirect is the baseline of BenchmarkGateway.
func BenchmarkDirect(b *testing.B) {
	benchmark(b, upstream(b, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })+"/ok")
}

func benchmark(b *testing.B, url string) {
	b.ReportAllocs()
	for b.Loop() {
		resp, err := http.Get(url)
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
}

// closingBody is an incoming body as the HTTP server closes it: once the answer begins, reading on is an error.
type closingBody struct{ io.Reader }

func (b closingBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if n == 0 && errors.Is(err, io.EOF) {
		return 0, http.ErrBodyReadAfterClose
	}
	return n, err
}

func (closingBody) Close() error { return nil }

func TestABodyIsNotReadBeyondItsEnd(t *testing.T) {
	t.Parallel()
	g, _ := open(t, gateway.Config{})
	g.Route("desk", "d1", "r1", upstream(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_ = http.NewResponseController(w).Flush()
		_, _ = w.Write(body)
	}))
	for range 20 {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/d/desk/echo", closingBody{strings.NewReader("hello")})
		r.ContentLength = 5
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		if w.Code != http.StatusOK || w.Body.String() != "hello" {
			t.Fatalf("answer is %d %q, want 200 with the whole body", w.Code, w.Body)
		}
	}
}
