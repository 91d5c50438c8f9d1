package beaconapi

import (
	"encoding/json"
	"errors"
	"fmt"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/beacon"
)

// accepted is what of a request goes into the queue.
type accepted struct {
	items, refused int
	payload        []byte // protobuf
	why            string // why some were refused
}

// batch is a request of any kind as the library holds it.
type batch interface {
	// mend takes out what cannot be kept, gives metrics their canonical names and returns what was refused and why.
	mend() (refused int, why string)
	// redact applies the rules of spec 4.5 and returns how many records were below warning.
	redact(r beacon.Redactor) int
	items() int
	marshal() ([]byte, error)
}

// decodeProtobuf reads a request in protobuf. One that needs no change is kept byte for byte.
func decodeProtobuf(kind beacon.SignalKind, body []byte, enforce bool) (accepted, error) {
	var w walk
	if err := w.message(requestOf(kind), body, 0); err != nil {
		return accepted{}, wrong("the body is no OTLP %s request in protobuf: %w; check the path and the Content-Type", kind, err)
	}
	if w.nameless == 0 && !w.renamed && !enforce {
		return accepted{items: w.items, payload: body}, nil
	}
	b, err := parse(kind, body, false)
	if err != nil {
		return accepted{}, wrong("the body is no OTLP %s request in protobuf: %w; check the path and the Content-Type", kind, err)
	}
	return finish(kind, b, enforce)
}

// decodeJSON reads a request in JSON: as OTLP writes it, and as the samples of the specification do (control-plane
// reference 9).
func decodeJSON(kind beacon.SignalKind, body []byte, enforce bool) (accepted, error) {
	if depth(body) > maxDepth {
		return accepted{}, wrong("values are nested more than %d deep; send flatter ones", maxDepth)
	}
	b, err := parse(kind, body, true)
	if err != nil {
		return accepted{}, explain(kind, body, err)
	}
	if b.items() == 0 {
		if err := explain(kind, body, nil); err != nil { // perhaps it is a request of another kind
			return accepted{}, err
		}
	}
	if m, ok := b.(metrics); ok && m.unsaid() {
		if b, err = parseSample(body); err != nil {
			return accepted{}, err
		}
	}
	return finish(kind, b, enforce)
}

func wrong(format string, args ...any) error {
	return &slipway.Error{Code: slipway.CodeInvalid, Problems: slipway.Problems{
		{Loc: []any{"body"}, Msg: fmt.Errorf(format, args...).Error(), Type: "value_error"},
	}}
}

func parse(kind beacon.SignalKind, body []byte, isJSON bool) (batch, error) {
	switch kind {
	case beacon.Traces:
		t, err := parseTraces(body, isJSON)
		return traces{t}, err
	case beacon.Metrics:
		m, err := parseMetrics(body, isJSON)
		return metrics{m}, err
	case beacon.Logs:
	}
	l, err := parseLogs(body, isJSON)
	return logs{l}, err
}

func parseTraces(body []byte, isJSON bool) (ptrace.Traces, error) {
	if isJSON {
		return new(ptrace.JSONUnmarshaler).UnmarshalTraces(body)
	}
	return new(ptrace.ProtoUnmarshaler).UnmarshalTraces(body)
}

func parseMetrics(body []byte, isJSON bool) (pmetric.Metrics, error) {
	if isJSON {
		return new(pmetric.JSONUnmarshaler).UnmarshalMetrics(body)
	}
	return new(pmetric.ProtoUnmarshaler).UnmarshalMetrics(body)
}

func parseLogs(body []byte, isJSON bool) (plog.Logs, error) {
	if isJSON {
		return new(plog.JSONUnmarshaler).UnmarshalLogs(body)
	}
	return new(plog.ProtoUnmarshaler).UnmarshalLogs(body)
}

