package agentapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/store/postgres"
	"github.com/slipway-dev/slipway/store/postgres/pgtest"
	"github.com/slipway-dev/slipway/store/sqlite"
	workerfake "github.com/slipway-dev/slipway/worker/fake"
)

// fuzzSeed makes the requests of the fuzz; change it to try others.
const (
	fuzzSeed = 7
	fuzzers  = 20 // some wait for runs
)

// Ten thousand requests made of the description, right ones and bent ones: none is answered with a server error or with
// what the description does not know, none hangs, and the server works afterwards.
func TestMalformedRequestsAreTheClientsFault(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) closingStore{
		"sqlite": func(t *testing.T) closingStore {
			s, err := sqlite.OpenAgent(filepath.Join(t.TempDir(), "agent.db"))
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
		"postgres": func(t *testing.T) closingStore {
			s, err := postgres.OpenAgent(t.Context(), pgtest.URL(t), "agent_fuzz")
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fuzz(t, newRealServerOn(t, open(t), map[string]workerfake.Graph{"agent": echoGraph}))
		})
	}
}

func fuzz(t *testing.T, s realServer) {
	n := 10000
	if testing.Short() {
		n = 1000
	}
	ids := &pool{known: []string{"0199f0a0-0000-7000-8000-00000000000a", "0199f0a0-0000-7000-8000-00000000000b", "0199F0A0000070008000000000000000"}}
	var wg sync.WaitGroup
	for worker := range fuzzers {
		wg.Go(func() {
			g := generator{spec: readSpec(t), r: rand.New(rand.NewPCG(fuzzSeed, uint64(worker))), ids: ids}
			for range n / fuzzers {
				s.hit(t, g.request(), ids)
			}
		})
	}
	wg.Wait()
	s.mu.Lock()
	if s.errors.Len() > 0 {
		t.Errorf("logged errors:\n%.3000s", s.errors.String())
	}
	s.mu.Unlock()
	if got := s.body(t, "POST", "/runs/wait", `{"assistant_id":"agent","input":{"still":"here"}}`); got != `200 {"still":"here"}` {
		t.Errorf("afterwards: got %s", got)
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.HeapAlloc > 300<<20 { // both databases' servers and clients
		t.Errorf("%d MB are in use after %d requests", m.HeapAlloc>>20, n)
	}
}

// pool are ids that the server has told, so that requests hit what is there.
type pool struct {
	mu    sync.Mutex
	known []string
}

var idForm = regexp.MustCompile(`"(?:thread_id|run_id|cron_id|checkpoint_id|assistant_id)":"([0-9a-f-]{36})"`)

func (p *pool) learn(answer []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range idForm.FindAllSubmatch(answer, 4) {
		if len(p.known) < 200 && !slices.Contains(p.known, string(m[1])) {
			p.known = append(p.known, string(m[1]))
		}
	}
}

func (p *pool) one(r *rand.Rand) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known[r.IntN(len(p.known))]
}

// generator makes requests of the description.
type generator struct {
	spec spec
	r    *rand.Rand
	ids  *pool
}

type generated struct {
	method, path, body string
	header             http.Header
}

func (g generator) request() generated {
	paths := sortedKeys(g.spec.Paths)
	path := paths[g.r.IntN(len(paths))]
	methods := sortedKeys(g.spec.Paths[path])
	method := methods[g.r.IntN(len(methods))]
	c := g.spec.Paths[path][method]
	out := generated{method: strings.ToUpper(method), path: g.path(path), header: http.Header{}}
	query := url.Values{}
	for _, p := range c.Parameters {
		switch {
		case p.In == "query" && g.r.IntN(2) == 0:
			query.Add(p.Name, g.queryText(p.Schema))
		case p.In == "header" && g.r.IntN(2) == 0:
			out.header.Set(p.Name, []string{"-1", "-", "1-0", "return=minimal", "999999999999999999999", "x y"}[g.r.IntN(6)])
		}
	}
	if len(query) > 0 {
		out.path += "?" + query.Encode()
	}
	if body := g.spec.body(c); body != nil {
		if out.body = g.value(body, 0); g.r.IntN(2) == 0 {
			out.body = bend(g.r, out.body)
		}
	}
	if g.r.IntN(10) == 0 {
		out.header.Set("Content-Type", []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "\x7f"}[g.r.IntN(4)])
		out.header.Set("X-Request-Id", strings.Repeat("r", g.r.IntN(5000)))
	}
	return out
}

func (g generator) path(template string) string {
	bad := []string{"x", "%00", "..%2f", "0199f0a0-0000-7000-8000-00000000000", strings.Repeat("9", 5000), "%ff", "0199f0a0-0000-7000-8000-00000000000g", "%25", "crons", "%F0%9F%9A%A2"}
	return pathParameterForm.ReplaceAllStringFunc(template, func(p string) string {
		switch {
		case g.r.IntN(8) == 0:
			return bad[g.r.IntN(len(bad))]
		case p == "{assistant_id}" && g.r.IntN(2) == 0:
			return "agent"
		case p == "{namespace}":
			return "sub%7Ca"
		}
		return g.ids.one(g.r)
	})
}

