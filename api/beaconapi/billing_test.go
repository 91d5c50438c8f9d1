package beaconapi_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/beacon"
	"github.com/slipway-dev/slipway/intake"
)

// transaction is a valid one with an id that ends in n.
func transaction(n int) string {
	return fmt.Sprintf(`{"id":"0192f000-0000-4000-8000-%012d","tenant_id":"0192f000-0000-4000-8000-00000000000a",
"session_id":"0192f000-0000-4000-8000-00000000000b","organization_id":"0192f000-0000-4000-8000-00000000000c","trace_count":5,
"start_insertion_time":"2026-03-05T09:00:00","end_insertion_time":"2026-03-05T10:00:00Z","start_interval_time":"2026-03-05T09:00:00.000000+00:00",
"end_interval_time":"2026-03-05T11:00:00+01:00","status":"pending","num_failed_send_attempts":0,"transaction_type":"traces","new_member":{}}`, n)
}

func ingest(list ...string) string {
	return `{"license":"KEY","trace_transactions":[` + strings.Join(list, ",") + `]}`
}

const (
	verifyPath = "/v1/beacon/verify"
	ingestPath = "/v1/beacon/ingest-traces"
	usagePath  = "/v1/beacon/usage-snapshot"
	snapshot   = `{"license_key":"KEY","from_timestamp":"2026-03-04T02:00:00.000000+00:00","to_timestamp":"2026-03-05T02:00:00+00:00","measures":{"workspaces":2,"users":31,"newer":1}}`
)

func TestTransactionsAreCountedOnce(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for i, want := range []struct {
		body  string
		count float64
	}{
		{ingest(transaction(1), transaction(2)), 2},
		{ingest(transaction(1), transaction(2), transaction(3)), 1},
		{ingest(transaction(4), transaction(4)), 1},
		{ingest(strings.ToUpper(transaction(1)[:43]) + transaction(1)[43:]), 0}, // an id in capitals is the same id
		{ingest(), 0},
	} {
		body := strings.Replace(want.body, `"ID":`, `"id":`, 1)
		if got := s.post(ingestPath, body); got.status != 200 || got.member("inserted_count") != want.count {
			t.Errorf("request %d: %s, want %v", i, got, want.count)
		}
	}
	u := s.usage()
	if u.TraceCount != 20 || u.Transactions != 4 || u.Duplicates != 4 || u.Months[0].Month != "2026-03" {
		t.Errorf("usage %+v", u)
	}
}

func TestATransactionOlderThanTheRetentionIsNotCounted(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(o *options) { o.intake.KeepBilling = 48 * time.Hour })
	old := strings.NewReplacer("2026-03-05", "2026-03-02").Replace(transaction(1))
	if got := s.post(ingestPath, ingest(old, transaction(2))); got.member("inserted_count") != 1.0 {
		t.Errorf("first: %s", got)
	}
	s.clock.advance(72 * time.Hour)
	if err := s.svc.SweepBilling(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := s.post(ingestPath, ingest(transaction(2))); got.member("inserted_count") != 0.0 {
		t.Errorf("swept and sent again: %s", got)
	}
	if u := s.usage(); u.TraceCount != 5 || u.Late != 2 {
		t.Errorf("usage %+v", u)
	}
}

func TestTokensOfVerifyAreAccepted(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	got := s.post(verifyPath, `{"license":"KEY"}`)
	token, _ := got.member("token").(string)
	keys, err := beacon.ParseJWKS(s.get("/.well-known/jwks.json").body)
	if err != nil {
		t.Fatal(err)
	}
	claims, err := keys.VerifyToken(token, s.clock.now())
	if err != nil || claims.Licence.ID != s.id || claims.Licence.Customer != "Acme" {
		t.Fatalf("token of %s: %+v, %v", got, claims, err)
	}
	key := s.key
	s.key = token
	if got := s.post(ingestPath, ingest(transaction(1))); got.status != 200 {
		t.Errorf("ingest with a token: %s", got)
	}
	if got := s.post(verifyPath, `{"license":"KEY"}`); got.status != 401 {
		t.Errorf("verify of a token: %s; a token must not renew itself", got)
	}
	s.clock.advance(beacon.TokenLifetime)
	if got := s.post(ingestPath, ingest(transaction(2))); got.status != 401 || !strings.Contains(got.String(), "token expired") {
		t.Errorf("with an expired token: %s", got)
	}
	if _, err := s.svc.Rotate(); err != nil {
		t.Fatal(err)
	}
	s.key = key
	if got := s.post(verifyPath, `{"license":"KEY"}`); got.status != 200 {
		t.Errorf("after a rotation: %s", got)
	}
}