func finish(kind beacon.SignalKind, b batch, enforce bool) (accepted, error) {
	var a accepted
	a.refused, a.why = b.mend()
	if enforce {
		if n := b.redact(beacon.Redactor{}); n > 0 {
			a.refused += n
			a.why = fmt.Sprintf("log records below severity %d are not telemetry", beacon.SeverityWarning)
		}
	}
	if a.items = b.items(); a.items == 0 {
		return a, nil
	}
	payload, err := b.marshal()
	if err != nil {
		return a, wrong("the telemetry cannot be written as OTLP: %w", err)
	}
	// What the library made of JSON is walked like what comes in protobuf: a text that is not UTF-8 must not reach a backend.
	var w walk
	if err := w.message(requestOf(kind), payload, 0); err != nil {
		return a, wrong("the telemetry cannot be written as OTLP: %w", err)
	}
	a.payload = payload
	return a, nil
}

type traces struct{ ptrace.Traces }

func (t traces) items() int { return t.SpanCount() }

func (t traces) marshal() ([]byte, error) { return new(ptrace.ProtoMarshaler).MarshalTraces(t.Traces) }

// mend refuses spans without identifiers: no backend could place them.
func (t traces) mend() (refused int, why string) {
	for _, rs := range t.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			ss.Spans().RemoveIf(func(s ptrace.Span) bool {
				bad := s.TraceID().IsEmpty() || s.SpanID().IsEmpty()
				if bad {
					refused, why = refused+1, "spans need a traceId of 32 and a spanId of 16 hexadecimal digits that are not all zero"
				}
				return bad
			})
		}
	}
	return refused, why
}

type metrics struct{ pmetric.Metrics }

func (m metrics) items() int { return m.DataPointCount() }

func (m metrics) marshal() ([]byte, error) {
	return new(pmetric.ProtoMarshaler).MarshalMetrics(m.Metrics)
}

func (m metrics) each(fn func(pmetric.Metric)) {
	for _, rm := range m.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, metric := range sm.Metrics().All() {
				fn(metric)
			}
		}
	}
}

func (m metrics) mend() (int, string) {
	m.each(func(metric pmetric.Metric) { metric.SetName(beacon.MetricName(metric.Name())) })
	return 0, ""
}

// unsaid says whether a sum does not tell its temporality: the specification's samples say it in the data points.
func (m metrics) unsaid() (found bool) {
	m.each(func(metric pmetric.Metric) {
		found = found || metric.Type() == pmetric.MetricTypeSum &&
			metric.Sum().AggregationTemporality() == pmetric.AggregationTemporalityUnspecified
	})
	return found
}

type logs struct{ plog.Logs }

func (l logs) items() int { return l.LogRecordCount() }

func (l logs) marshal() ([]byte, error) { return new(plog.ProtoMarshaler).MarshalLogs(l.Logs) }

func (l logs) mend() (int, string) { return 0, "" }

// parseSample reads metrics whose sums carry aggregationTemporality and isMonotonic in their data points.
func parseSample(body []byte) (batch, error) {
	var request map[string]any
	if err := unmarshalNumbers(body, &request); err != nil {
		return nil, explain(beacon.Metrics, body, err)
	}
	lift(request)
	mended, err := json.Marshal(request)
	if err != nil {
		return nil, wrong("the metrics cannot be read: %w", err)
	}
	m, err := parseMetrics(mended, true)
	if err != nil {
		return nil, explain(beacon.Metrics, body, err)
	}
	return metrics{m}, nil
}

// lift moves the flags of a sum's data points to the sum, wherever there is a sum.
func lift(v any) {
	switch v := v.(type) {
	case []any:
		for _, element := range v {
			lift(element)
		}
	case map[string]any:
		if sum, ok := v["sum"].(map[string]any); ok {
			liftSum(sum)
			return
		}
		for name, member := range v {
			if name != "attributes" {
				lift(member)
			}
		}
	}
}

func liftSum(sum map[string]any) {
	points, _ := sum["dataPoints"].([]any)
	for _, p := range points {
		point, _ := p.(map[string]any)
		for _, flag := range []string{"aggregationTemporality", "isMonotonic"} {
			if value, ok := point[flag]; ok && sum[flag] == nil {
				sum[flag] = value
			}
		}
	}
}

// depth is how deeply arrays and objects are nested in a JSON text, whatever else it is.
func depth(text []byte) (deepest int) {
	level, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			level++
			deepest = max(deepest, level)
		case c == '}' || c == ']':
			level--
		}
	}
	return deepest
}

var errExtra = errors.New("there is text after the end of the JSON value")
