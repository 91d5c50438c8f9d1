package agentapi_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/engine"
)

// What the application's authenticate handler says is what the client gets (reference 12).
func TestRefusalsOfAuthentication(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		user   string
		err    error
		status int
		body   string
		header string // WWW-Authenticate
	}{
		"own words":            {err: &agent.HTTPRefusal{Status: 418, Detail: "tea", Headers: [][2]string{{"X-Pot", "1"}}}, status: 418, body: "tea"},
		"own headers":          {err: &agent.HTTPRefusal{Status: 401, Detail: "no", Headers: [][2]string{{"WWW-Authenticate", "Digest"}}}, status: 401, body: "no", header: "Digest"},
		"no words":             {err: &agent.HTTPRefusal{Status: 401}, status: 401, body: "Could not validate credentials", header: "Bearer"},
		"forbidden":            {err: &agent.HTTPRefusal{Status: 403, Detail: "banned"}, status: 403, body: "banned"},
		"handler's mistake":    {err: errors.New("KeyError: 'secret-detail'"), status: 500, body: "Internal server error"},
		"invalid call":         {err: slipway.Errorf(slipway.CodeInvalid, "secret-detail"), status: 500, body: "Internal server error"},
		"no identity":          {user: `{"name":"ann"}`, status: 500, body: "Internal server error"},
		"not authenticated":    {user: `{"identity":"ann","is_authenticated":false}`, status: 401, body: "Could not validate credentials", header: "Bearer"},
		"a 200 lets nobody in": {err: &agent.HTTPRefusal{Status: 200, Detail: "fine"}, status: 200, body: "fine"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newAuthServer(t, wild)
			s.greet = func(agent.Authentication, []byte) (string, error) { return c.user, c.err }
			got := s.do("ann", "POST", "/threads", `{}`)
			want := `{"detail":"` + c.body + `"}`
			if got.status != c.status || strings.TrimSpace(got.body) != want || got.header.Get("WWW-Authenticate") != c.header {
				t.Errorf("got %d %s, WWW-Authenticate %q; want %d %s, %q", got.status, got.body, got.header.Get("WWW-Authenticate"), c.status, want, c.header)
			}
			if strings.Contains(got.body, "secret-detail") {
				t.Error("the handler's inside is told to the client")
			}
			if asked := s.takeAsked(); len(asked) > 0 {
				t.Errorf("%v was asked for nobody", asked)
			}
		})
	}
}

func TestWhatAuthenticationIsShown(t *testing.T) {
	t.Parallel()
	s := newAuthServer(t)
	thread := s.must("ann", "POST", "/threads", `{}`, "thread_id")
	var body string
	s.greet = func(a agent.Authentication, raw []byte) (string, error) { body = string(raw); return bearers(a, raw) }
	sent := `{"metadata": {"a":1}}`
	if got := s.do("ann", "PATCH", "/threads/"+thread+"?x=1&x=2", sent, "X-Custom", "v"); got.status != 200 || !strings.Contains(got.body, `"a":1`) {
		t.Fatalf("the body was not put back: %d %s", got.status, got.body)
	}
	a := s.who[len(s.who)-1]
	if a.Method != "PATCH" || a.Path != "/threads/"+thread || a.Query != "x=1&x=2" || a.URL != s.url+"/threads/"+thread+"?x=1&x=2" || body != sent {
		t.Errorf("got %+v with body %q", a, body)
	}
	if a.PathParams["thread_id"] != thread || len(a.PathParams) != 1 {
		t.Errorf("path_params: got %v", a.PathParams)
	}
	if !slices.Contains(a.Headers, [2]string{"x-custom", "v"}) || !slices.Contains(a.Headers, [2]string{"authorization", "Bearer ann"}) {
		t.Errorf("headers: got %v", a.Headers)
	}
}

// A worker that says so is spared the bodies, and they are not read before the sender is known.
func TestBodiesAreSentOnlyWhereTheyAreWanted(t *testing.T) {
	t.Parallel()
	no := false
	s := newAuthServer(t, func(s *authServer, _ *engine.Config) { s.pool.Parts[agent.PartAuth].Body = &no })
	s.greet = func(a agent.Authentication, raw []byte) (string, error) {
		if len(raw) > 0 {
			t.Errorf("got body %q", raw)
		}
		return bearers(a, raw)
	}
	if got := s.do("", "POST", "/threads", strings.Repeat("x", 5<<20)); got.status != 401 {
		t.Errorf("got %d %s", got.status, got.body)
	}
	s.must("ann", "POST", "/threads", `{}`, "thread_id")
}