// Every call refuses what may not use it, before and after it looked at the rest.
func TestLicencesThatMayNotBeUsed(t *testing.T) {
	t.Parallel()
	s, other := newServer(t), newServer(t)
	_, revoked := s.issue("Gone", beacon.Online)
	if _, err := s.svc.Revoke(context.Background(), revoked); err != nil {
		t.Fatal(err)
	}
	token := s.post(verifyPath, `{"license":"KEY"}`).member("token").(string)
	if _, err := s.svc.Revoke(context.Background(), s.id); err != nil {
		t.Fatal(err)
	}
	expired := newServer(t)
	expired.clock.advance(31 * 24 * time.Hour)
	bodies := map[string]string{
		verifyPath: `{"license":"KEY"}`, ingestPath: ingest(transaction(1)), usagePath: snapshot,
		"/v1/beacon/v1/metrics": `{"license":"KEY",` + samplePart("metrics"), "/v1/beacon/v1/traces": `{"license":"KEY",` + samplePart("traces"),
		"/v1/beacon/v1/logs": `{"license_key":"KEY",` + samplePart("logs"),
	}
	for path, body := range bodies {
		for _, test := range []struct {
			name   string
			s      *server
			key    string
			status int
		}{
			{"revoked", s, revoked, 403}, {"revoked token", s, token, 403}, {"expired", expired, expired.key, 403},
			{"of another collector", s, other.key, 401}, {"junk", s, "lcl_junk", 401}, {"good", other, other.key, 200},
		} {
			if path == verifyPath && test.name == "revoked token" {
				test.status = 401
			}
			test.s.key = test.key
			if got := test.s.post(path, body); got.status != test.status || test.status != 200 && got.member("detail") == nil {
				t.Errorf("%s with a licence that is %s: %s, want %d", path, test.name, got, test.status)
			}
		}
	}
}

func TestSnapshots(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for _, body := range []string{snapshot, snapshot, strings.NewReplacer("03-04", "03-03", "03-05", "03-04", "31", "99").Replace(snapshot)} {
		if got := s.post(usagePath, body); got.status != 200 || string(bytes.TrimSpace(got.body)) != "{}" {
			t.Errorf("%s", got)
		}
	}
	u := s.usage()
	if u.Snapshots != 2 || u.Measures["users"] != 31 || u.Months[0].Peaks["users"] != 99 || u.Measures["newer"] != 1 {
		t.Errorf("usage %+v", u)
	}
}

func TestWrongBodiesNameTheField(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	change := func(old, new string) string { return ingest(strings.Replace(transaction(1), old, new, 1)) }
	for _, test := range []struct{ path, body, want string }{
		{verifyPath, ``, `"body"`},
		{verifyPath, `{`, `json_invalid`},
		{verifyPath, `[]`, `["body"]`},
		{verifyPath, `{}`, `["body","license"]`},
		{verifyPath, `{"license":5}`, `["body","license"]`},
		{verifyPath, `{"license":null}`, `["body","license"]`},
		{ingestPath, `{"license":"KEY"}`, `["body","trace_transactions"]`},
		{ingestPath, `{"license":"KEY","trace_transactions":{}}`, `["body","trace_transactions"]`},
		{ingestPath, ingest(`5`), `["body","trace_transactions",0]`},
		{ingestPath, ingest(transaction(1), `{}`), `["body","trace_transactions",1,"id"]`},
		{ingestPath, change(`"trace_count":5`, `"trace_count":-5`), `"trace_count"`},
		{ingestPath, change(`"trace_count":5`, `"trace_count":"5"`), `"trace_count"`},
		{ingestPath, change(`"trace_count":5`, `"trace_count":5.5`), `"trace_count"`},
		{ingestPath, change(`"trace_count":5`, `"trace_count":1e300`), `"trace_count"`},
		{ingestPath, change(`"pending"`, `""`), `"status"`},
		{ingestPath, change(`0192f000-0000-4000-8000-00000000000a`, `a`), `"tenant_id"`},
		{ingestPath, change(`2026-03-05T11:00:00+01:00`, `yesterday`), `"end_interval_time"`},
		{ingestPath, change(`2026-03-05T11:00:00+01:00`, `2026-03-05T08:00:00Z`), `is before the start`},
		{ingestPath, change(`2026-03-05T11:00:00+01:00`, `2026-04-05T08:00:00Z`), `in the future`},
		{usagePath, strings.Replace(snapshot, `+00:00`, ``, 1), `["body","from_timestamp"]`},
		{usagePath, strings.Replace(snapshot, `31`, `-31`, 1), `"users"`},
		{usagePath, strings.Replace(snapshot, `31`, `"31"`, 1), `"users"`},
		{usagePath, strings.Replace(snapshot, `users`, `a b`, 1), `no name of a measure`},
	} {
		got := s.post(test.path, test.body)
		if got.status != 422 || !strings.Contains(got.String(), test.want) {
			t.Errorf("%s %s: %s, want 422 with %s", test.path, test.body, got, test.want)
		}
	}
	if u := s.usage(); u.Transactions+u.Snapshots != 0 {
		t.Errorf("something was counted: %+v", u)
	}
}

