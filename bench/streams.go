package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// stream starts a run and hands every frame's name and data to see, until the stream ends.
func (p *platform) stream(ctx context.Context, path string, body any, see func(event string, data []byte)) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+path, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := p.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("POST %s: %s", path, res.Status)
	}
	return frames(bufio.NewScanner(res.Body), see)
}

// frames reads server-sent events; a stream that closes without `end` is an error.
func frames(lines *bufio.Scanner, see func(event string, data []byte)) error {
	lines.Buffer(make([]byte, 1<<16), 1<<24)
	event := ""
	for lines.Scan() {
		line := lines.Bytes()
		switch {
		case bytes.HasPrefix(line, []byte("event: ")):
			event = string(line[7:])
		case bytes.HasPrefix(line, []byte("data: ")):
			see(event, line[6:])
		}
	}
	if event != "end" {
		return errors.Join(lines.Err(), fmt.Errorf("the stream broke after %q", event))
	}
	return nil
}

// relay measures how many chunks a second come through and how late they are, at 100 streams.
func relay(s settings, p *platform) ([]figure, error) {
	if _, err := p.deploy("bench/apps/js", "bench-js"); err != nil {
		return nil, err
	}
	const streams, chunks = 100, 400
	var mu sync.Mutex
	var delays []float64
	var failure error
	var all sync.WaitGroup
	cpuBefore := p.serverCPU()
	began := time.Now()
	for range streams {
		all.Go(func() {
			var mine []float64
			err := p.stream(context.Background(), "/d/bench-js/runs/stream", map[string]any{
				"assistant_id": "tokens", "input": map[string]any{"chunks": chunks}, "stream_mode": []string{"custom"},
			}, func(event string, data []byte) {
				var c struct{ At int64 }
				if event == "custom" && json.Unmarshal(data, &c) == nil {
					mine = append(mine, float64(time.Now().UnixMilli()-c.At))
				}
			})
			if err == nil && len(mine) != chunks {
				err = fmt.Errorf("a stream brought %d chunks, want %d", len(mine), chunks)
			}
			mu.Lock()
			delays, failure = append(delays, mine...), firstOf(failure, err)
			mu.Unlock()
		})
	}
	all.Wait()
	seconds, cpu := time.Since(began).Seconds(), p.serverCPU()-cpuBefore
	if failure != nil {
		return nil, failure
	}
	return []figure{
		{Name: "chunks relayed, 100 streams, end to end", Value: streams * chunks / seconds, Unit: "chunks/s", Bar: "-", Note: "one node worker writes them on the same 2 cores"},
		{Name: "chunks per second of server CPU", Value: streams * chunks / cpu, Unit: "chunks/s", Bar: ">= 20000"},
		{Name: "chunk delay p50, 100 streams", Value: percentile(delays, 0.5), Unit: "ms", Bar: "-"},
		{Name: "chunk delay p99, 100 streams", Value: percentile(delays, 0.99), Unit: "ms", Bar: "<= 5", Note: "worker saturated: its queue is included"},
	}, nil
}

// serverCPU returns the CPU seconds of the agent servers, without their workers.
func (p *platform) serverCPU() float64 {
	var ticks float64
	for _, pid := range p.servers() {
		raw, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil {
			continue
		}
		fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
		user, _ := strconv.ParseFloat(fields[11], 64)
		system, _ := strconv.ParseFloat(fields[12], 64)
		ticks += user + system
	}
	return ticks / 100
}

// servers returns the process ids of this platform's agent servers.
func (p *platform) servers() []string {
	var pids []string
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		cmdline, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		if strings.Contains(string(cmdline), "\x00serve\x00") && strings.Contains(string(cmdline), p.data) {
			pids = append(pids, filepath.Base(dir))
		}
	}
	return pids
}

// memory returns the resident megabytes of the agent servers.
func (p *platform) memory() float64 {
	var kb float64
	for _, pid := range p.servers() {
		raw, _ := os.ReadFile("/proc/" + pid + "/status")
		for _, line := range strings.Split(string(raw), "\n") {
			if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
				n, _ := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(rest, "kB")), 64)
				kb += n
			}
		}
	}
	return kb / 1024
}

// stateReads measures the latest state of a thread, 32 clients at once.
func stateReads(_ settings, p *platform) ([]figure, error) {
	if _, err := p.deploy("bench/apps/js", "bench-js"); err != nil {
		return nil, err
	}
	id, err := p.thread("bench-js")
	if err != nil {
		return nil, err
	}
	if err := p.post("/d/bench-js/threads/"+id+"/runs/wait", map[string]any{
		"assistant_id": "trivial", "input": map[string]any{"messages": []any{map[string]any{"role": "user", "content": "hi"}}},
	}, nil); err != nil {
		return nil, err
	}
	times, seconds, err := p.gets("/d/bench-js/threads/"+id+"/state", 20000, 32)
	if err != nil {
		return nil, err
	}
	return []figure{
		{Name: "thread state reads", Value: float64(len(times)) / seconds, Unit: "reads/s", Bar: ">= 5000", Note: "through the gateway, client on the same 2 cores"},
		{Name: "thread state read p99", Value: percentile(times, 0.99), Unit: "ms", Bar: "<= 10"},
	}, nil
}

// gets repeats a GET and returns each one's milliseconds.
func (p *platform) gets(path string, count, clients int) (times []float64, seconds float64, err error) {
	var mu sync.Mutex
	var all sync.WaitGroup
	began := time.Now()
	for range clients {
		all.Go(func() {
			for range count / clients {
				start := time.Now()
				failed := p.get(path)
				mu.Lock()
				times, err = append(times, float64(time.Since(start).Microseconds())/1000), firstOf(err, failed)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return times, time.Since(began).Seconds(), err
}

func (p *platform) get(path string) error {
	res, err := p.http.Get(p.url + path)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if _, err := bufio.NewReader(res.Body).WriteTo(discard{}); err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", path, res.Status)
	}
	return nil
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

// idleStreams measures what 1 000 open streams that wait cost in memory.
func idleStreams(_ settings, p *platform) ([]figure, error) {
	if _, err := p.deploy("bench/apps/js", "bench-js"); err != nil {
		return nil, err
	}
	const streams = 1000
	before := p.memory()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	opened := make(chan error, streams)
	for range streams {
		go func() { opened <- p.open(ctx, "/d/bench-js/runs/stream") }()
	}
	for range streams {
		if err := <-opened; err != nil {
			return nil, fmt.Errorf("a stream did not open: %w", err)
		}
	}
	return []figure{{Name: "1000 idle streams, agent server memory", Value: p.memory() - before, Unit: "MB", Bar: "<= 40"}}, nil
}

// open starts a stream on a run that is due much later, and leaves it open until ctx ends.
func (p *platform) open(ctx context.Context, path string) error {
	body := `{"assistant_id": "trivial", "input": {}, "after_seconds": 600, "on_disconnect": "cancel"}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := p.http.Do(req) //nolint:bodyclose // it stays open until ctx ends
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("POST %s: %s", path, res.Status)
	}
	return nil
}
