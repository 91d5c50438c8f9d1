package beacon

import (
	"strings"
	"time"
)

// SignalKind is one of the three kinds of operational telemetry.
type SignalKind string

// The kinds, named as in the last step of their paths (spec 4.5).
const (
	Metrics SignalKind = "metrics"
	Traces  SignalKind = "traces"
	Logs    SignalKind = "logs"
)

// SignalKinds lists them.
func SignalKinds() []SignalKind { return []SignalKind{Metrics, Traces, Logs} }

// Signals is a batch of operational telemetry as it was accepted.
type Signals struct {
	Seq        int64 // position in the queue; set by the store
	Kind       SignalKind
	LicenceID  string
	ReceivedAt time.Time
	Items      int    // data points, spans or log records
	Payload    []byte // an OTLP export request in protobuf; payloads of one kind may be joined end to end
}

// upstreamPrefix begins metric names as upstream's installations send them (control-plane reference, aliases).
const upstreamPrefix = "langsmith_http_requests_"

// MetricName is the canonical name of a received metric.
func MetricName(name string) string {
	if rest, ok := strings.CutPrefix(name, upstreamPrefix); ok {
		return "platform_http_requests_" + rest
	}
	return name
}
