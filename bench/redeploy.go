package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"context"
)

// warmRedeploy measures a deploy that changes only code, from the command line to DEPLOYED.
func warmRedeploy(s settings, p *platform) ([]figure, error) {
	var all []figure
	for _, app := range []struct{ language, file, line string }{
		{"js", "graph.mjs", "// change %d\n"}, {"py", "graph.py", "# change %d\n"},
	} {
		dir, err := copyOf(filepath.Join("bench/apps", app.language))
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		name := "warm-" + app.language
		if _, err := p.deploy(dir, name); err != nil {
			return nil, err
		}
		var seconds []float64
		for round := range 2*s.rounds - 1 {
			if err := appendTo(filepath.Join(dir, app.file), fmt.Sprintf(app.line, round)); err != nil {
				return nil, err
			}
			took, err := p.deploy(dir, name)
			if err != nil {
				return nil, err
			}
			seconds = append(seconds, took.Seconds())
		}
		all = append(all, figure{Name: "warm redeploy, " + app.language, Value: median(seconds), Unit: "s", Bar: "<= 2"})
	}
	return all, nil
}

func copyOf(dir string) (string, error) {
	into, err := os.MkdirTemp("", "slipway-bench-app-")
	if err != nil {
		return "", err
	}
	return into, os.CopyFS(into, os.DirFS(dir))
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(text)
	return err
}

// switchUnderLoad redeploys while requests and streams run, and counts what failed.
func switchUnderLoad(s settings, p *platform) ([]figure, error) {
	dir, err := copyOf("bench/apps/js")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	const name, clients, open = "switch-js", 8, 100
	if _, err := p.deploy(dir, name); err != nil {
		return nil, err
	}
	if err := appendTo(filepath.Join(dir, "graph.mjs"), "// switched\n"); err != nil {
		return nil, err
	}
	var requests, failed atomic.Int64
	var firstError atomic.Value
	note := func(err error) {
		requests.Add(1)
		if err != nil {
			failed.Add(1)
			firstError.CompareAndSwap(nil, err.Error())
		}
	}
	var streams, load sync.WaitGroup
	for range open {
		streams.Go(func() {
			note(p.stream(context.Background(), "/d/"+name+"/runs/stream", map[string]any{
				"assistant_id": "tokens", "input": map[string]any{"chunks": 3000}, "stream_mode": []string{"custom"},
			}, func(string, []byte) {}))
		})
	}
	stop := make(chan struct{})
	for range clients {
		load.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					note(p.oneRun(name))
				}
			}
		})
	}
	time.Sleep(time.Second)
	took, err := p.deploy(dir, name)
	if err != nil {
		return nil, err
	}
	for requests.Load() < 10000-open {
		time.Sleep(100 * time.Millisecond)
	}
	close(stop)
	load.Wait()
	streams.Wait()
	reason, _ := firstError.Load().(string)
	return []figure{
		{Name: "switch under load, runs and streams", Value: float64(requests.Load()), Unit: "count", Bar: ">= 10000"},
		{Name: "switch under load, failed", Value: float64(failed.Load()), Unit: "count", Bar: "0", Note: reason},
		{Name: "switch under load, deploy took", Value: took.Seconds(), Unit: "s", Bar: "-"},
	}, nil
}
