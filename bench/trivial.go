package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// coldStart reports how fast the platform first answered.
func coldStart(_ settings, p *platform) ([]figure, error) {
	return []figure{{Name: "slipway up answers", Value: float64(p.startup.Milliseconds()), Unit: "ms", Bar: "<= 300"}}, nil
}

func trivialJS(s settings, p *platform) ([]figure, error) {
	if _, err := p.deploy("bench/apps/js", "bench-js"); err != nil {
		return nil, err
	}
	return compare(s, p, "js", func(runs, concurrency int) (string, error) {
		dir, err := p.bundle("bare.mjs")
		if err != nil {
			return "", err
		}
		return output(filepath.Join(dir, "app"), "node", "bare.mjs", strconv.Itoa(runs), strconv.Itoa(concurrency))
	})
}

func trivialPy(s settings, p *platform) ([]figure, error) {
	if _, err := p.deploy("bench/apps/py", "bench-py"); err != nil {
		return nil, err
	}
	return compare(s, p, "py", func(runs, concurrency int) (string, error) {
		dir, err := p.bundle("bare.py")
		if err != nil {
			return "", err
		}
		interpreter, err := pythonOf(dir)
		if err != nil {
			return "", err
		}
		return output(filepath.Join(dir, "app"), interpreter, "bare.py", strconv.Itoa(runs), strconv.Itoa(concurrency))
	})
}

// pythonOf returns the interpreter that a bundle's workers run with.
func pythonOf(bundle string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(bundle, "bundle.json"))
	if err != nil {
		return "", err
	}
	var b struct {
		Python struct{ Interpreter string }
	}
	if err := json.Unmarshal(raw, &b); err != nil {
		return "", err
	}
	return filepath.Join(bundle, b.Python.Interpreter), nil
}

// result of one round of runs.
type result struct {
	RunsPerSecond float64 `json:"runs_per_s"`
	P50           float64 `json:"p50_ms"`
}

// compare measures bare and served runs in turn, many at once and one at a time.
func compare(s settings, p *platform, language string, bare func(runs, concurrency int) (string, error)) ([]figure, error) {
	var bareMany, servedMany, ratios, bareOne, servedOne []float64
	for range s.rounds {
		many, err := bareResult(bare, s.runs, s.concurrency)
		if err != nil {
			return nil, err
		}
		served, err := p.runs("bench-"+language, s.runs, s.concurrency)
		if err != nil {
			return nil, err
		}
		one, err := bareResult(bare, s.runs/5, 1)
		if err != nil {
			return nil, err
		}
		alone, err := p.runs("bench-"+language, s.runs/5, 1)
		if err != nil {
			return nil, err
		}
		bareMany, servedMany = append(bareMany, many.RunsPerSecond), append(servedMany, served.RunsPerSecond)
		ratios = append(ratios, served.RunsPerSecond/many.RunsPerSecond)
		bareOne, servedOne = append(bareOne, one.P50), append(servedOne, alone.P50)
	}
	at := fmt.Sprintf(" %s, %d in flight", language, s.concurrency)
	return []figure{
		{Name: "bare runs" + at, Value: median(bareMany), Unit: "runs/s", Bar: "-"},
		{Name: "thread+wait" + at, Value: median(servedMany), Unit: "runs/s", Bar: ">= 0.8 bare"},
		{Name: "thread+wait / bare" + at, Value: median(ratios), Unit: "ratio", Bar: ">= 0.8"},
		{Name: "bare p50, " + language + ", one client", Value: median(bareOne), Unit: "ms", Bar: "-"},
		{Name: "thread+wait p50, " + language + ", one client", Value: median(servedOne), Unit: "ms", Bar: "<= bare + 5"},
	}, nil
}

func bareResult(bare func(runs, concurrency int) (string, error), runs, concurrency int) (result, error) {
	var r result
	out, err := bare(runs, concurrency)
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal([]byte(out), &r)
}

// runs creates a thread and waits for a run on it, so many times, with so many clients at once.
func (p *platform) runs(name string, count, clients int) (result, error) {
	var left atomic.Int64
	left.Store(int64(count))
	var mu sync.Mutex
	var times []float64
	var failure error
	var all sync.WaitGroup
	began := time.Now()
	for range clients {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				start := time.Now()
				err := p.oneRun(name)
				took := float64(time.Since(start).Microseconds()) / 1000
				mu.Lock()
				times, failure = append(times, took), firstOf(failure, err)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return result{RunsPerSecond: float64(count) / time.Since(began).Seconds(), P50: percentile(times, 0.5)}, failure
}

func firstOf(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func (p *platform) oneRun(name string) error {
	id, err := p.thread(name)
	if err != nil {
		return err
	}
	var out struct {
		Messages []json.RawMessage `json:"messages"`
	}
	if err := p.post("/d/"+name+"/threads/"+id+"/runs/wait", map[string]any{
		"assistant_id": "trivial", "input": map[string]any{"messages": []any{map[string]any{"role": "user", "content": "hi"}}},
	}, &out); err != nil {
		return err
	}
	if len(out.Messages) != 2 {
		return fmt.Errorf("a run answered %d messages, want 2", len(out.Messages))
	}
	return nil
}
