package beaconapi

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/slipway-dev/slipway/beacon"
	"github.com/slipway-dev/slipway/intake"
)

// scrapeLimit bounds how long a scrape may ask the store.
const scrapeLimit = 5 * time.Second

// requestCounter counts answers by call and status.
type requestCounter struct {
	mu     sync.Mutex
	counts map[[2]string]float64
}

func newRequestCounter() *requestCounter {
	return &requestCounter{counts: map[[2]string]float64{}}
}

// status is a response writer that remembers what was answered.
type status struct {
	http.ResponseWriter
	code int
}

// WriteHeader remembers the status.
func (s *status) WriteHeader(code int) {
	if s.code == 0 {
		s.code = code
	}
	s.ResponseWriter.WriteHeader(code)
}

// Unwrap gives http.ResponseController what is underneath.
func (s *status) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// count serves requests with next and counts them under the pattern that they have in mux.
func (c *requestCounter) count(mux *http.ServeMux, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, pattern := mux.Handler(r)
		s := &status{ResponseWriter: w}
		next.ServeHTTP(s, r)
		if s.code == 0 {
			s.code = http.StatusOK
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.counts[[2]string{pattern, strconv.Itoa(s.code)}]++
	})
}

// exposition collects what /metrics shows at the moment it is asked.
type exposition struct {
	api *api
}

func describeMetric(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("slipway_collector_"+name, help, labels, nil)
}

// Describe sends nothing: the metrics are known only when they are collected.
func (e exposition) Describe(chan<- *prometheus.Desc) {}

// Collect sends the state of the collector.
func (e exposition) Collect(out chan<- prometheus.Metric) {
	e.requests(out)
	ctx, cancel := context.WithTimeout(context.Background(), scrapeLimit)
	defer cancel()
	stats, err := e.api.svc.Stats(ctx)
	if err != nil {
		out <- prometheus.NewInvalidMetric(describeMetric("up", "Whether the store answers."), err)
		return
	}
	e.stats(out, stats)
	if e.api.cfg.PerLicence {
		e.usage(ctx, out)
	}
}

func counter(out chan<- prometheus.Metric, d *prometheus.Desc, n float64, labels ...string) {
	out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, n, labels...)
}

func gauge64(out chan<- prometheus.Metric, d *prometheus.Desc, n float64, labels ...string) {
	out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, n, labels...)
}

func (e exposition) requests(out chan<- prometheus.Metric) {
	d := describeMetric("requests_total", "Requests answered, by call and status.", "call", "status")
	e.api.requests.mu.Lock()
	defer e.api.requests.mu.Unlock()
	for key, n := range e.api.requests.counts {
		counter(out, d, n, key[0], key[1])
	}
}

func (e exposition) stats(out chan<- prometheus.Metric, s intake.Stats) {
	counter(out, describeMetric("transactions_total", "Trace transactions counted since the start."), float64(s.Transactions))
	counter(out, describeMetric("duplicates_total", "Trace transactions that had been counted before."), float64(s.Duplicates))
	counter(out, describeMetric("snapshots_total", "Usage snapshots recorded since the start."), float64(s.Snapshots))
	counter(out, describeMetric("limited_total", "Requests refused because their address made too many."), float64(s.Limited))
	counter(out, describeMetric("dropped_batches_total", "Batches of telemetry dropped for want of room or for their age."), float64(s.Dropped))
	gauge64(out, describeMetric("queue_batches", "Batches of telemetry that wait."), float64(s.Queue.Batches))
	gauge64(out, describeMetric("queue_bytes", "Bytes of telemetry that wait."), float64(s.Queue.Bytes))
	licences := describeMetric("licences", "Licences by status.", "status")
	for name, n := range s.Licences {
		gauge64(out, licences, float64(n), name)
	}
	items := describeMetric("items_total", "Data points, spans and log records by what became of them.", "kind", "outcome")
	for _, kind := range beacon.SignalKinds() {
		k := s.Kinds[kind]
		counter(out, items, float64(k.Items), string(kind), "accepted")
		counter(out, items, float64(k.Refused), string(kind), "refused")
		counter(out, items, float64(k.Forwarded), string(kind), "forwarded")
		counter(out, items, float64(k.Undeliverable), string(kind), "undeliverable")
	}
	retries := describeMetric("forward_retries_total", "Deliveries to the backend that failed and were repeated.", "kind")
	for _, kind := range beacon.SignalKinds() {
		counter(out, retries, float64(s.Kinds[kind].Retries), string(kind))
	}
}

// usage shows what each licence used in all; customers' names stay out of it.
func (e exposition) usage(ctx context.Context, out chan<- prometheus.Metric) {
	list, err := e.api.svc.Usage(ctx, beacon.UsageQuery{})
	traces := describeMetric("licence_traces_total", "Traces counted for a licence.", "license_id")
	if err != nil {
		out <- prometheus.NewInvalidMetric(traces, err)
		return
	}
	measures := describeMetric("licence_measure", "A measure of a licence's latest usage snapshot.", "license_id", "measure")
	for _, u := range list {
		counter(out, traces, float64(u.TraceCount), u.LicenceID)
		for name, n := range u.Measures {
			gauge64(out, measures, float64(n), u.LicenceID, name)
		}
	}
}

// metrics answers GET /metrics.
func (a *api) metrics() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(exposition{a}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}
