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
	"net/http"
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

// realServer is the handler over the real engine, store and bus, with scripted workers.
type realServer struct {
	*httptest.Server
	errors *strings.Builder // what was logged at ERROR
	mu     *sync.Mutex
}

func newRealServer(t *testing.T, graphs map[string]workerfake.Graph) realServer {
	t.Helper()
	dir := t.TempDir()
	store, err := sqlite.OpenAgent(filepath.Join(dir, "agent.db"))
	if err != nil {
		t.Fatal(err)
	}
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
	s.Server = httptest.NewServer(truthful(t, agentapi.New(agentapi.Over(e), agentapi.Config{IDs: ids, Log: log, MaxBody: 4 << 20})))
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

// route is an endpoint with bodies that are right; the attack bends them.
type route struct{ method, path, body string }

func routes() []route {
	run := `{"assistant_id":"agent","input":{"x":1},"config":{"tags":["a"],"recursion_limit":5,"configurable":{"k":"v","checkpoint_id":null}},"metadata":{"a":1},` +
		`"stream_mode":["values"],"multitask_strategy":"enqueue","if_not_exists":"create","after_seconds":0,"durability":"sync","checkpoint":{"checkpoint_id":"c","checkpoint_ns":""},` +
		`"command":{"resume":1,"update":{"a":1},"goto":"n"},"context":{"c":1},"interrupt_before":["n"],"on_disconnect":"cancel","on_completion":"delete","stream_resumable":true}`
	search := `{"metadata":{"a":1},"values":{"x":1},"status":"idle","limit":5,"offset":0,"sort_by":"created_at","sort_order":"asc","ids":["%t"],"select":["thread_id"],"extract":{"a":"values.x[0].y"}}`
	return []route{
		{"POST", "/threads", `{"thread_id":"%t","metadata":{"graph_id":"agent"},"if_exists":"do_nothing","ttl":{"strategy":"keep_latest","ttl":5}}`},
		{"POST", "/threads", `{"metadata":{"graph_id":"agent"},"ttl":7,"supersteps":[{"updates":[{"values":{"x":1},"as_node":"n"},{"command":{"update":{}},"as_node":"m"}]}]}`},
		{"POST", "/threads/prune", `{"thread_ids":["%t"],"strategy":"keep_latest"}`}, {"GET", "/threads/%t/storage", ""},
		{"POST", "/threads/search", search}, {"POST", "/threads/count", search}, {"GET", "/threads/%t?include=ttl", ""},
		{"PATCH", "/threads/%t", `{"metadata":{"b":[1,{"c":null}]}}`}, {"POST", "/threads/%t/copy", `{}`}, {"DELETE", "/threads/%t", ""},
		{"GET", "/threads/%t/state?subgraphs=1&select=values", ""}, {"GET", "/threads/%t/state/%r", ""},
		{"POST", "/threads/%t/state/checkpoint", `{"checkpoint":{"checkpoint_id":"c","checkpoint_ns":"a|b"},"subgraphs":true,"select":["values.x"]}`},
		{"POST", "/threads/%t/state", `{"values":{"x":1},"as_node":"n","checkpoint":{"checkpoint_id":"c"},"checkpoint_id":"c"}`},
		{"PATCH", "/threads/%t/state", `{"metadata":{"a":1}}`},
		{"GET", "/threads/%t/history?limit=3&before=c", ""},
		{"POST", "/threads/%t/history", `{"limit":3,"before":{"configurable":{"checkpoint_id":"c"}},"metadata":{"a":1},"checkpoint":{"checkpoint_ns":""}}`},
		{"POST", "/threads/%t/runs", run}, {"POST", "/threads/%t/runs/stream?namespace=a", run}, {"POST", "/threads/%t/runs/wait", run},
		{"GET", "/threads/%t/runs?limit=2&offset=0&status=success&select=run_id", ""}, {"GET", "/threads/%t/runs/%r", ""},
		{"GET", "/threads/%t/runs/%r/join?cancel_on_disconnect=0", ""},
		{"GET", "/threads/%t/runs/%r/stream?stream_mode=values&checkpoint_id=1f000000-0000-6000-8000-000000000001", ""},
		{"POST", "/threads/%t/runs/%r/cancel?wait=1&action=interrupt", `{}`}, {"DELETE", "/threads/%t/runs/%r", ""},
		{"POST", "/runs", run}, {"POST", "/runs/stream", run}, {"POST", "/runs/wait", run}, {"POST", "/runs/batch", "[" + run + "," + run + "]"},
		{"GET", "/runs/%r/stream", ""}, {"POST", "/runs/cancel?action=rollback", `{"thread_id":"%t","run_ids":["%r"]}`}, {"POST", "/runs/cancel", `{"status":"all"}`},
		{"POST", "/assistants/search", `{"metadata":{"a":1},"graph_id":"agent","name":"a","limit":2,"offset":0,"sort_by":"name","select":["name"]}`},
		{"POST", "/assistants", `{"assistant_id":"%t","graph_id":"agent","config":{"configurable":{"a":1}},"metadata":{"a":1},"if_exists":"do_nothing","name":"n","description":"d"}`},
		{"PATCH", "/assistants/%t", `{"graph_id":"agent","context":{"a":1},"metadata":{"b":1},"name":"m","description":"e"}`},
		{"POST", "/assistants/%t/versions", `{"metadata":{"a":1},"limit":2,"offset":0}`}, {"POST", "/assistants/%t/latest?version=1", `{"version":1}`},
		{"DELETE", "/assistants/%t?delete_threads=false", ""}, {"POST", "/assistants/count", `{"name":"%"}`}, {"GET", "/assistants/agent", ""},
		{"GET", "/assistants/agent/schemas", ""}, {"GET", "/assistants/agent/graph?xray=2", ""}, {"GET", "/assistants/agent/subgraphs/a%7Cb?recurse=1", ""},
		{"POST", "/runs/crons", `{"schedule":"* * * * *","timezone":"UTC","end_time":"2030-01-01T00:00:00Z","enabled":false,"on_run_completed":"keep",` + run[1:]},
		{"POST", "/threads/%t/runs/crons", `{"schedule":"* * * * *",` + run[1:]}, {"POST", "/runs/crons/search", `{"assistant_id":"agent","thread_id":"%t","enabled":true,"metadata":{"a":1},"limit":2,"sort_by":"next_run_date","select":["cron_id"]}`},
		{"POST", "/runs/crons/count", `{"metadata":{"a":1}}`}, {"GET", "/runs/crons/%r", ""}, {"PATCH", "/runs/crons/%r", `{"schedule":"* * * * *","metadata":{"b":1},"end_time":null}`},
		{"DELETE", "/runs/crons/%r", ""},
		{"PUT", "/store/items", `{"namespace":["a","b"],"key":"k","value":{"v":1},"ttl":5,"index":["$"]}`},
		{"GET", "/store/items?namespace=a.b&key=k&refresh_ttl=true", ""}, {"DELETE", "/store/items", `{"namespace":["a","b"],"key":"k"}`},
		{"POST", "/store/items/search", `{"namespace_prefix":["a"],"filter":{"v":{"$gt":0}},"limit":2,"offset":0,"query":"q","refresh_ttl":false}`},
		{"POST", "/store/namespaces", `{"prefix":["a"],"suffix":["*"],"max_depth":2,"limit":3,"offset":0}`},
		{"GET", "/ok?check_db=1", ""}, {"GET", "/info", ""},
	}
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

// Ten thousand malformed requests: none is answered with a server error, and the server works afterwards.
func TestMalformedRequestsAreTheClientsFault(t *testing.T) {
	t.Parallel()
	n := 10000
	if testing.Short() {
		n = 1000
	}
	s := newRealServer(t, map[string]workerfake.Graph{"agent": echoGraph})
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() { s.attack(t, rand.New(rand.NewPCG(7, uint64(worker))), n/4) })
	}
	wg.Wait()
	s.mu.Lock()
	if s.errors.Len() > 0 {
		t.Errorf("logged errors:\n%.3000s", s.errors.String())
	}
	s.mu.Unlock()
	res, err := s.Client().Post(s.URL+"/runs/wait", "application/json", strings.NewReader(`{"assistant_id":"agent","input":{"still":"here"}}`))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, _ := io.ReadAll(res.Body); strings.TrimSpace(string(body)) != `{"still":"here"}` {
		t.Errorf("afterwards: got %s", body)
	}
}

