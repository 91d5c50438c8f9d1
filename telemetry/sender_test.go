package telemetry

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/beacon"
)

// sent is a request that a collector got.
type sent struct {
	path, credential string
	list             []beacon.TraceTransaction
	body             map[string]any
}

// fakeCollector answers as its script says, then as a real one does. It counts transactions by id.
type fakeCollector struct {
	t      *testing.T
	server *httptest.Server
	key    beacon.SigningKey
	now    func() time.Time

	mu       sync.Mutex
	script   []http.HandlerFunc // of calls that bring items
	licence  http.HandlerFunc   // of verify; nil = the licence is fine
	got      []sent
	counted  map[string]int64
	verified int
}

func newFakeCollector(t *testing.T, now func() time.Time) *fakeCollector {
	c := &fakeCollector{t: t, now: now, counted: map[string]int64{}, key: beacon.NewSigningKey(make([]byte, 32), time.Unix(1_700_000_000, 0))}
	c.server = httptest.NewServer(c)
	t.Cleanup(c.server.Close)
	return c
}

func (c *fakeCollector) licenceKey() string {
	return c.key.Sign(beacon.Licence{ID: "l", Customer: "c", Kind: beacon.Online, IssuedAt: c.now(), ExpiresAt: c.now().Add(time.Hour)})
}

func (c *fakeCollector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch r.URL.Path {
	case "/.well-known/jwks.json":
		_, _ = w.Write(beacon.PublicKeys{c.key.PublicKey}.JWKS())
		return
	case "/v1/beacon/verify":
		c.verified++
		if c.licence != nil {
			c.licence(w, r)
			return
		}
		l := beacon.Licence{ID: "l", Kind: beacon.Online, IssuedAt: c.now(), ExpiresAt: c.now().Add(time.Hour)}
		fmt.Fprintf(w, `{"token":%q}`, c.key.SignToken(l, c.now()))
		return
	}
	c.got = append(c.got, c.read(r))
	if len(c.script) > 0 {
		answer := c.script[0]
		c.script = c.script[1:]
		if answer != nil {
			answer(w, r)
			return
		}
	}
	for _, t := range c.got[len(c.got)-1].list {
		if _, twice := c.counted[t.ID]; !twice {
			c.counted[t.ID] = t.TraceCount
		}
	}
	_, _ = w.Write([]byte(`{"inserted_count":1}`))
}

func (c *fakeCollector) read(r *http.Request) sent {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		zip, err := gzip.NewReader(body)
		if err != nil {
			c.t.Error(err)
			return sent{}
		}
		body = zip
	}
	raw, err := io.ReadAll(body)
	s := sent{path: r.URL.Path, credential: r.Header.Get("X-License-Key")}
	var request struct {
		License string                    `json:"license"`
		Key     string                    `json:"license_key"`
		List    []beacon.TraceTransaction `json:"trace_transactions"`
	}
	if err := errors.Join(err, json.Unmarshal(raw, &request), json.Unmarshal(raw, &s.body)); err != nil {
		c.t.Errorf("%s: %v in %s", r.URL.Path, err, raw)
	}
	s.list, s.credential = request.List, s.credential+request.License+request.Key
	return s
}

func (c *fakeCollector) answers(script ...http.HandlerFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.script = append(c.script, script...)
}

func (c *fakeCollector) requests() []sent {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.got)
}

// bills are the requests that brought transactions.
func (c *fakeCollector) bills() []sent {
	return slices.DeleteFunc(c.requests(), func(s sent) bool { return s.list == nil })
}

