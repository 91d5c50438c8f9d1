package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
)

const maxProbeBody = 64 << 10 // read
const maxProbeText = 1 << 10  // kept

// answer is what one health check found.
type answer struct {
	ok      bool
	text    string // "" when ok
	failure string // why it can never become ready
}

// check asks an agent server for its health; deep means with database, workers and graphs.
func check(ctx context.Context, client *http.Client, endpoint string, deep bool) answer {
	path := "/ok"
	if deep {
		path += "?check_db=1"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint+path, nil)
	if err != nil {
		return answer{text: "GET /ok: " + err.Error()}
	}
	resp, err := client.Do(req)
	if err != nil {
		return answer{text: "GET /ok: " + explain(err)}
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxProbeBody))
	if resp.StatusCode == http.StatusOK {
		return answer{ok: true}
	}
	text := strings.TrimSpace(string(body))
	if len(text) > maxProbeText {
		text = strings.ToValidUTF8(text[:maxProbeText], "") + "…"
	}
	return answer{text: fmt.Sprintf("GET /ok: %d %s", resp.StatusCode, text), failure: failures(body)}
}

func explain(err error) string {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	default:
		return err.Error()
	}
}

// failures reads from a deep health answer which graphs, and which other parts of the application, can never be loaded.
func failures(body []byte) string {
	var doc struct {
		Failures map[string]string `json:"failures"`
		Parts    map[string]string `json:"parts"`
	}
	if json.Unmarshal(body, &doc) != nil {
		return ""
	}
	var parts []string
	for graph, sentence := range doc.Failures {
		parts = append(parts, fmt.Sprintf("graph %q cannot be loaded: %s", graph, sentence))
	}
	for key, sentence := range doc.Parts {
		parts = append(parts, fmt.Sprintf("%s cannot be loaded: %s", key, sentence))
	}
	slices.Sort(parts)
	return strings.Join(parts, "; ")
}

// readReadyFile returns the endpoint an agent server announced, "" while it has not.
func readReadyFile(path string) string {
	var doc struct {
		Endpoint string `json:"endpoint"`
	}
	data, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(data, &doc) != nil {
		return ""
	}
	return strings.TrimRight(doc.Endpoint, "/")
}

// watch brings an attempt from its start to readiness and looks after it from then on, until ctx ends.
func (w *workload) watch(ctx context.Context) {
	if !w.isReady() && !w.awaitReady(ctx) {
		return
	}
	w.keepLive(ctx)
}

// awaitReady reports whether the attempt became ready; else ctx ended, or it took too long and was killed.
func (w *workload) awaitReady(ctx context.Context) bool {
	deadline := w.startedAt().Add(w.rt.cfg.StartTimeout)
	for pause := 10 * time.Millisecond; ; pause = min(pause+pause/4, 500*time.Millisecond) {
		if w.tryReady(ctx) {
			return true
		}
		if time.Now().After(deadline) {
			w.kill("killed: not ready in time")
			return false
		}
		if !sleep(ctx, pause) {
			return false
		}
	}
}

func (w *workload) tryReady(ctx context.Context) bool {
	endpoint := w.endpoint()
	if endpoint == "" {
		w.note(ctx, answer{text: "not listening yet"})
		return false
	}
	a := w.probe(ctx, endpoint, true)
	if ctx.Err() != nil {
		return false
	}
	w.note(ctx, a)
	return a.ok
}

// keepLive kills a workload that does not answer several times in a row; it then counts as exited and is started again.
func (w *workload) keepLive(ctx context.Context) {
	failed := 0
	for sleep(ctx, w.rt.cfg.LiveInterval) {
		a := w.probe(ctx, w.endpoint(), false)
		if ctx.Err() != nil || w.isDraining() {
			return
		}
		if a.ok {
			failed = 0
			continue
		}
		if failed++; failed >= w.rt.cfg.LiveFailures {
			w.kill(fmt.Sprintf("killed after %d failed health checks, the last: %s", failed, a.text))
			return
		}
	}
}

func (w *workload) probe(ctx context.Context, endpoint string, deep bool) answer {
	ctx, cancel := context.WithTimeout(ctx, w.rt.cfg.ProbeTimeout)
	defer cancel()
	return check(ctx, w.rt.client, endpoint, deep)
}

// sleep reports whether d passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