func (s realServer) attack(t *testing.T, r *rand.Rand, n int) {
	ids := []string{"0199f0a0-0000-7000-8000-00000000000a", "0199f0a0-0000-7000-8000-00000000000b", "0199F0A0000070008000000000000000"}
	bad := []string{"x", "%00", "..%2f", "0199f0a0-0000-7000-8000-00000000000", strings.Repeat("9", 5000), "%ff", "0199f0a0-0000-7000-8000-00000000000g", "%"}
	all := routes()
	for range n {
		one := all[r.IntN(len(all))]
		id, path := ids[r.IntN(len(ids))], one.path
		if r.IntN(6) == 0 {
			id = bad[r.IntN(len(bad))]
		}
		if i := strings.IndexByte(path, '='); i > 0 && r.IntN(4) == 0 {
			path = path[:i+1] + []string{"-1", "x", "%00", "99999999999999999999", "[", `["a"`, "a,b", ""}[r.IntN(8)]
		}
		fill := strings.NewReplacer("%t", id, "%r", ids[0])
		body := bend(r, fill.Replace(one.body))
		s.hit(t, one.method, fill.Replace(path), body, r.IntN(3) == 0)
	}
}

func (s realServer) hit(t *testing.T, method, path, body string, replay bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, s.URL+path, strings.NewReader(body))
	if err != nil {
		return // net/http does not send such a path
	}
	if replay {
		req.Header.Set("Last-Event-ID", "-1")
	}
	res, err := s.Client().Do(req)
	if err != nil {
		t.Errorf("%s %.200s %.300q: %v", method, path, body, err)
		return
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if res.StatusCode >= 500 || err != nil {
		t.Errorf("%s %.200s %.300q: got %d %.300s (%v)", method, path, body, res.StatusCode, answer, err)
	}
	if res.StatusCode >= 400 && !bytes.HasPrefix(answer, []byte(`{"detail":"`)) {
		t.Errorf("%s %.200s: error body %.200s", method, path, answer)
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
