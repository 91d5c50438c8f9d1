package beaconapi_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/slipway-dev/slipway/beacon"
)

const protobuf = "application/x-protobuf"

// queued takes everything of a kind out of the queue, joined.
func (s *server) queued(kind beacon.SignalKind) []byte {
	s.t.Helper()
	var joined []byte
	if err := s.store.Update(context.Background(), func(tx beacon.Tx) error {
		list, err := tx.ClaimSignals(kind, s.clock.now(), s.clock.now().Add(time.Minute), 1000, 1<<30)
		slices.SortFunc(list, func(a, b beacon.Signals) int { return int(a.Seq - b.Seq) })
		for _, b := range list {
			joined = append(joined, b.Payload...)
		}
		return err
	}); err != nil {
		s.t.Fatal(err)
	}
	return joined
}

func (s *server) queuedTraces() ptrace.Traces {
	s.t.Helper()
	got, err := new(ptrace.ProtoUnmarshaler).UnmarshalTraces(s.queued(beacon.Traces))
	if err != nil {
		s.t.Fatal(err)
	}
	return got
}

func (s *server) queuedMetrics() []pmetric.Metric {
	s.t.Helper()
	got, err := new(pmetric.ProtoUnmarshaler).UnmarshalMetrics(s.queued(beacon.Metrics))
	if err != nil {
		s.t.Fatal(err)
	}
	var list []pmetric.Metric
	for _, rm := range got.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				list = append(list, m)
			}
		}
	}
	return list
}

func (s *server) queuedLogs() plog.Logs {
	s.t.Helper()
	got, err := new(plog.ProtoUnmarshaler).UnmarshalLogs(s.queued(beacon.Logs))
	if err != nil {
		s.t.Fatal(err)
	}
	return got
}

func TestSamplesOfTheSpecification(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for _, kind := range []string{"metrics", "traces", "logs"} {
		if got := s.otlp(kind, sample(kind)); got.status != 200 || string(got.body) != "{}" {
			t.Errorf("%s: %s", kind, got)
		}
	}
	list := s.queuedMetrics()
	if list[0].Name() != "platform_http_requests_latency" || list[0].Gauge().DataPoints().At(0).DoubleValue() != 0.25 {
		t.Errorf("gauge %s", list[0].Name())
	}
	sum := list[1].Sum()
	if !sum.IsMonotonic() || sum.AggregationTemporality() != pmetric.AggregationTemporalityCumulative || sum.DataPoints().At(0).IntValue() != 3 ||
		sum.DataPoints().At(0).Timestamp() != 1736153260000000000 {
		t.Errorf("the flags in the data point of the sum were lost: %v %v", sum.IsMonotonic(), sum.AggregationTemporality())
	}
	span := s.queuedTraces().ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	if span.TraceID().String() != "71699b6fe85982c7c8995ea3d9c95df2" || span.SpanID().String() != "3c191d03fa8be065" || span.Status().Message() != "it failed" {
		t.Errorf("span %s %s", span.TraceID(), span.SpanID())
	}
	if got := s.queuedLogs().LogRecordCount(); got != 2 {
		t.Errorf("%d log records", got)
	}
	if u := s.usage(); u.DataPoints != 2 || u.Spans != 1 || u.LogRecords != 2 || u.Refused != 0 {
		t.Errorf("usage %+v", u)
	}
}

