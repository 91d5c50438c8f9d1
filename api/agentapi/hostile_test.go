package agentapi_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

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

type closingStore interface {
	agent.Store
	io.Closer
}

// realServer is the handler over the real engine, store and bus, with scripted workers.
type realServer struct {
	*httptest.Server
	errors *strings.Builder // what was logged at ERROR
	mu     *sync.Mutex
}

func newRealServer(t *testing.T, graphs map[string]workerfake.Graph) realServer {
	t.Helper()
	store, err := sqlite.OpenAgent(filepath.Join(t.TempDir(), "agent.db"))
	if err != nil {
		t.Fatal(err)
	}
	return newRealServerOn(t, store, graphs)
}

func newRealServerOn(t *testing.T, store closingStore, graphs map[string]workerfake.Graph) realServer {
	t.Helper()
	dir := t.TempDir()
	s := realServer{errors: &strings.Builder{}, mu: &sync.Mutex{}}
	log := slog.New(slog.NewTextHandler(locked{s.errors, s.mu}, &slog.HandlerOptions{Level: slog.LevelError}))
	bus, err := local.Open(filepath.Join(dir, "bus"), "a", log)
	if err != nil {
		t.Fatal(err)
	}
	cfg := engine.Config{Instance: "a", Graphs: map[string]engine.Graph{}, DrainGrace: time.Millisecond, NextDate: schedule.Next}
	for id := range graphs {
		cfg.Graphs[id] = engine.Graph{Language: slipway.Node}
	}
	pool := &workerfake.Pool{Store: store, OnStart: func(p *workerfake.Pool) { p.Add(2000, graphs) }}
	pool.Answer = func(_ context.Context, envelope json.RawMessage) (json.RawMessage, error) {
		if bytes.Contains(envelope, []byte("state.update")) {
			return json.RawMessage(`{"config":{"configurable":{"checkpoint_id":"c"}}}`), nil
		}
		if bytes.Contains(envelope, []byte("state.history")) {
			return json.RawMessage(`[]`), nil
		}
		if bytes.Contains(envelope, []byte("graph.draw")) {
			return json.RawMessage(`{"nodes":[],"edges":[]}`), nil
		}
		return json.RawMessage(`{"values":{"x":1}}`), nil
	}
	ids := func() string { return uuid.Must(uuid.NewV7()).String() }
	e := engine.New(cfg, store, bus, pool, time.Now, ids, log)
	if err := e.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Server = httptest.NewServer(truthful(t, agentapi.New(agentapi.Over(e), agentapi.Config{IDs: ids, Log: log, MaxBody: 4 << 20, UI: cards()})))
	t.Cleanup(func() {
		s.CloseClientConnections()
		if err := e.Drain(context.Background()); err != nil {
			t.Error(err)
		}
		s.Close()
		_ = bus.Close()
		_ = store.Close()
	})
	return s
}

type locked struct {
	w  io.Writer
	mu *sync.Mutex
}

