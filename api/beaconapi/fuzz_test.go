package beaconapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/slipway-dev/slipway/beacon"
)

// fuzz sends bodies to one call: nothing answers 5xx, every error has a detail, and what is queued is OTLP.
func fuzz(f *testing.F, path, media string, seeds ...string) {
	s := newServer(f)
	for _, seed := range seeds {
		f.Add([]byte(strings.ReplaceAll(seed, "KEY", s.key)))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r, _ := http.NewRequest("POST", path, strings.NewReader(string(body)))
		r.Header.Set("Content-Type", media)
		r.Header.Set("X-License-Key", s.key)
		r.RemoteAddr = "192.0.2.1:1"
		w := httptest.NewRecorder()
		s.http.Config.Handler.ServeHTTP(w, r)
		if w.Code >= 500 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		if media != protobuf && !json.Valid(w.Body.Bytes()) {
			t.Fatalf("%d with %q", w.Code, w.Body)
		}
		if media != protobuf && w.Code >= 400 && !strings.HasPrefix(w.Body.String(), `{"detail":`) {
			t.Fatalf("%d with %q", w.Code, w.Body)
		}
		s.t = t
		_, errT := new(ptrace.ProtoUnmarshaler).UnmarshalTraces(s.queued(beacon.Traces))
		_, errM := new(pmetric.ProtoUnmarshaler).UnmarshalMetrics(s.queued(beacon.Metrics))
		_, errL := new(plog.ProtoUnmarshaler).UnmarshalLogs(s.queued(beacon.Logs))
		if errT != nil || errM != nil || errL != nil {
			t.Fatalf("what is queued is no OTLP: %v %v %v", errT, errM, errL)
		}
	})
}

func FuzzVerify(f *testing.F) { fuzz(f, verifyPath, "application/json", `{"license":"KEY"}`) }

func FuzzIngest(f *testing.F) {
	fuzz(f, ingestPath, "application/json", ingest(transaction(1), transaction(2)))
}

func FuzzUsage(f *testing.F) { fuzz(f, usagePath, "application/json", snapshot) }

func FuzzMetricsJSON(f *testing.F) {
	fuzz(f, "/v1/beacon/v1/metrics", "application/json", sample("metrics"))
}

func FuzzTracesJSON(f *testing.F) {
	fuzz(f, "/v1/beacon/v1/traces", "application/json", sample("traces"))
}

func FuzzLogsJSON(f *testing.F) {
	fuzz(f, "/v1/beacon/v1/logs", "application/json", sample("logs"))
}

func FuzzTracesProtobuf(f *testing.F) {
	seed, _ := new(ptrace.ProtoMarshaler).MarshalTraces(traces(2))
	fuzz(f, "/v1/beacon/v1/traces", protobuf, string(seed))
}

func FuzzMetricsProtobuf(f *testing.F) {
	m, _ := new(pmetric.JSONUnmarshaler).UnmarshalMetrics([]byte(sample("metrics")))
	seed, _ := new(pmetric.ProtoMarshaler).MarshalMetrics(m)
	fuzz(f, "/v1/beacon/v1/metrics", protobuf, string(seed))
}

func FuzzLogsProtobuf(f *testing.F) {
	l, _ := new(plog.JSONUnmarshaler).UnmarshalLogs([]byte(sample("logs")))
	seed, _ := new(plog.ProtoMarshaler).MarshalLogs(l)
	fuzz(f, "/v1/beacon/v1/logs", protobuf, string(seed))
}
