// Command bench measures slipway against the bare graph library on the same machine in the same run. It prints a table and
// one JSON line per figure; nothing here asserts a time.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// figure is one measured number beside the bar it is held against (the house's quality figures).
type figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	Bar   string  `json:"bar"`
	Note  string  `json:"note,omitempty"`
}

// settings of a bench run.
type settings struct {
	binary      string
	runs        int // per round
	rounds      int
	concurrency int
	only        string
}

func main() {
	var s settings
	flag.StringVar(&s.binary, "binary", "bin/slipway", "the binary to measure")
	flag.IntVar(&s.runs, "runs", 2000, "runs per round")
	flag.IntVar(&s.rounds, "rounds", 3, "rounds; medians are reported")
	flag.IntVar(&s.concurrency, "concurrency", 16, "runs in flight")
	flag.StringVar(&s.only, "only", "", "only figures whose name contains this")
	flag.Parse()
	if err := run(s); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(s settings) error {
	dir, err := os.MkdirTemp("", "slipway-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	p, err := start(s.binary, filepath.Join(dir, "data"))
	if err != nil {
		return err
	}
	defer p.stop()
	var all []figure
	for _, m := range []struct {
		name    string
		measure func(settings, *platform) ([]figure, error)
	}{
		{"cold start", coldStart}, {"trivial js", trivialJS}, {"trivial py", trivialPy}, {"stream relay", relay},
		{"state read", stateReads}, {"idle streams", idleStreams}, {"warm redeploy", warmRedeploy}, {"switch", switchUnderLoad},
		{"builds js", builds(buildJS())}, {"builds py", builds(buildPy())}, {"builds at once", manyBuilds},
	} {
		if !strings.Contains(m.name, s.only) {
			continue
		}
		fmt.Fprintln(os.Stderr, "measuring", m.name, "…")
		figures, err := m.measure(s, p)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		if err := print(figures); err != nil {
			return err
		}
		all = append(all, figures...)
	}
	table(all)
	return nil
}

// print writes one JSON line per figure, as soon as it is measured.
func print(figures []figure) error {
	for _, f := range figures {
		raw, err := json.Marshal(f)
		if err != nil {
			return err
		}
		fmt.Println(string(raw))
	}
	return nil
}

func table(all []figure) {
	fmt.Fprintf(os.Stderr, "\n%-44s %12s  %-8s %s\n", "figure", "value", "unit", "bar")
	for _, f := range all {
		fmt.Fprintf(os.Stderr, "%-44s %12.2f  %-8s %s  %s\n", f.Name, f.Value, f.Unit, f.Bar, f.Note)
	}
}

// median of at least one value.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}

// percentile p (0..1) of at least one value.
func percentile(values []float64, p float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, int(p*float64(len(sorted))))]
}

// output runs a command and returns what it printed.
func output(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %v: %w", name, args, err)
	}
	return strings.TrimSpace(string(out)), nil
}