func TestWrongOTLPNamesTheMember(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for _, test := range []struct{ kind, old, new, want string }{
		{"traces", `71699b6fe85982c7c8995ea3d9c95df2`, `71699b6f`, `"spans",0,"traceId"`},
		{"traces", `"71699b6fe85982c7c8995ea3d9c95df2"`, `5`, `"traceId"`},
		{"traces", `71699b6fe85982c7c8995ea3d9c95df2`, `cWmbb+hZgsfImV6j2cld8g==`, `"traceId"`}, // base64, as plain protojson writes it
		{"traces", `"1736153260000000000"`, `"later"`, `"endTimeUnixNano"`},
		{"traces", `"spans":[`, `"spans":[5,`, `"spans"`},
		{"traces", `"resourceSpans"`, `"resourceMetrics"`, `["body","resourceSpans"]`},
		{"metrics", `"asInt":3`, `"asInt":"many"`, `"asInt"`},
		{"metrics", `"asInt":3`, `"asInt":3.5`, `"asInt"`},
		{"metrics", `"asDouble":0.25`, `"asDouble":"fast"`, `"asDouble"`},
		{"metrics", `"gauge":{`, `"gauge":[{`, `json_invalid`},
		{"logs", `"severityNumber":13`, `"severityNumber":[]`, `"severityNumber"`},
		{"logs", `{"stringValue":"the queue is long"}`, `"the queue is long"`, `"body"`},
		{"logs", `{"resourceLogs"`, `{} {"resourceLogs"`, `body`},
		{"logs", sample("logs"), `null`, `not a JSON object`},
		{"logs", sample("logs"), ``, `json_invalid`},
		{"logs", sample("logs"), `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":` + strings.Repeat(`{"arrayValue":{"values":[`, 300_000) + strings.Repeat(`]}}`, 300_000) + `}]}]}]}`, `nested more than`},
	} {
		body := strings.Replace(sample(test.kind), test.old, test.new, 1)
		if got := s.otlp(test.kind, body); got.status != 422 || !strings.Contains(got.String(), test.want) {
			t.Errorf("%s with %.60s: %.300s, want 422 with %s", test.kind, test.new, got, test.want)
		}
	}
	if u := s.usage(); u.Spans+u.DataPoints+u.LogRecords != 0 {
		t.Errorf("something was kept: %+v", u)
	}
}

// nest wraps b as a length-delimited field.
func nest(field int, b []byte) []byte {
	out := binary.AppendUvarint(nil, uint64(field<<3|2))
	return append(binary.AppendUvarint(out, uint64(len(b))), b...)
}

func TestProtobuf(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	send := func(kind string, body []byte) answer {
		return s.send("POST", "/v1/beacon/v1/"+kind, body, "Content-Type", protobuf, "Authorization", "Bearer "+s.key)
	}
	good, _ := new(ptrace.ProtoMarshaler).MarshalTraces(traces(3))
	got := send("traces", good)
	if got.status != 200 || len(got.body) != 0 || got.header.Get("Content-Type") != protobuf {
		t.Errorf("good: %s", got)
	}
	half := traces(3)
	half.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(1).SetSpanID(pcommon.NewSpanIDEmpty())
	partly, _ := new(ptrace.ProtoMarshaler).MarshalTraces(half)
	got = send("traces", partly)
	if got.status != 200 || len(got.body) < 8 || got.body[0] != 0x0a || got.body[2] != 0x08 || got.body[3] != 1 {
		t.Errorf("partly good: %d %x, want a partial success with 1 rejected", got.status, got.body)
	}
	if n := s.queuedTraces().SpanCount(); n != 5 {
		t.Errorf("%d spans are queued, want 5", n)
	}
	for name, body := range map[string][]byte{
		"text": []byte("hello"), "cut off": good[:len(good)-5], "another kind": nest(1, nest(2, nest(2, nest(5, []byte{0xff, 0xfe})))),
		"bad UTF-8": nest(1, nest(3, []byte{0xff})), "short id": nest(1, nest(2, nest(2, nest(1, []byte{1})))), "group": {3<<3 | 3}, "field 0": {0, 0},
	} {
		if got := send("traces", body); got.status != 422 || got.header.Get("Content-Type") != protobuf || got.body[0] != 2<<3|2 {
			t.Errorf("%s: %s, want 422 with a Status", name, got)
		}
	}
	if got := send("traces", nil); got.status != 200 {
		t.Errorf("an empty request: %s", got)
	}
}

// A few megabytes of values in values once ended a process that gave them to the library.
func TestDeepProtobufIsRefused(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	var reversed []byte
	wrap := func(field int) {
		head := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(field<<3|2)), uint64(len(reversed)))
		slices.Reverse(head)
		reversed = append(reversed, head...)
	}
	for len(reversed) < 15<<20 {
		wrap(1) // ArrayValue.values
		wrap(5) // AnyValue.array_value
	}
	for _, field := range []int{5, 2, 2, 1} { // body, record, scope, resource
		wrap(field)
	}
	slices.Reverse(reversed)
	got := s.send("POST", "/v1/beacon/v1/logs", reversed, "Content-Type", protobuf, "X-License-Key", s.key)
	if got.status != 422 || !strings.Contains(got.String(), "nested more than") {
		t.Errorf("%.200s", got)
	}
}

