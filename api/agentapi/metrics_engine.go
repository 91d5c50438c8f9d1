package agentapi

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/slipway-dev/slipway/engine"
)

// scrapeLimit bounds how long a scrape may ask the store.
const scrapeLimit = 5 * time.Second

// exposition collects what the engine and the database's pool tell at the moment they are asked.
type exposition struct {
	engine Engine
	prefix string
	pool   func() Pool
}

// Describe sends nothing: what is told depends on the database.
func (e exposition) Describe(chan<- *prometheus.Desc) {}

// Collect sends the figures. When the store does not answer, those of the queue are the last known ones or left out.
func (e exposition) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeLimit)
	defer cancel()
	m, err := e.engine.Metrics(ctx)
	if err == nil {
		e.gauge(out, "num_pending_runs", "Runs that wait, delayed ones too, of the whole deployment.", float64(m.Queue.Pending))
		e.gauge(out, "num_running_runs", "Runs that run, of the whole deployment.", float64(m.Queue.Running))
		e.gauge(out, "pending_runs_age_seconds", "How long the oldest due run has waited.", age(m))
	}
	e.gauge(out, "workers_max", "Runs that this server's workers take at once.", float64(m.SlotsMax))
	e.gauge(out, "workers_active", "Runs that this server's workers have.", float64(m.SlotsActive))
	e.gauge(out, "workers_available", "Runs that this server's workers would take now.", float64(m.SlotsMax-m.SlotsActive))
	e.gauge(out, "runs_tracked", "Runs that this server executes or follows for a client.", float64(m.Tracked))
	e.counters(out, m)
	e.histogram(out, "run_queue_wait_time_1st_attempt", "Milliseconds from when a run was due to its first attempt.", m.FirstWait)
	e.histogram(out, "run_queue_wait_time_retry_attempt", "Milliseconds from an attempt that failed to the next one.", m.RetryWait)
	e.histogram(out, "run_execution_latency", "Milliseconds of an attempt.", m.Execution)
	e.histogram(out, "stream_publish_latency", "Milliseconds from a worker's frame to its readers.", m.Publish)
	if e.pool != nil {
		e.database(out, e.pool())
	}
}

// age is in seconds.
func age(m engine.Metrics) float64 {
	if m.Queue.Oldest.IsZero() {
		return 0
	}
	return max(time.Since(m.Queue.Oldest).Seconds(), 0)
}

func (e exposition) counters(out chan<- prometheus.Metric, m engine.Metrics) {
	for _, c := range []struct {
		name, help string
		n          int64
	}{
		{"run_attempt_started_counter", "Attempts of runs that began.", m.AttemptsStarted},
		{"run_success_counter", "Runs that succeeded.", m.Succeeded},
		{"run_canceled_by_request_counter", "Runs that were cancelled.", m.Cancelled},
		{"run_failed_retriable_counter", "Attempts that failed and are repeated.", m.FailedRetriable},
		{"run_failed_after_retry_counter", "Runs that failed for good in a later attempt.", m.FailedAfterRetry},
		{"run_exceed_max_attempts_at_start_counter", "Runs of servers that died, whose attempts were used up.", m.ExceededAtStart},
		{"run_abandoned_by_shutdown_counter", "Runs handed back by a shutdown.", m.AbandonedByShutdown},
		{"run_set_status_error_counter", "Ends of runs that could not be recorded.", m.StatusErrors},
		{"streaming_data_loss_counter", "Readers that were too slow for a stream that is not kept.", m.StreamingDataLoss},
		{"graph_recursion_limit_error_counter", "Runs that reached the recursion limit.", m.RecursionErrors},
		{"server_started_counter", "Starts of this server.", m.Started},
		{"server_stopped_counter", "Shutdowns of this server.", m.Stopped},
	} {
		out <- prometheus.MustNewConstMetric(e.desc(c.name, c.help), prometheus.CounterValue, float64(c.n))
	}
}

func (e exposition) database(out chan<- prometheus.Metric, p Pool) {
	e.gauge(out, "pg_pool_max", "Connections to the database there may be.", float64(p.Max))
	e.gauge(out, "pg_pool_size", "Connections to the database there are.", float64(p.Size))
	e.gauge(out, "pg_pool_available", "Connections to the database that are not in use.", float64(p.Available))
	out <- prometheus.MustNewConstMetric(e.desc("pg_pool_requests_queued_total", "Requests that waited for a connection."), prometheus.CounterValue, float64(p.Queued))
	out <- prometheus.MustNewConstMetric(e.desc("pg_pool_requests_errors_total", "Requests that got no connection."), prometheus.CounterValue, float64(p.Errors))
}

func (e exposition) desc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc(e.prefix+name, help, nil, nil)
}

func (e exposition) gauge(out chan<- prometheus.Metric, name, help string, n float64) {
	out <- prometheus.MustNewConstMetric(e.desc(name, help), prometheus.GaugeValue, n)
}

func (e exposition) histogram(out chan<- prometheus.Metric, name, help string, h engine.Histogram) {
	out <- prometheus.MustNewConstHistogram(e.desc(name, help), h.Count, h.Sum, h.Buckets)
}