func TestUnknownPathsAndMethodsAreAuthenticated(t *testing.T) {
	t.Parallel()
	s := newAuthServer(t)
	for _, c := range [][2]string{
		{"GET", "/nowhere"}, {"GET", "/ok/"}, {"GET", "/OK"}, {"GET", "/ok/x"}, {"POST", "/ok"}, {"DELETE", "/threads"}, {"GET", "/docs"}, {"GET", "/uix"},
		{"GET", "/openapi.json"}, {"GET", "/metrics"}, {"OPTIONS", "/threads"}, {"GET", "//ok"}, {"GET", "/x/../threads"}, {"POST", "/ui/agent"},
	} {
		if got := s.do("", c[0], c[1], ""); got.status != 401 {
			t.Errorf("%s %s: got %d %s, want 401", c[0], c[1], got.status, got.body)
		}
	}
	preflight := s.do("", "OPTIONS", "/threads", "", "Origin", "http://x", "Access-Control-Request-Method", "POST")
	if preflight.status != 204 {
		t.Errorf("preflight: got %d %s", preflight.status, preflight.body)
	}
	if got := s.do("", "GET", "/threads", "", "Origin", "http://x"); got.header.Get("Access-Control-Allow-Origin") == "" {
		t.Error("a browser cannot read the refusal")
	}
}

// With an Auth object and nobody to ask nothing is open (reference 12).
func TestWithoutWorkersNobodyIsLetIn(t *testing.T) {
	t.Parallel()
	s := newAuthServer(t)
	for _, w := range s.pool.Workers() {
		w.Kill("test")
	}
	got := s.do("ann", "POST", "/threads", `{}`)
	if got.status != 503 || got.header.Get("Retry-After") == "" || strings.Contains(got.body, "worker") {
		t.Errorf("got %d %v %s", got.status, got.header, got.body)
	}
	if got := s.do("", "GET", "/ok", ""); got.status != 200 {
		t.Errorf("/ok: got %d", got.status)
	}
	s.addWorker()
	s.must("ann", "POST", "/threads", `{}`, "thread_id")
}

// An Auth object that cannot be loaded opens nothing, and why it cannot is not told to everybody.
func TestAnAuthObjectThatCannotBeLoaded(t *testing.T) {
	t.Parallel()
	s := newAuthServer(t, func(s *authServer, _ *engine.Config) {
		s.pool.Parts[agent.PartAuth] = &agent.PartInfo{Failure: &agent.Failure{Error: "ImportError", Message: "inside-of-the-code"}}
	})
	got := s.do("ann", "GET", "/docs", "")
	if got.status != 503 || strings.Contains(got.body, "inside-of-the-code") {
		t.Errorf("got %d %s", got.status, got.body)
	}
}

func TestUsersAreCachedByTheirHeaders(t *testing.T) {
	t.Parallel()
	s := newAuthServer(t, func(_ *authServer, c *engine.Config) {
		c.Auth = engine.AuthConfig{CacheKeys: []string{"Authorization"}, CacheTTL: time.Hour, CacheSize: 2}
	})
	asked := func(user string) int {
		before := len(s.who)
		s.do(user, "GET", "/docs", "")
		return len(s.who) - before
	}
	for i, step := range []struct {
		user string
		want int
	}{{"ann", 1}, {"ann", 0}, {"bob", 1}, {"ann", 0}, {"cid", 1}, {"ann", 0}, {"bob", 1}, {"", 1}, {"", 1}} {
		if got := asked(step.user); got != step.want {
			t.Errorf("step %d, %q: asked %d times, want %d", i, step.user, got, step.want)
		}
	}
	if got := s.do("", "GET", "/docs", ""); got.status != 401 {
		t.Errorf("who sends no header got %d", got.status)
	}
	// Handlers that know people by something that is no key of the cache must not make nobody somebody.
	s.greet = func(a agent.Authentication, _ []byte) (string, error) {
		if strings.Contains(a.Query, "token=ann") {
			return `{"identity":"ann"}`, nil
		}
		return "", &agent.HTTPRefusal{Status: 401}
	}
	if got := s.do("", "GET", "/docs?token=ann", ""); got.status != 200 {
		t.Errorf("by query: got %d", got.status)
	}
	if got := s.do("", "GET", "/docs", ""); got.status != 401 {
		t.Errorf("after somebody without a header: got %d, want 401", got.status)
	}
}