func traces(n int) ptrace.Traces {
	t := ptrace.NewTraces()
	spans := t.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	for i := range n {
		s := spans.AppendEmpty()
		s.SetTraceID(pcommon.TraceID{1, byte(i)})
		s.SetSpanID(pcommon.SpanID{2, byte(i)})
		s.SetName(fmt.Sprint("span ", i))
		s.Attributes().PutStr("canary", "canary")
	}
	return t
}

func TestStockExporters(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ctx := t.Context()
	headers := map[string]string{"X-License-Key": s.key}
	te, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(s.http.URL+"/v1/beacon/v1/traces"), otlptracehttp.WithHeaders(headers), otlptracehttp.WithCompression(otlptracehttp.GzipCompression))
	if err != nil {
		t.Fatal(err)
	}
	tp := sdktrace.NewTracerProvider(sdktrace.WithBatcher(te))
	for i := range 100 {
		_, span := tp.Tracer("test").Start(ctx, fmt.Sprint("span ", i))
		span.SetAttributes(attribute.StringSlice("list", []string{"a", "b"}))
		span.AddEvent("event")
		span.End()
	}
	if err := tp.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	me, err := otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(s.http.URL+"/v1/beacon/v1/metrics"), otlpmetrichttp.WithHeaders(headers))
	if err != nil {
		t.Fatal(err)
	}
	mp := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(me)))
	requests, _ := mp.Meter("test").Int64Counter("langsmith_http_requests_failed")
	latency, _ := mp.Meter("test").Float64Histogram("latency")
	requests.Add(ctx, 7, metric.WithAttributes(attribute.String("endpoint", "/runs")))
	latency.Record(ctx, 0.5)
	if err := mp.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	if n := s.queuedTraces().SpanCount(); n != 100 {
		t.Errorf("%d spans arrived, want 100", n)
	}
	list := s.queuedMetrics()
	if len(list) != 2 || list[0].Name() != "platform_http_requests_failed" || list[0].Sum().DataPoints().At(0).IntValue() != 7 {
		t.Errorf("%d metrics arrived", len(list))
	}
}

func TestCredentialsOfSignals(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	const path = "/v1/beacon/v1/logs"
	for name, test := range map[string]struct {
		body    string
		headers []string
		status  int
	}{
		"none":          {sample("logs"), nil, 401},
		"bearer":        {sample("logs"), []string{"Authorization", "bearer " + s.key}, 200},
		"basic":         {sample("logs"), []string{"Authorization", "Basic " + s.key}, 401},
		"license":       {`{"license":"KEY",` + samplePart("logs"), nil, 200},
		"license_key":   {`{"license_key":"KEY",` + samplePart("logs"), nil, 200},
		"no media type": {sample("logs"), []string{"X-License-Key", s.key, "Content-Type", ""}, 200},
		"charset":       {sample("logs"), []string{"X-License-Key", s.key, "Content-Type", "application/json; charset=utf-8"}, 200},
		"xml":           {sample("logs"), []string{"X-License-Key", s.key, "Content-Type", "text/xml"}, 415},
	} {
		if got := s.post(path, test.body, test.headers...); got.status != test.status {
			t.Errorf("%s: %s, want %d", name, got, test.status)
		}
	}
}

func TestEnforcedRedaction(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(o *options) { o.api.Enforce = true })
	for _, kind := range []string{"metrics", "traces", "logs"} {
		got := s.otlp(kind, sample(kind))
		if wantPartial := kind == "logs"; got.status != 200 || strings.Contains(got.String(), `"rejectedLogRecords":1`) != wantPartial {
			t.Errorf("%s: %s", kind, got)
		}
	}
	body, _ := new(ptrace.ProtoMarshaler).MarshalTraces(traces(3))
	if got := s.send("POST", "/v1/beacon/v1/traces", body, "Content-Type", protobuf, "X-License-Key", s.key); got.status != 200 {
		t.Errorf("protobuf: %s", got)
	}
	all := ""
	for _, kind := range beacon.SignalKinds() {
		all += string(s.queued(kind))
	}
	if strings.Contains(all, "canary") || strings.Contains(all, "an info") {
		t.Error("what may not be sent was kept")
	}
	if !strings.Contains(all, "the queue is long") || !strings.Contains(all, "POST") || !strings.Contains(all, "/runs") {
		t.Error("what may be sent was not kept")
	}
}
