package telemetry

import (
	"encoding/hex"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/beacon"
)

// Bounds of what is gathered between two exports.
const (
	maxRoutes = 300
	maxSpans  = 200
	maxLogs   = 500
)

// words are the steps of paths that are the house's own. Everything else may be somebody's name for something.
var words = map[string]bool{
	"api": true, "v1": true, "v2": true, "api-keys": true, "audit-logs": true, "build_logs": true, "deploy_logs": true,
	"deployment-logs": true, "deployment-tier": true, "deployments": true, "events": true, "export": true, "free-count": true, "info": true,
	"interruption": true, "listeners": true, "logs": true, "metrics": true, "ok": true, "projects": true, "purge": true, "push-token": true,
	"redeploy": true, "reports": true, "resource-tiers": true, "restore": true, "revisions": true, "rotate": true, "state": true,
	"telemetry": true, "status": true, "preview": true, "templates": true, "tenants": true, "tracing-projects": true, "upload-url": true,
	"uploads": true, "whoami": true, "integrations": true, "install": true, "docs": true, "d": true, "webhooks": true, "repositories": true, "githost": true,
	"threads": true, "runs": true, "assistants": true, "crons": true, "store": true, "items": true, "namespaces": true, "search": true,
	"count": true, "stream": true, "wait": true, "join": true, "cancel": true, "batch": true, "copy": true, "history": true,
	"checkpoint": true, "graph": true, "subgraphs": true, "schemas": true, "versions": true, "latest": true, "prune": true, "mcp": true, "a2a": true,
}

// patient are the calls that wait for somebody's graph or for news: how long they take says nothing about the installation.
var patient = map[string]bool{"wait": true, "join": true, "stream": true, "state": true, "events": true, "d": true}

// routeOf is a path with nothing in it but words of the house.
func routeOf(path string) string {
	path, _, _ = strings.Cut(path, "?")
	steps := strings.Split(path, "/")
	if len(steps) > 12 {
		return "/{long}"
	}
	for i, step := range steps {
		if step != "" && !words[step] {
			steps[i] = "{id}"
		}
	}
	return strings.Join(steps, "/")
}

func waits(path string) bool {
	steps := strings.Split(strings.Trim(path, "/"), "/")
	return patient[steps[0]] || patient[steps[len(steps)-1]]
}

// call is what requests are counted by.
type call struct{ service, method, endpoint string }

type callStats struct {
	requests, failed int64 // since the start
	recent           int64 // since the last export, like what follows
	seconds          float64
}

// requests gathers what is told about HTTP requests.
type requests struct {
	slow time.Duration
	now  func() time.Time

	mu      sync.Mutex
	calls   map[call]*callStats
	spans   []span
	skipped int64 // spans beyond the bound
}

func newRequests(slow time.Duration, now func() time.Time) *requests {
	return &requests{slow: slow, now: now, calls: map[call]*callStats{}}
}

// answer is a response writer that remembers status and time of the first byte.
type answer struct {
	http.ResponseWriter
	now   func() time.Time
	code  int
	first time.Time
}

// WriteHeader remembers the status.
func (a *answer) WriteHeader(code int) {
	if a.code == 0 && code >= 200 {
		a.code, a.first = code, a.now()
	}
	a.ResponseWriter.WriteHeader(code)
}

// Write remembers that the answer began.
func (a *answer) Write(p []byte) (int, error) {
	if a.code == 0 {
		a.code, a.first = http.StatusOK, a.now()
	}
	return a.ResponseWriter.Write(p)
}

// Flush passes on what was written.
func (a *answer) Flush() { _ = http.NewResponseController(a.ResponseWriter).Flush() }

// Unwrap gives http.ResponseController what is underneath.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// watch counts the requests that next serves.
func (q *requests) watch(service string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := &answer{ResponseWriter: w, now: q.now}
		start, path, method := q.now(), r.URL.Path, methodOf(r.Method)
		next.ServeHTTP(a, r)
		if a.code == 0 {
			a.code, a.first = http.StatusOK, q.now()
		}
		q.record(call{service, method, routeOf(path)}, start, a.first, a.code, waits(path))
	})
}

// methodOf keeps what a client makes up out of what is sent.
func methodOf(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "OTHER"
}

func (q *requests) record(c call, start, first time.Time, code int, waits bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	st := q.calls[c]
	if st == nil {
		if len(q.calls) >= maxRoutes {
			c.method, c.endpoint = "OTHER", "/{other}"
		}
		if st = q.calls[c]; st == nil {
			st = &callStats{}
			q.calls[c] = st
		}
	}
	took, failed := first.Sub(start), code >= 500
	st.requests++
	st.recent++
	st.seconds += took.Seconds()
	if failed {
		st.failed++
	}
	if !failed && (waits || took < q.slow) {
		return
	}
	if len(q.spans) >= maxSpans {
		q.skipped++
		return
	}
	q.spans = append(q.spans, newSpan(c, start, first, code))
}

func newSpan(c call, start, end time.Time, code int) span {
	s := span{
		TraceID: hexID(2), SpanID: hexID(1), Name: c.method + " " + c.endpoint, Kind: 2, Start: nanos(start), End: nanos(end),
		Events: []struct{}{}, Links: []struct{}{},
	}
	s.Attributes, _ = attributesOf(beacon.Redactor{}, map[string]string{
		"http.route": c.endpoint, "http.request.method": c.method, "http.response.status_code": strconv.Itoa(code), "service_name": c.service,
	})
	if code >= 500 {
		s.Status = status{Code: 2, Message: http.StatusText(code)}
	}
	return s
}

// hexID is a random identifier of so many eight bytes.
func hexID(n int) string {
	var id []byte
	for range n {
		v := rand.Uint64() | 1
		for i := range 8 {
			id = append(id, byte(v>>(8*i)))
		}
	}
	return hex.EncodeToString(id)
}

// metrics tells the numbers; with reset what is recent begins anew.
func (q *requests) metrics(reset bool) []Metric {
	q.mu.Lock()
	defer q.mu.Unlock()
	var out []Metric
	for c, st := range q.calls {
		at := map[string]string{"endpoint": c.endpoint, "method": c.method, "service_name": c.service}
		if st.recent > 0 {
			out = append(out, Metric{
				Name: "platform_http_requests_latency", Unit: "seconds", Description: "Mean time to the first byte of answers since the last export",
				Value: st.seconds / float64(st.recent), Attributes: at,
			})
		}
		out = append(out,
			Metric{Name: "platform_http_requests_failed", Unit: "1", Description: "Requests answered with a server error", Value: float64(st.failed), Total: true, Attributes: at},
			Metric{Name: "platform_http_requests", Unit: "1", Description: "Requests answered", Value: float64(st.requests), Total: true, Attributes: at})
		if reset {
			st.recent, st.seconds = 0, 0
		}
	}
	return out
}

// lost is how many spans there was no room for, since the start.
func (q *requests) lost() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.skipped
}

func (q *requests) takeSpans(reset bool) []span {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := append([]span(nil), q.spans...)
	if reset {
		q.spans = nil
	}
	return out
}
