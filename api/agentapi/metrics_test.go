package agentapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/api/agentapi"
	"github.com/slipway-dev/slipway/engine"
	workerfake "github.com/slipway-dev/slipway/worker/fake"
)

// kinds are the metrics of reference 9 and of this server, with their types.
var kinds = map[string]string{
	"http_requests_total": "counter", "http_requests_latency": "histogram", "streams_open": "gauge",
	"run_queue_wait_time_1st_attempt": "histogram", "run_queue_wait_time_retry_attempt": "histogram", "run_execution_latency": "histogram",
	"stream_publish_latency": "histogram", "num_pending_runs": "gauge", "num_running_runs": "gauge", "pending_runs_age_seconds": "gauge",
	"workers_max": "gauge", "workers_active": "gauge", "workers_available": "gauge", "runs_tracked": "gauge",
	"pg_pool_max": "gauge", "pg_pool_size": "gauge", "pg_pool_available": "gauge", "pg_pool_requests_queued_total": "counter", "pg_pool_requests_errors_total": "counter",
	"run_attempt_started_counter": "counter", "run_success_counter": "counter", "run_canceled_by_request_counter": "counter",
	"run_failed_retriable_counter": "counter", "run_failed_after_retry_counter": "counter", "run_exceed_max_attempts_at_start_counter": "counter",
	"run_abandoned_by_shutdown_counter": "counter", "run_set_status_error_counter": "counter", "streaming_data_loss_counter": "counter",
	"graph_recursion_limit_error_counter": "counter", "server_started_counter": "counter", "server_stopped_counter": "counter",
}

func measuredServer(f *fake, cfg agentapi.MetricsConfig) http.Handler {
	return agentapi.New(f, agentapi.Config{Log: slog.New(slog.DiscardHandler), Metrics: cfg})
}

func scrape(t *testing.T, h http.Handler, path string) string {
	t.Helper()
	w := httptest.NewRecorder()
	truthful(t, h).ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	if w.Code != 200 {
		t.Fatalf("%s: %d %s", path, w.Code, w.Body)
	}
	return w.Body.String()
}

func TestMetricsHaveTheirNamesAndTypes(t *testing.T) {
	t.Parallel()
	h := measuredServer(&fake{}, agentapi.MetricsConfig{
		Prefix: "own_", Labels: map[string]string{"project_id": "p", "revision_id": "r"}, Pool: func() agentapi.Pool { return agentapi.Pool{Max: 5} },
	})
	scrape(t, h, "/ok")
	page := scrape(t, h, "/metrics")
	for name, kind := range kinds {
		if !strings.Contains(page, "# TYPE own_"+name+" "+kind+"\n") {
			t.Errorf("%s is not a %s", name, kind)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE own_(\S+)`).FindAllStringSubmatch(page, -1) {
		if kinds[m[1]] == "" {
			t.Errorf("%s is in no table", m[1])
		}
	}
	for _, want := range []string{
		`own_http_requests_total{method="GET",path="/ok",project_id="p",revision_id="r",status="200"} 1`,
		`own_pg_pool_max{project_id="p",revision_id="r"} 5`, "go_goroutines ", "process_open_fds ",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not in\n%.3000s", want, page)
		}
	}
	if page := scrape(t, measuredServer(&fake{}, agentapi.MetricsConfig{}), "/metrics"); strings.Contains(page, "pg_pool") || !strings.Contains(page, "lg_api_workers_max") {
		t.Error("without a database server, and with the default prefix: the page is wrong")
	}
}

func TestMetricsOfRoutesAreBounded(t *testing.T) {
	t.Parallel()
	h := measuredServer(&fake{}, agentapi.MetricsConfig{})
	ask := func(method, path string) {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(method, path, nil))
	}
	ask("GET", "/nowhere/1")
	ask("GET", "/nowhere/2")
	ask("BREW", "/ok")
	ask("GET", "/threads/x")
	ask("GET", "/runs/crons/x")
	ask("GET", "/runs/x/stream")
	ask("GET", "/info") // panics: the fake has no Info
	page := scrape(t, h, "/metrics")
	for _, want := range []string{
		`http_requests_total{method="other",path="other",status="404"} 2`, `http_requests_total{method="other",path="other",status="405"} 1`,
		`http_requests_total{method="GET",path="/threads/{thread_id}",status="422"} 1`, `{method="GET",path="/runs/crons/{cron_id}",status="422"} 1`,
		`{method="GET",path="/runs/{run_id}/stream",status="422"} 1`, `{method="GET",path="/info",status="500"} 1`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not in\n%.3000s", want, page)
		}
	}
}

func TestMetricsAsJSON(t *testing.T) {
	t.Parallel()
	f := &fake{metrics: engine.Metrics{Queue: agent.Queue{Pending: 3, Running: 2, Oldest: time.Now().Add(-time.Hour)}, SlotsMax: 10, SlotsActive: 4}}
	h := measuredServer(f, agentapi.MetricsConfig{})
	scrape(t, h, "/ok")
	var got struct {
		Queue struct {
			Pending, Running int
			Age              float64 `json:"oldest_pending_age_secs"`
		}
		Workers struct{ Max, Active, Available int }
		HTTP    struct {
			Requests []struct {
				Method, Path, Status string
				Count                int
			}
		}
	}
	if err := json.Unmarshal([]byte(scrape(t, h, "/metrics?format=json")), &got); err != nil {
		t.Fatal(err)
	}
	if got.Queue.Pending != 3 || got.Queue.Running != 2 || got.Queue.Age < 3600 || got.Workers.Available != 6 {
		t.Errorf("got %+v", got)
	}
	if r := got.HTTP.Requests; len(r) != 1 || r[0].Path != "/ok" || r[0].Status != "200" || r[0].Count != 1 {
		t.Errorf("requests: %+v", r)
	}
	if w := send(t, f, "GET", "/metrics?format=xml", ""); w.Code != 422 || !strings.Contains(w.Body.String(), `got \"xml\"`) {
		t.Errorf("another format: %d %s", w.Code, w.Body)
	}
}

// A store that does not answer costs the queue's figures and not the page.
func TestMetricsWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	h := measuredServer(&fake{err: errors.New("gone")}, agentapi.MetricsConfig{})
	page := scrape(t, h, "/metrics")
	if strings.Contains(page, "num_pending_runs") || !strings.Contains(page, "lg_api_workers_max") {
		t.Errorf("got\n%.2000s", page)
	}
}

// A stream counts as open as long as it is.
func TestMetricsOfStreams(t *testing.T) {
	t.Parallel()
	let := make(chan struct{})
	s := newRealServer(t, map[string]workerfake.Graph{"agent": func(ctx context.Context, r *workerfake.Run) agent.Done {
		r.Chunk("values", `1`)
		select {
		case <-let:
		case <-ctx.Done():
		}
		return r.Success("", `{}`)
	}})
	res, err := s.Client().Post(s.URL+"/runs/stream", "application/json", strings.NewReader(`{"assistant_id":"agent","input":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	figures := func(want string) {
		t.Helper()
		res, err := s.Client().Get(s.URL + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if page, _ := io.ReadAll(res.Body); !strings.Contains(string(page), "\n"+want+"\n") {
			t.Errorf("%q is not in\n%.4000s", want, page)
		}
	}
	figures("lg_api_streams_open 1")
	close(let)
	if _, err := io.ReadAll(res.Body); err != nil {
		t.Fatal(err)
	}
	figures("lg_api_run_success_counter 1")
	figures(`lg_api_stream_publish_latency_count 1`)
}
