//go:build otelcol

package collector_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// An OpenTelemetry Collector sends to ours with its own exporter, and ours forwards to another one's receiver, which sends to
// a third of ours. OTELCOL names the binary (make test-otelcol builds it).
func TestOpenTelemetryCollectorAsClientAndBackend(t *testing.T) {
	t.Parallel()
	last := filepath.Join(t.TempDir(), "last")
	lastKey := issue(t, last)
	end := start(t, "--data-dir", last, "--listen", "127.0.0.1:0")
	backend := otelcol(t, end.url+"/v1/beacon", lastKey)

	dir := filepath.Join(t.TempDir(), "data")
	key := issue(t, dir)
	p := start(t, "--data-dir", dir, "--listen", "127.0.0.1:0", "--forward", "http://"+backend)
	client := otelcol(t, p.url+"/v1/beacon", key)

	const span = `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"71699b6fe85982c7c8995ea3d9c95df2","spanId":"3c191d03fa8be0%02x","name":"x"}]}]}]}`
	const sum = `{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"m","sum":{"aggregationTemporality":2,"dataPoints":[{"asInt":"1","timeUnixNano":"1"}]}}]}]}]}`
	const record = `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"severityNumber":13,"body":{"stringValue":"w"}}]}]}]}`
	for i := range 100 {
		for path, body := range map[string]string{"traces": fmt.Sprintf(span, i+1), "metrics": sum, "logs": record} {
			if status, text, err := post("http://"+client+"/v1/"+path, body); status != 200 || err != nil {
				t.Fatalf("%s: %d %s %v", path, status, text, err)
			}
		}
	}
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		got := counted(t, last)
		if got == [3]int64{100, 100, 100} {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("spans, points, records at the end: %v, in between: %v; want 100 each", got, counted(t, dir))
		}
	}
	if got := counted(t, dir); got != [3]int64{100, 100, 100} {
		t.Errorf("in between: %v", got)
	}
}

func counted(t *testing.T, dir string) [3]int64 {
	var usage struct {
		Licenses []struct {
			Spans  int64 `json:"spans"`
			Points int64 `json:"data_points"`
			Logs   int64 `json:"log_records"`
		} `json:"licenses"`
	}
	if err := json.Unmarshal([]byte(must(t, "usage", "--data-dir", dir, "--json")), &usage); err != nil {
		t.Fatal(err)
	}
	return [3]int64{usage.Licenses[0].Spans, usage.Licenses[0].Points, usage.Licenses[0].Logs}
}

// otelcol starts an OpenTelemetry Collector that exports to an endpoint with a licence and returns its receiver's address.
func otelcol(t *testing.T, endpoint, key string) string {
	t.Helper()
	address := freeAddress(t)
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, `
receivers: {otlp: {protocols: {http: {endpoint: %q}}}}
exporters: {otlp_http: {endpoint: %q, headers: {X-License-Key: %q}}}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], exporters: [otlp_http]}
    metrics: {receivers: [otlp], exporters: [otlp_http]}
    logs: {receivers: [otlp], exporters: [otlp_http]}
`, address, endpoint, key), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Getenv("OTELCOL"), "--config", config)
	out := t.Output()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatalf("start the OpenTelemetry Collector (OTELCOL=%q): %v", os.Getenv("OTELCOL"), err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if status, _, err := post("http://"+address+"/v1/traces", `{}`); err == nil && status == 200 {
			return address
		}
	}
	t.Fatal("the OpenTelemetry Collector does not answer")
	return ""
}
