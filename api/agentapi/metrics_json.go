package agentapi

import (
	"context"
	"strings"

	"github.com/slipway-dev/slipway/engine"
)

// figures are the metrics as JSON: the deployment's queue, this server's workers, runs and HTTP side (reference 9).
func (m *meter) figures(ctx context.Context, e Engine) (object, error) {
	all, err := e.Metrics(ctx)
	if err != nil {
		return nil, err
	}
	http, err := m.httpFigures()
	return object{
		{"queue", object{{"pending", all.Queue.Pending}, {"running", all.Queue.Running}, {"oldest_pending_age_secs", age(all)}}},
		{"workers", object{{"max", all.SlotsMax}, {"active", all.SlotsActive}, {"available", all.SlotsMax - all.SlotsActive}}},
		{"runs", object{
			{"attempts_started", all.AttemptsStarted}, {"succeeded", all.Succeeded}, {"cancelled", all.Cancelled}, {"failed_retriable", all.FailedRetriable},
			{"failed_after_retry", all.FailedAfterRetry}, {"queue_wait_ms", summary(all.FirstWait)}, {"execution_ms", summary(all.Execution)},
		}},
		{"http", http},
	}, err
}

func summary(h engine.Histogram) object { return object{{"count", h.Count}, {"sum", h.Sum}} }

// httpFigures lists requests and latencies by route.
func (m *meter) httpFigures() (object, error) {
	families, err := m.http.Gather()
	if err != nil {
		return nil, err
	}
	requests, latency, open := []object{}, []object{}, 0.0
	for _, f := range families {
		for _, one := range f.GetMetric() {
			row := object{}
			for _, l := range one.GetLabel() {
				if l.GetName() == "method" || l.GetName() == "path" || l.GetName() == "status" {
					row = append(row, member{l.GetName(), l.GetValue()})
				}
			}
			switch {
			case one.GetCounter() != nil:
				requests = append(requests, append(row, member{"count", one.GetCounter().GetValue()}))
			case one.GetHistogram() != nil:
				h := one.GetHistogram()
				latency = append(latency, append(row, member{"count", h.GetSampleCount()}, member{"sum", h.GetSampleSum()}))
			case strings.HasSuffix(f.GetName(), "streams_open"):
				open = one.GetGauge().GetValue()
			}
		}
	}
	return object{{"requests", requests}, {"latency_ms", latency}, {"streams_open", open}}, nil
}