func (l locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

func echoGraph(_ context.Context, r *workerfake.Run) agent.Done {
	input := string(r.Job.Run.Kwargs.Input)
	r.Checkpoint("1f000000-0000-6000-8000-000000000001", input)
	r.Chunk("values", input)
	return r.Success("1f000000-0000-6000-8000-000000000001", input)
}

// bend makes a right request wrong in one way, or leaves it right.
func bend(r *rand.Rand, in string) string {
	odd := []string{
		`null`, `0`, `-1`, `1e400`, `1.5`, `99999999999999999999`, `true`, `""`, `"x"`, `[]`, `{}`, `[[]]`, `[null]`, `{"a":{"b":[1]}}`, `"\u0000"`, `"\ud800"`, "\"\xff\"",
		`"` + strings.Repeat("y", 70000) + `"`, strings.Repeat("[", 400) + strings.Repeat("]", 400), strings.Repeat(`{"a":`, 9000) + "1" + strings.Repeat("}", 9000),
		`"00000000-0000-0000-0000-000000000000"`, `"%"`, `"' OR 1=1 --"`, `{"$gt":{}}`, `{"$and":[]}`, `{"__x":1,"langgraph_plan":2}`, "\"a\x00b\"",
	}
	switch r.IntN(8) {
	case 0: // another value of a member
		colons := indexes(in, `":`)
		if len(colons) == 0 {
			return odd[r.IntN(len(odd))]
		}
		at := colons[r.IntN(len(colons))] + 2
		end := at
		for depth := 0; end < len(in); end++ {
			if c := in[end]; depth == 0 && (c == ',' || c == '}' || c == ']') {
				break
			} else if c == '{' || c == '[' {
				depth++
			} else if c == '}' || c == ']' {
				depth--
			}
		}
		return in[:at] + odd[r.IntN(len(odd))] + in[end:]
	case 1: // cut off
		return in[:r.IntN(len(in)+1)]
	case 2: // a byte
		if len(in) > 0 {
			at := r.IntN(len(in))
			return in[:at] + string([]byte{byte(r.IntN(256))}) + in[at+1:]
		}
	case 3: // a key twice
		return strings.Replace(in, "{", `{"metadata":`+odd[r.IntN(len(odd))]+`,"assistant_id":5,`, 1)
	case 4: // something else entirely
		return odd[r.IntN(len(odd))]
	case 5: // a member more
		return strings.Replace(in, "{", `{"`+string(rune(r.IntN(0x3000)))+`":`+odd[r.IntN(len(odd))]+`,`, 1)
	}
	return in
}

func indexes(s, part string) []int {
	var out []int
	for at := 0; ; {
		i := strings.Index(s[at:], part)
		if i < 0 {
			return out
		}
		out, at = append(out, at+i), at+i+1
	}
}

// A thousand open streams of one run all hear its end, and cost little.
func TestAThousandIdleStreams(t *testing.T) {
	t.Parallel()
	let := make(chan struct{})
	s := newRealServer(t, map[string]workerfake.Graph{"agent": func(ctx context.Context, r *workerfake.Run) agent.Done {
		select {
		case <-let:
		case <-ctx.Done():
		}
		return r.Success("", `{}`)
	}})
	var run struct {
		ID     string `json:"run_id"`
		Thread string `json:"thread_id"`
	}
	s.post(t, "/runs", `{"assistant_id":"agent","input":{},"on_completion":"keep"}`, &run)
	const streams = 1000
	var open, ended sync.WaitGroup
	open.Add(streams)
	for range streams {
		ended.Go(func() { s.follow(t, "/threads/"+run.Thread+"/runs/"+run.ID+"/stream", open.Done) })
	}
	open.Wait()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.HeapInuse > 400<<20 { // both ends of a thousand connections
		t.Errorf("heap: got %d MB in use", m.HeapInuse>>20)
	}
	close(let)
	ended.Wait()
}

func (s realServer) post(t *testing.T, path, body string, into any) {
	t.Helper()
	res, err := s.Client().Post(s.URL+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(into); err != nil {
		t.Fatal(err)
	}
}

// follow reads a stream to its end.
func (s realServer) follow(t *testing.T, path string, opened func()) {
	res, err := s.Client().Get(s.URL + path)
	opened()
	if err != nil {
		t.Error(err)
		return
	}
	defer res.Body.Close()
	if all, err := io.ReadAll(res.Body); err != nil || !strings.Contains(string(all), "event: end") {
		t.Errorf("got %q (%v), want the end", all, err)
	}
}

// A client that asked for cancel and closes its half is gone; one that only stops sending but reads on is not.
func TestAHalfClosedClientDoesNotHoldTheServer(t *testing.T) {
	t.Parallel()
	stopped := make(chan struct{})
	s := newRealServer(t, map[string]workerfake.Graph{"agent": func(ctx context.Context, r *workerfake.Run) agent.Done {
		r.Chunk("values", `1`)
		<-ctx.Done()
		close(stopped)
		return workerfake.Cancelled()
	}})
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	body := `{"assistant_id":"agent","input":{},"on_disconnect":"cancel"}`
	fmt.Fprintf(conn, "POST /runs/stream HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	in := bufio.NewScanner(conn)
	for in.Scan() && in.Text() != "data: 1" {
	}
	_ = conn.(*net.TCPConn).CloseWrite()
	select {
	case <-stopped:
	case <-time.After(time.Minute):
		t.Error("the run of a client that went is still running")
	}
}

func TestHalvesOfSurrogatePairsAreReplaced(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`"\ud83d\ude00"`: `"\ud83d\ude00"`, `"\ud83dx"`: `"\ufffdx"`, `"\ude00\ud83d"`: `"\ufffd\ufffd"`, `"\\ud83d"`: `"\\ud83d"`,
		`"\ud83d\ud83d\ude00"`: `"\ufffd\ud83d\ude00"`, `"\uD800\u0000"`: `"\ufffd\ufffd"`, `"\ud83d`: ``,
	} {
		f := &fake{}
		send(t, f, "POST", "/runs", `{"assistant_id":"a","input":`+in+`}`)
		if got := string(f.request.Input); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

func TestDeepBodiesAreRefused(t *testing.T) {
	t.Parallel()
	nested := func(n int) string { return strings.Repeat("[", n) + `"{[\"["` + strings.Repeat("]", n) }
	for n, want := range map[int]bool{499: true, 500: false} {
		f := &fake{}
		w := send(t, f, "POST", "/runs", `{"assistant_id":"a","input":`+nested(n)+`}`)
		if got := f.request.Input != nil; got != want {
			t.Errorf("%d levels: accepted is %v, want %v: %s", n+1, got, want, w.Body)
		}
	}
}

func TestCheckpointAddressesAreChecked(t *testing.T) {
	t.Parallel()
	for _, member := range []string{
		`"checkpoint":{"checkpoint_id":5}`, `"config":{"configurable":{"checkpoint_ns":[]}}`, `"checkpoint":{"checkpoint_map":"x"}`,
	} {
		f := &fake{}
		send(t, f, "POST", "/runs", `{"assistant_id":"a",`+member+`}`)
		if f.request.AssistantID != "" {
			t.Errorf("%s was accepted", member)
		}
	}
}

// A run that is removed between the look at it and the wait for it is answered like one that was rolled back.
func TestAJoinedRunThatGoesIsAnswered(t *testing.T) {
	t.Parallel()
	f := &fake{waitErr: slipway.Errorf(slipway.CodeNotFound, "Run not found")}
	w := send(t, f, "GET", "/threads/"+thread+"/runs/"+runID+"/join", "")
	if got := strings.TrimSpace(w.Body.String()); got != `{"left":1}` {
		t.Errorf("got %q, want the thread's values", got)
	}
}