func TestBodiesAreBounded(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	body := strings.ReplaceAll(ingest(transaction(1)), "KEY", s.key)
	if got := s.post(ingestPath, string(zipped([]byte(body))), "Content-Encoding", "gzip"); got.member("inserted_count") != 1.0 {
		t.Errorf("gzip: %s", got)
	}
	bomb := func() []byte {
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		for range 64 {
			_, _ = z.Write(bytes.Repeat([]byte(" "), 1<<20))
		}
		_ = z.Close()
		return out.Bytes()
	}()
	many := ingest(strings.TrimSuffix(strings.Repeat(`{},`, 10_001), ","))
	for name, test := range map[string]struct {
		body   []byte
		header string
		status int
	}{
		"bomb": {bomb, "gzip", 413}, "bomb in a bomb": {zipped(bomb), "gzip", 422}, "not gzip": {[]byte(body), "gzip", 400}, "cut off": {zipped([]byte(body))[:40], "gzip", 400},
		"large": {bytes.Repeat([]byte(" "), 17<<20), "", 413}, "brotli": {[]byte(body), "br", 400}, "too many": {[]byte(many), "", 422},
		"deep": {[]byte(strings.Repeat("[", 100_000)), "", 422},
	} {
		for _, path := range []string{ingestPath, "/v1/beacon/v1/logs"} {
			got := s.send("POST", path, test.body, "Content-Type", "application/json", "Content-Encoding", test.header, "X-License-Key", s.key)
			if path != ingestPath && name == "too many" {
				continue
			}
			if got.status != test.status || got.member("detail") == nil {
				t.Errorf("%s to %s: %.300s, want %d", name, path, got, test.status)
			}
		}
	}
}

func TestRateLimits(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(o *options) {
		o.intake.Rate = 5
		o.api.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	_, second := s.issue("Second", beacon.Online)
	from := func(address string) answer {
		return s.post(verifyPath, `{"license":"KEY"}`, "X-Forwarded-For", address)
	}
	for i := range 5 {
		if got := from("192.0.2.1"); got.status != 200 {
			t.Fatalf("request %d: %s", i, got)
		}
	}
	if got := from("192.0.2.1"); got.status != 429 || got.header.Get("Retry-After") == "" || !strings.Contains(got.String(), "this address has made 5 requests in 10 s") {
		t.Errorf("sixth of the address: %s, Retry-After %q", got, got.header.Get("Retry-After"))
	}
	if got := from("192.0.2.2"); got.status != 429 || !strings.Contains(got.String(), "this licence") {
		t.Errorf("sixth of the licence: %s", got)
	}
	s.key = second
	for i := range 5 {
		if got := from(fmt.Sprintf("2001:db8::%d", i)); got.status != 200 {
			t.Fatalf("IPv6 request %d: %s", i, got)
		}
	}
	if got := from("2001:db8::99"); got.status != 429 {
		t.Errorf("another address of the same IPv6 network: %s", got)
	}
	if got := s.get("/ok"); got.status != 200 {
		t.Errorf("a probe is limited: %s", got)
	}
	s.clock.advance(intake.DefaultWindow + time.Second)
	if got := from("192.0.2.1"); got.status != 200 {
		t.Errorf("after the window: %s", got)
	}
}

func TestForwardedForIsBelievedOfTrustedProxiesOnly(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(o *options) { o.intake.Rate = 2 })
	for i, want := range []int{200, 200, 429} {
		if got := s.post(verifyPath, `{"license":"KEY"}`, "X-Forwarded-For", fmt.Sprintf("192.0.2.%d", i)); got.status != want {
			t.Errorf("request %d: %s, want %d", i, got, want)
		}
	}
}

func TestOtherCalls(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(o *options) { o.api.PerLicence = true })
	s.post(ingestPath, ingest(transaction(1)))
	if got := s.get("/ok"); got.status != 200 || got.member("ok") != true {
		t.Errorf("/ok: %s", got)
	}
	if got := s.get("/nothing"); got.status != 404 || got.member("detail") == nil {
		t.Errorf("/nothing: %s", got)
	}
	text := s.get("/metrics").String()
	for _, want := range []string{
		"slipway_collector_transactions_total 1", `slipway_collector_requests_total{call="POST /v1/beacon/ingest-traces",status="200"} 1`,
		`slipway_collector_licence_traces_total{license_id="` + s.id + `"} 5`, "go_goroutines",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	if strings.Contains(text, "Acme") {
		t.Error("/metrics shows a customer's name")
	}
	_ = s.store.Close()
	if got := s.get("/ok"); got.status != http.StatusServiceUnavailable {
		t.Errorf("/ok without a store: %s", got)
	}
	if got := s.post(ingestPath, ingest(transaction(2))); got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" {
		t.Errorf("ingest without a store: %s", got)
	}
}