func answering(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// cutting ends the connection without an answer.
func cutting(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func configOf(t *testing.T, c *fakeCollector) Config {
	return Config{
		Dir: filepath.Join(t.TempDir(), "telemetry"), URL: c.server.URL, Key: c.licenceKey(), Version: "0.11.0", Now: c.now,
		RetryMin: time.Millisecond, RetryMax: 4 * time.Millisecond, Export: time.Hour, Log: slog.New(slog.DiscardHandler),
	}
}

// start runs a sender until stop is called.
func start(t *testing.T, cfg Config) (s *Sender, stop func()) {
	t.Helper()
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Run(ctx) }()
	var once sync.Once
	stop = func() { once.Do(func() { cancel(); <-ended; _ = s.Close() }) }
	t.Cleanup(stop)
	return s, stop
}

func transactions(from, to int) (list []beacon.TraceTransaction) {
	at := time.Unix(1_700_000_000, 0).UTC()
	for n := from; n < to; n++ {
		list = append(list, beacon.TraceTransaction{
			ID: beacon.NameID("test", fmt.Sprint(n)), TenantID: beacon.NameID("t"), SessionID: beacon.NameID("s"), OrganizationID: beacon.NameID("o"),
			TraceCount: int64(n), StartInsertionTime: at, EndInsertionTime: at, StartIntervalTime: at, EndIntervalTime: at.Add(time.Hour),
			Status: beacon.StatusPending, Type: beacon.TypeTraces,
		})
	}
	return list
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("never: %s", what)
}

func delivered(s *Sender, list []beacon.TraceTransaction) func() bool {
	return func() bool {
		var ids []string
		for _, tx := range list {
			ids = append(ids, tx.ID)
		}
		return len(s.Delivered(ids)) == len(list)
	}
}

// Whatever the collector answers, billing arrives, each count once, and says truly how often it was sent in vain.
func TestBillingArrivesThroughFailures(t *testing.T) {
	t.Parallel()
	c := newFakeCollector(t, time.Now)
	problem := `{"detail":[{"loc":["body"],"msg":"m","type":"value_error"}]}`
	c.answers(answering(500, "oops"), cutting, answering(429, "slow down", "Retry-After", "0"), answering(200, "")) // 200: taken, whatever it says
	s, _ := start(t, configOf(t, c))
	list := transactions(0, 3)
	if err := s.Add(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the first are delivered", delivered(s, list))
	got := c.requests()
	for i, want := range []int64{0, 1, 2, 3} {
		status := map[bool]string{true: "pending", false: "retrying"}[want == 0]
		for _, tx := range got[i].list {
			if tx.FailedSends != want || tx.Status != status {
				t.Errorf("request %d says %d attempts, %s", i, tx.FailedSends, tx.Status)
			}
		}
	}
	if len(got) != 4 || len(got[3].list) != 3 {
		t.Errorf("%d requests, the last with %d", len(got), len(got[len(got)-1].list))
	}
	// One item that the collector will never take is put aside, those around it arrive.
	more := transactions(10, 15)
	refuse := func(w http.ResponseWriter, _ *http.Request) {
		for _, tx := range c.got[len(c.got)-1].list {
			if tx.ID == more[2].ID {
				answering(422, problem)(w, nil)
				return
			}
		}
		for _, tx := range c.got[len(c.got)-1].list {
			c.counted[tx.ID] = tx.TraceCount
		}
		answering(200, `{}`)(w, nil)
	}
	for range 20 {
		c.answers(refuse)
	}
	if err := s.Add(t.Context(), more); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the others are delivered", delivered(s, more))
	raw, err := os.ReadFile(filepath.Join(s.cfg.Dir, "refused.jsonl"))
	if err != nil || strings.Count(string(raw), "\n") != 1 || !strings.Contains(string(raw), more[2].ID) {
		t.Errorf("put aside is %s (%v)", raw, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.counted[more[2].ID]; ok || len(c.counted) != 4 {
		t.Errorf("counted %v", c.counted)
	}
	if st := s.Status().Billing; st.Refused != 1 || st.Items != 0 {
		t.Errorf("status is %+v", st)
	}
}

// A proxy that answers 422 or 400 of its own puts nothing aside.
func TestOnlyTheCollectorRefuses(t *testing.T) {
	t.Parallel()
	c := newFakeCollector(t, time.Now)
	c.answers(answering(422, "<html>"), answering(400, `{"detail":"no"}`), answering(422, `{"detail":"no"}`), answering(302, "", "Location", "/"))
	s, _ := start(t, configOf(t, c))
	list := transactions(0, 1)
	if err := s.Add(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is delivered", delivered(s, list))
	if st := s.Status().Billing; st.Refused != 0 || len(c.requests()) != 5 {
		t.Errorf("%+v after %d requests", st, len(c.requests()))
	}
}

// What waits when the process ends is sent by the next one, in order, and a restart after delivery sends the same ids.
func TestBillingOutlivesTheSender(t *testing.T) {
	t.Parallel()
	c := newFakeCollector(t, time.Now)
	cfg := configOf(t, c)
	url := cfg.URL
	cfg.URL = "http://127.0.0.1:1" // nobody is there
	s, stop := start(t, cfg)
	list := transactions(0, 2500)
	for i := 0; i < len(list); i += 100 {
		if err := s.Add(t.Context(), list[i:i+100]); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Add(t.Context(), list[:50]); err != nil { // again, as after a crash of whoever counts
		t.Fatal(err)
	}
	eventually(t, "sending fails", func() bool { return s.Status().Billing.Failed > 1 })
	if st := s.Status().Billing; st.Items != 2500 || st.LastError == "" || st.LastFailure == nil {
		t.Errorf("status is %+v", st)
	}
	stop()
	cfg.URL = url
	s, _ = start(t, cfg)
	eventually(t, "all is delivered", delivered(s, list))
	var order []string
	for _, r := range c.bills() {
		if len(r.list) > batchItems {
			t.Errorf("%d transactions in one request", len(r.list))
		}
		for _, tx := range r.list {
			order = append(order, tx.ID)
		}
	}
	for i, id := range order {
		if id != list[i].ID {
			t.Fatalf("number %d is out of order", i)
		}
	}
	if len(order) != 2500 || c.bills()[0].list[0].FailedSends < 2 {
		t.Errorf("%d sent, the first after %d failures", len(order), c.bills()[0].list[0].FailedSends)
	}
}

func TestRetryAfterIsKept(t *testing.T) {
	t.Parallel()
	c := newFakeCollector(t, time.Now)
	c.answers(answering(429, "", "Retry-After", "3000"))
	s, _ := start(t, configOf(t, c))
	if err := s.Add(t.Context(), transactions(0, 1)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it waits", func() bool { return s.Status().Billing.NextAttempt != nil })
	if wait := time.Until(*s.Status().Billing.NextAttempt); wait < 49*time.Minute || wait > time.Hour {
		t.Errorf("waits %s", wait)
	}
}

// The token is used once there is one; one that is not taken is replaced by the licence.
func TestTokenIsUsed(t *testing.T) {
	t.Parallel()
	c := newFakeCollector(t, time.Now)
	cfg := configOf(t, c)
	s, _ := start(t, cfg)
	eventually(t, "the licence is verified", func() bool { return s.Status().Licence.Status == "valid" })
	c.answers(nil, answering(401, "no"))
	for n := range 2 {
		list := transactions(n, n+1)
		if err := s.Add(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		eventually(t, "delivered", delivered(s, list))
	}
	got := c.requests()
	if len(got) != 3 || strings.HasPrefix(got[0].credential, "lcl_") || strings.HasPrefix(got[1].credential, "lcl_") || got[2].credential != cfg.Key {
		t.Errorf("the tokens of %d requests are not as they should be", len(got))
	}
}

// A failed refresh keeps what was verified until the licence's own expiry, over a restart too.
func TestLicenceOutlivesFailedRefreshes(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	offset := time.Duration(0)
	clock := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return time.Now().Add(offset)
	}
	c := newFakeCollector(t, clock)
	cfg := configOf(t, c)
	cfg.Refresh = 5 * time.Millisecond
	s, stop := start(t, cfg)
	valid := func() bool { return s.Status().Licence.Status == "valid" }
	eventually(t, "verified", valid)
	c.mu.Lock()
	c.licence = answering(403, `{"detail":"revoked"}`)
	c.mu.Unlock()
	eventually(t, "a refresh failed", func() bool { return s.Status().Licence.LastError != "" })
	if !valid() {
		t.Errorf("a failed refresh leaves %+v", s.Status().Licence)
	}
	stop()
	s, stop = start(t, cfg)
	if !valid() {
		t.Errorf("a restart leaves %+v", s.Status().Licence)
	}
	mu.Lock()
	offset = 2 * time.Hour
	mu.Unlock()
	if got := s.Status().Licence.Status; got != "expired" {
		t.Errorf("after its expiry the licence is %s", got)
	}
	if err := s.Add(t.Context(), transactions(0, 1)); err != nil {
		t.Errorf("an expired licence stops counting: %v", err)
	}
	stop()
	cfg.Dir = filepath.Join(t.TempDir(), "other")
	s, _ = start(t, cfg)
	eventually(t, "refused", func() bool { return s.Status().Licence.Status == "refused" })
	raw, err := os.ReadFile(filepath.Join(cfg.Dir, licenceFile))
	if err == nil && strings.Contains(string(raw), cfg.Key) {
		t.Error("the key is on the disk")
	}
}

func TestForgedTokenIsNoVerification(t *testing.T) {
	t.Parallel()
	c := newFakeCollector(t, time.Now)
	other := beacon.NewSigningKey([]byte("another secret seed of 32 bytes."), time.Now())
	c.licence = func(w http.ResponseWriter, _ *http.Request) {
		l := beacon.Licence{ID: "l", Kind: beacon.Online, IssuedAt: time.Now(), ExpiresAt: time.Now().Add(time.Hour)}
		fmt.Fprintf(w, `{"token":%q}`, other.SignToken(l, time.Now()))
	}
	s, _ := start(t, configOf(t, c))
	eventually(t, "it failed", func() bool { return s.Status().Licence.LastError != "" })
	if got := s.Status().Licence.Status; got == "valid" {
		t.Errorf("the licence is %s", got)
	}
}

// Offline nothing is sent, nothing is kept, whatever happens; what was counted offline is not sent later either.
func TestOffline(t *testing.T) {
	t.Parallel()
	c := newFakeCollector(t, time.Now)
	for what, change := range map[string]func(*Config){
		"no URL": func(c *Config) { c.URL = "" }, "no licence": func(c *Config) { c.Key = "" },
		"offline licence": func(c *Config) { c.Key = "lof_a.b.c" }, "0.8": func(c *Config) { c.Version = "0.8.9" },
	} {
		cfg := configOf(t, c)
		change(&cfg)
		s, stop := start(t, cfg)
		if s.Online() || s.Status().Mode != "offline" || s.Status().Reason == "" {
			t.Errorf("%s: %+v", what, s.Status())
		}
		s.Watch("x", http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
		slog.New(s.Handler(slog.DiscardHandler)).Error("it broke")
		if list, _, err := s.Preview(10); len(list) != 0 || err != nil {
			t.Errorf("%s: preview %v %v", what, list, err)
		}
		stop()
		if _, err := os.Stat(cfg.Dir); err == nil {
			t.Errorf("%s: something was kept", what)
		}
	}
	if n := len(c.requests()); n+c.verified != 0 {
		t.Errorf("%d requests and %d verifications were made", n, c.verified)
	}
	cfg := configOf(t, c)
	s, stop := start(t, cfg)
	first := s.OnlineSince()
	stop()
	off := cfg
	off.URL = ""
	_, stop = start(t, off)
	stop()
	if s, _ = start(t, cfg); !s.OnlineSince().After(first) {
		t.Error("what was counted offline would be sent")
	}
}

// Each switch turns off its own stream and no other; billing has none (spec 4.5, 8, 9.3).
func TestSwitches(t *testing.T) {
	t.Parallel()
	c := newFakeCollector(t, time.Now)
	all := []string{"ingest-traces", "logs", "metrics", "traces", "usage-snapshot"}
	for what, test := range map[string]struct {
		change func(*Config)
		want   []string
	}{
		"everything":    {func(*Config) {}, all},
		"no logs":       {func(c *Config) { c.Switches.NoLogs = true }, []string{"ingest-traces", "metrics", "traces", "usage-snapshot"}},
		"no metrics":    {func(c *Config) { c.Switches.NoMetrics = true }, []string{"ingest-traces", "logs", "traces", "usage-snapshot"}},
		"no traces":     {func(c *Config) { c.Switches.NoTraces = true }, []string{"ingest-traces", "logs", "metrics", "usage-snapshot"}},
		"no usage":      {func(c *Config) { c.Switches.NoUsage = true }, []string{"ingest-traces", "logs", "metrics", "traces"}},
		"no phone home": {func(c *Config) { c.Off = true }, []string{"ingest-traces"}},
		"0.10":          {func(c *Config) { c.Version = "0.10.9" }, []string{"ingest-traces", "usage-snapshot"}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			cfg := configOf(t, c)
			cfg.URL = "http://127.0.0.1:1" // everything waits
			cfg.Usage = func(context.Context) (map[string]int64, error) { return map[string]int64{"users": 3}, nil }
			test.change(&cfg)
			s, _ := start(t, cfg)
			failing := s.Watch("x", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }))
			failing.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/v2/deployments", nil))
			slog.New(s.Handler(slog.DiscardHandler)).Warn("it broke")
			if err := s.Add(t.Context(), transactions(0, 1)); err != nil {
				t.Fatal(err)
			}
			var got []string
			eventually(t, "as many as are wanted", func() bool {
				list, _, err := s.Preview(100)
				if err != nil {
					t.Fatal(err)
				}
				got = nil
				for _, r := range list {
					got = append(got, r.Path[strings.LastIndex(r.Path, "/")+1:])
				}
				slices.Sort(got)
				return len(got) >= len(test.want)
			})
			if !slices.Equal(got, test.want) {
				t.Errorf("sends %v, want %v", got, test.want)
			}
		})
	}
}

// A secret in every input of operational telemetry reaches no request.
func TestCanaries(t *testing.T) {
	t.Parallel()
	const canary = "canary7f3a9c51d2e8b640"
	c := newFakeCollector(t, time.Now)
	cfg := configOf(t, c)
	cfg.Export, cfg.Slow = 5*time.Millisecond, time.Nanosecond
	cfg.Measure = func(context.Context) ([]Metric, error) {
		return []Metric{{Name: "platform_x", Unit: "1", Value: 1, Attributes: map[string]string{canary: canary, "token": canary, "queue": "a=" + canary, "tenant_id": canary}}}, nil
	}
	s, _ := start(t, cfg)
	names := []string{canary, strings.ToLower("CanaryDeployment"), "can-ary"}
	handler := s.Watch("gateway", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503); _, _ = io.WriteString(w, canary) }))
	for _, name := range names {
		r := httptest.NewRequest("POST", "/d/"+name+"/threads/"+name+"?key="+canary, strings.NewReader(canary))
		r.Header.Set("X-Api-Key", canary)
		handler.ServeHTTP(httptest.NewRecorder(), r)
		odd := httptest.NewRequest("GET", "/"+name+"/"+name, nil)
		odd.Method = strings.ToUpper(canary)
		handler.ServeHTTP(httptest.NewRecorder(), odd)
	}
	log := slog.New(s.Handler(slog.DiscardHandler))
	log.Error("it broke at "+canary+" and key="+canary+` "`+canary+`"`, "error", canary, "tenant_id", canary, "deployment", "canarydeployment",
		"token", canary, slog.Group("code", "code", canary), "code", errors.New("x="+canary))
	log.With("component", canary+"=1").WithGroup("attempt").Warn("plain", "attempt", canary)
	log.Info("an info " + canary)
	eventually(t, "all three kinds arrive", func() bool {
		kinds := map[string]bool{}
		for _, r := range c.requests() {
			kinds[r.path] = true
		}
		return kinds["/v1/beacon/v1/metrics"] && kinds["/v1/beacon/v1/traces"] && kinds["/v1/beacon/v1/logs"]
	})
	for _, r := range c.requests() {
		raw, _ := json.Marshal(r.body)
		for _, secret := range append(names, strings.ToUpper(canary)) {
			if strings.Contains(string(raw), secret) {
				t.Errorf("%s bears %q: %s", r.path, secret, raw)
			}
		}
		if strings.Contains(string(raw), "an info") {
			t.Errorf("a record below warning was sent: %s", raw)
		}
	}
}

// Snapshots follow each other without gap or overlap, one for each interval that ended, also over restarts.
func TestUsageSnapshots(t *testing.T) {
	t.Parallel()
	c := newFakeCollector(t, time.Now)
	cfg := configOf(t, c)
	cfg.UsageEvery = 50 * time.Millisecond
	cfg.Usage = func(context.Context) (map[string]int64, error) { return map[string]int64{"users": 3}, nil }
	for part := 1; part <= 2; part++ {
		_, stop := start(t, cfg)
		eventually(t, "snapshots arrive", func() bool { return len(c.requests()) >= 3*part })
		stop()
	}
	last := ""
	for _, r := range c.requests() {
		if r.path == "/v1/beacon/v1/metrics" {
			continue
		}
		from, to := r.body["from_timestamp"].(string), r.body["to_timestamp"].(string)
		if r.path != "/v1/beacon/usage-snapshot" || last != "" && from != last || from >= to || !strings.HasSuffix(from, "+00:00") {
			t.Errorf("%s from %s to %s after %s", r.path, from, to, last)
		}
		last = to
	}
}