func TestStudioIsLetInOnlyWhereItMay(t *testing.T) {
	t.Parallel()
	const key = "0123456789abcdef"
	for name, c := range map[string]struct {
		studio engine.Studio
		key    string
		want   int
	}{
		"not allowed": {engine.Studio{}, key, 401}, "no key": {engine.Studio{Key: key}, "", 401}, "wrong key": {engine.Studio{Key: key}, "x", 401},
		"key": {engine.Studio{Key: key}, key, 200}, "open": {engine.Studio{Open: true}, "", 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newAuthServer(t, func(_ *authServer, e *engine.Config) { e.Auth.Studio = c.studio })
			headers := []string{"X-Auth-Scheme", "langsmith"}
			if c.key != "" {
				headers = append(headers, "X-Api-Key", c.key)
			}
			if got := s.do("", "POST", "/threads/search", `{}`, headers...); got.status != c.want {
				t.Errorf("got %d %s, want %d", got.status, got.body, c.want)
			}
			asked := s.takeAsked()
			if c.want == 200 && !slices.Equal(asked, []string{agent.StudioIdentity + " threads:search"}) {
				t.Errorf("handlers were asked %v", asked)
			}
			if got := s.do("", "GET", "/threads/search", "", "X-Api-Key", key); got.status != 401 {
				t.Errorf("the key without the scheme: got %d", got.status)
			}
		})
	}
}

// Only the most specific handlers that are there are asked for; what none answers for is allowed, and told once.
func TestWhatNoHandlerCovers(t *testing.T) {
	t.Parallel()
	s := newAuthServer(t, func(s *authServer, _ *engine.Config) {
		s.pool.Parts[agent.PartAuth].Handlers = []string{"threads:create", "*:delete", "store"}
	})
	thread := s.must("ann", "POST", "/threads", `{}`, "thread_id")
	s.must("bob", "GET", "/threads/"+thread, "", "")
	s.must("bob", "POST", "/store/namespaces", `{}`, "")
	s.do("bob", "DELETE", "/threads/"+thread, "")
	if got, want := s.takeAsked(), []string{"ann threads:create", "bob store:list_namespaces", "bob threads:delete"}; !slices.Equal(got, want) {
		t.Errorf("asked %v, want %v", got, want)
	}
	s.mu.Lock()
	log := s.log.String()
	s.mu.Unlock()
	for _, want := range []string{"no authorisation handler covers", "threads:read", "crons:create", "returns False"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log does not say %q:\n%s", want, log)
		}
	}
	if strings.Contains(log, "store:put") || strings.Contains(log, "threads:create ") || strings.Contains(log, "crons:delete") {
		t.Errorf("the log lists what is covered:\n%s", log)
	}
}

func TestRefusalsOfAuthorisation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		verdict agent.Verdict
		err     error
		status  int
		detail  string
	}{
		"false":          {agent.Verdict{}, nil, 403, "Not authorized"},
		"own words":      {agent.Verdict{}, &agent.HTTPRefusal{Status: 402, Detail: "pay"}, 402, "pay"},
		"mistake":        {agent.Verdict{}, errors.New("boom"), 500, "Internal server error"},
		"unknown filter": {agent.Verdict{Allow: true, Filter: json.RawMessage(`{"a":{"$gt":1}}`)}, nil, 500, "Internal server error"},
		"deep filter":    {agent.Verdict{Allow: true, Filter: json.RawMessage(`{"$or":[{"$and":[{"$or":[{"a":1}]}]}]}`)}, nil, 500, "Internal server error"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newAuthServer(t, wild)
			mine := s.annsThings()
			s.decide = func(agent.Authorization) (agent.Verdict, error) { return c.verdict, c.err }
			for _, a := range accesses() {
				if a.asks == "" {
					continue
				}
				got := s.do("ann", a.verb(), mine.fill(a.path), mine.fill(a.body))
				if got.status != c.status || strings.TrimSpace(got.body) != `{"detail":"`+c.detail+`"}` {
					t.Errorf("%s %s: got %d %s", a.verb(), a.path, got.status, got.body)
				}
			}
			s.decide = owners
			s.everythingOfAnn(mine)
		})
	}
}