var pathParameterForm = regexp.MustCompile(`\{[a-z_]+\}`)

func (g generator) queryText(one shape) string {
	if g.r.IntN(3) == 0 {
		return []string{"-1", "x", "\x00", "99999999999999999999", "[", `["a"`, "a,b", "", "%", strings.Repeat("é", 3000)}[g.r.IntN(10)]
	}
	var text string
	value := g.value(one, 3)
	if json.Unmarshal([]byte(value), &text) == nil {
		return text
	}
	return value
}

// value is JSON of a shape, as a rule; deep down there are fewer members.
func (g generator) value(one shape, depth int) string {
	choices := g.spec.choices(one)
	c := choices[g.r.IntN(len(choices))]
	if enum, ok := c["enum"].([]any); ok {
		raw, _ := json.Marshal(enum[g.r.IntN(len(enum))])
		return string(raw)
	}
	kind, _ := c["type"].(string)
	if kinds, ok := c["type"].([]any); ok {
		kind = kinds[g.r.IntN(len(kinds))].(string)
	}
	switch kind {
	case "object":
		return g.object(c, depth)
	case "array":
		items, _ := c["items"].(map[string]any)
		return "[" + strings.Join(g.several(func() string { return g.value(items, depth+1) }, 3), ",") + "]"
	case "string":
		return g.text(c)
	case "integer", "number":
		return []string{"0", "1", "2", "10", "1000", "0.001"}[g.r.IntN(6)]
	case "boolean":
		return []string{"true", "false"}[g.r.IntN(2)]
	case "null":
		return "null"
	}
	return []string{"null", "1", `"x"`, `{"x":1}`, `[["a",1]]`, `{"messages":[{"type":"human","content":"hi"}]}`}[g.r.IntN(6)]
}

func (g generator) several(make func() string, most int) []string {
	var out []string
	for range g.r.IntN(most + 1) {
		out = append(out, make())
	}
	return out
}

func (g generator) text(c shape) string {
	switch c["format"] {
	case "uuid":
		return `"` + g.ids.one(g.r) + `"`
	case "date-time":
		return `"2030-01-01T00:00:00Z"`
	case "uri-reference":
		return `"https://example.com/hook"`
	}
	some := []string{"agent", "a", "", "values.x", "k", "* * * * *", "Europe/Berlin", "values.messages[-1]", "é\U0001F6A2", `\u0000`, "%", "a.b"}
	return `"` + some[g.r.IntN(len(some))] + `"`
}

func (g generator) object(c shape, depth int) string {
	properties, _ := c["properties"].(map[string]any)
	if properties == nil {
		return []string{`{}`, `{"x":1}`, `{"graph_id":"agent"}`, `{"a":{"$gt":0}}`, `{"__x":1}`, `{"configurable":{"checkpoint_id":"c"}}`}[g.r.IntN(6)]
	}
	required, _ := c["required"].([]any)
	var parts []string
	for _, name := range sortedKeys(properties) {
		needed := slices.Contains(required, any(name))
		switch {
		case !needed && g.r.IntN(2+2*depth) != 0:
		case name == "assistant_id" && g.r.IntN(4) != 0:
			parts = append(parts, `"assistant_id":"agent"`)
		case name == "after_seconds": // who waits for the run must not wait for long
			parts = append(parts, `"after_seconds":0.001`)
		case name == "schedule":
			parts = append(parts, `"schedule":"0 0 1 1 *"`)
		default:
			parts = append(parts, fmt.Sprintf("%q:%s", name, g.value(properties[name].(map[string]any), depth+1)))
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func (s realServer) hit(t *testing.T, g generated, ids *pool) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, g.method, s.URL+g.path, strings.NewReader(g.body))
	if err != nil {
		return // net/http does not send such a path
	}
	req.Header = g.header
	res, err := s.Client().Do(req)
	if err != nil {
		if !strings.Contains(err.Error(), "invalid header") {
			t.Errorf("%s %.200s %.300q: %v", g.method, g.path, g.body, err)
		}
		return
	}
	defer res.Body.Close()
	if res.Header.Get("Content-Type") == "text/event-stream" && strings.HasPrefix(g.path, "/threads/") && !strings.Contains(g.path, "/runs") {
		return // a thread's stream has no end
	}
	answer, err := io.ReadAll(res.Body)
	if res.StatusCode >= 500 || err != nil {
		t.Errorf("%s %.200s %.300q: got %d %.300s (%v)", g.method, g.path, g.body, res.StatusCode, answer, err)
	}
	if res.StatusCode >= 400 && !bytes.HasPrefix(answer, []byte(`{"detail":"`)) {
		t.Errorf("%s %.200s: error body %.200s", g.method, g.path, answer)
	}
	ids.learn(answer)
}
