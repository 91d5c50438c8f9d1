package agentapi

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/engine"
)

// Pool is the state of a pool of database connections.
type Pool struct {
	Max, Size, Available int
	Queued, Errors       int64 // requests that had to wait, and that got no connection
}

// MetricsConfig says how GET /metrics names what it tells.
type MetricsConfig struct {
	Prefix string            // METRIC_PREFIX ("lg_api_")
	Labels map[string]string // of every metric: project_id, revision_id
	Pool   func() Pool       // of PostgreSQL; nil = the data are in a file
}

// meter measures the HTTP side of the server; the engine measures itself.
type meter struct {
	http     *prometheus.Registry
	scrape   http.Handler
	requests *prometheus.CounterVec
	latency  *prometheus.HistogramVec
	streams  prometheus.Gauge
}

func newMeter(e Engine, cfg MetricsConfig) *meter {
	prefix := firstText(cfg.Prefix, "lg_api_")
	m := &meter{
		http:     prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + "http_requests_total", Help: "Requests answered."}, []string{"method", "path", "status"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: prefix + "http_requests_latency", Help: "Milliseconds to the end of an answer, of an event stream to its beginning.", Buckets: engine.LatencyBounds(),
		}, []string{"method", "path"}),
		streams: prometheus.NewGauge(prometheus.GaugeOpts{Name: prefix + "streams_open", Help: "Event streams that are open."}),
	}
	rest := prometheus.NewRegistry()
	prometheus.WrapRegistererWith(cfg.Labels, m.http).MustRegister(m.requests, m.latency, m.streams)
	prometheus.WrapRegistererWith(cfg.Labels, rest).MustRegister(exposition{e, prefix, cfg.Pool})
	rest.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.scrape = promhttp.HandlerFor(prometheus.Gatherers{m.http, rest}, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
	return m
}

// measured is a response writer that remembers what a request was answered, and when.
type measured struct {
	http.ResponseWriter
	m      *meter
	status int
	stream bool
	first  time.Time
}

// WriteHeader notes the status.
func (w *measured) WriteHeader(status int) {
	w.note(status)
	w.ResponseWriter.WriteHeader(status)
}

// Write notes that the answer has begun.
func (w *measured) Write(p []byte) (int, error) {
	w.note(http.StatusOK)
	return w.ResponseWriter.Write(p)
}

// Unwrap gives http.ResponseController what is underneath.
func (w *measured) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *measured) note(status int) {
	if w.status != 0 {
		return
	}
	w.status = status
	if w.stream = strings.HasPrefix(w.Header().Get("Content-Type"), eventStream); w.stream {
		w.first = time.Now()
		w.m.streams.Inc()
	}
}

func (w *measured) statusOr(fallback int) int {
	if w.status == 0 {
		return fallback
	}
	return w.status
}

// measure serves a request with next and counts it under the pattern of its route.
func (m *meter) measure(w http.ResponseWriter, r *http.Request, pattern string, next http.Handler) {
	began, out := time.Now(), &measured{ResponseWriter: w, m: m}
	fallback := http.StatusInternalServerError // of a panic, which is answered further out
	defer func() {
		end := time.Now()
		if out.stream {
			m.streams.Dec()
			end = out.first
		}
		method, path := routeLabels(pattern, r)
		m.requests.WithLabelValues(method, path, strconv.Itoa(out.statusOr(fallback))).Inc()
		m.latency.WithLabelValues(method, path).Observe(float64(end.Sub(began)) / float64(time.Millisecond))
	}()
	next.ServeHTTP(out, r)
	fallback = http.StatusOK
}

// routeLabels bounds the labels: what no route matches is one path, and unknown methods are one method.
func routeLabels(pattern string, r *http.Request) (method, path string) {
	method, path, _ = strings.Cut(pattern, " ")
	switch {
	case pattern == "":
		return "other", "other"
	case !strings.Contains(path, "{first}"):
		return method, path
	case strings.HasPrefix(r.URL.Path, "/runs/crons/"):
		return method, "/runs/crons/{cron_id}"
	}
	return method, "/runs/{run_id}/stream"
}

// metrics answers GET /metrics (reference 9). One look at the queue a second is all that it costs the database.
func (a *API) metrics(w http.ResponseWriter, r *http.Request) error {
	switch format := query(r, "format"); format {
	case "", "prometheus":
		a.meter.scrape.ServeHTTP(w, r)
		return nil
	case "json":
		all, err := a.meter.figures(r.Context(), a.engine)
		return orWrite(w, all, err)
	default:
		return slipway.Errorf(slipway.CodeInvalid, "query.format must be prometheus or json, got %q", format)
	}
}
