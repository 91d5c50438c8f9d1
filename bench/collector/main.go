// Command collector measures how fast slipway's collector takes in telemetry beside an OpenTelemetry Collector: the same
// batches, the same clients, one after the other on the same machine. It prints one JSON line per figure.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

type figure struct {
	Name   string  `json:"name"`
	Spans  float64 `json:"spans_per_s"`
	Memory float64 `json:"peak_memory_mb"`
	Note   string  `json:"note"`
}

func main() {
	binary := flag.String("binary", "bin/slipway", "slipway")
	otelcol := flag.String("otelcol", os.Getenv("OTELCOL"), "OpenTelemetry Collector (make otelcol)")
	spans := flag.Int("spans", 512, "spans in a batch")
	seconds := flag.Int("seconds", 5, "seconds per round")
	rounds := flag.Int("rounds", 3, "rounds; medians are reported")
	clients := flag.Int("clients", 8, "requests in flight")
	flag.Parse()
	if err := run(*binary, *otelcol, *spans, *seconds, *rounds, *clients); err != nil {
		fmt.Fprintln(os.Stderr, "bench/collector:", err)
		os.Exit(1)
	}
}

func run(binary, otelcol string, spans, seconds, rounds, clients int) error {
	dir, err := os.MkdirTemp("", "slipway-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	targets, err := targets(dir, binary, otelcol)
	if err != nil {
		return err
	}
	body := batch(spans)
	results := map[string][]figure{}
	for range rounds {
		for _, target := range targets {
			f, err := target.measure(body, spans, clients, time.Duration(seconds)*time.Second)
			if err != nil {
				return fmt.Errorf("%s: %w", target.name, err)
			}
			results[target.name] = append(results[target.name], f)
		}
	}
	for _, target := range targets {
		list := results[target.name]
		slices.SortFunc(list, func(a, b figure) int { return int(a.Spans - b.Spans) })
		line, err := json.Marshal(list[len(list)/2])
		if err != nil {
			return err
		}
		fmt.Println(string(line))
	}
	return nil
}

// target is a program that is measured.
type target struct {
	name, note string
	command    []string
	url        string
	key        string
}

const config = `
receivers: {otlp: {protocols: {http: {endpoint: "127.0.0.1:24318"}}}}
exporters:
  nop: {}
  otlp_http:
    endpoint: "http://127.0.0.1:9"
    retry_on_failure: {max_elapsed_time: 0s}
    sending_queue: {queue_size: 1000000, storage: file_storage, num_consumers: 1}
extensions: {file_storage: {directory: %q, create_directory: true, fsync: true}}
service:
  extensions: [file_storage]
  telemetry: {metrics: {level: none}, logs: {level: error}}
  pipelines: {traces: {receivers: [otlp], exporters: [%s]}}
`

func targets(dir, binary, otelcol string) ([]target, error) {
	data := filepath.Join(dir, "data")
	out, err := exec.Command(binary, "license", "issue", "--data-dir", data, "--customer", "bench", "--json").Output()
	if err != nil {
		return nil, fmt.Errorf("issue a licence: %w", err)
	}
	var licence struct {
		Key string `json:"license_key"`
	}
	if err := json.Unmarshal(out, &licence); err != nil {
		return nil, err
	}
	list := []target{{
		name: "slipway collector", note: "durable: fsync before the answer", key: licence.Key, url: "http://127.0.0.1:24317/v1/beacon/v1/traces",
		command: []string{binary, "collector", "--data-dir", data, "--listen", "127.0.0.1:24317", "--rate", "10000000"},
	}}
	for _, variant := range []struct{ exporter, note string }{{"nop", "discards"}, {"otlp_http", "durable: file_storage queue with fsync"}} {
		file := filepath.Join(dir, variant.exporter+".yaml")
		if err := os.WriteFile(file, fmt.Appendf(nil, config, filepath.Join(dir, variant.exporter), variant.exporter), 0o600); err != nil {
			return nil, err
		}
		list = append(list, target{
			name: "OpenTelemetry Collector, " + variant.exporter, note: variant.note, url: "http://127.0.0.1:24318/v1/traces",
			command: []string{otelcol, "--config", file},
		})
	}
	return list, nil
}

// measure starts the program, loads it for a while and stops it.
func (t target) measure(body []byte, spans, clients int, d time.Duration) (figure, error) {
	cmd := exec.Command(t.command[0], t.command[1:]...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return figure{}, err
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	if err := t.await(); err != nil {
		return figure{}, err
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	var accepted, failed atomic.Int64
	var wg sync.WaitGroup
	begin := time.Now()
	for range clients {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for time.Since(begin) < d {
				if t.send(client, body) == http.StatusOK {
					accepted.Add(int64(spans))
				} else {
					failed.Add(1)
				}
			}
		}()
	}
	wg.Wait()
	rate := float64(accepted.Load()) / time.Since(begin).Seconds()
	return figure{t.name, rate, peak(cmd.Process.Pid), fmt.Sprintf("%s; %d failed", t.note, failed.Load())}, nil
}

func (t target) await() error {
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if t.send(http.DefaultClient, []byte(`{"resourceSpans":[]}`)) == http.StatusOK {
			return nil
		}
	}
	return fmt.Errorf("%s does not answer", t.url)
}

func (t target) send(client *http.Client, body []byte) int {
	r, err := http.NewRequest(http.MethodPost, t.url, bytes.NewReader(body))
	if err != nil {
		return 0
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-License-Key", t.key)
	resp, err := client.Do(r)
	if err != nil {
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

// peak is the most memory a process had, in megabytes.
func peak(pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	var kb float64
	_, _ = fmt.Sscan(rest, &kb)
	return kb / 1024
}

// batch is an OTLP request in JSON.
func batch(spans int) []byte {
	var list []string
	for i := range spans {
		list = append(list, fmt.Sprintf(`{"traceId":"71699b6fe85982c7c8995ea3d9c95df2","spanId":"3c191d03fa8b%04x","parentSpanId":"","name":"POST /threads/{thread_id}/runs","kind":2,"startTimeUnixNano":"1736153200000000000","endTimeUnixNano":"1736153260000000000","attributes":[{"key":"endpoint","value":{"stringValue":"/threads/{thread_id}/runs"}},{"key":"method","value":{"stringValue":"POST"}},{"key":"status_code","value":{"intValue":"500"}},{"key":"service_name","value":{"stringValue":"api"}}],"status":{"code":2,"message":"it failed"}}`, i+1))
	}
	return []byte(`{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"platform"}}]},"scopeSpans":[{"scope":{"name":"platform","version":"0.1.0"},"spans":[` + strings.Join(list, ",") + `]}]}]}`)
}
