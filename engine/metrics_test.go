package engine_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/engine"
	"github.com/slipway-dev/slipway/worker/fake"
)

func (s *server) metrics() engine.Metrics {
	s.t.Helper()
	m, err := s.Metrics(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return m
}

// Every way in which a run can go is counted once, under its name.
func TestMetricsCountWhatHappens(t *testing.T) {
	t.Parallel()
	let := make(chan struct{})
	s := newWorld(t).start("a", 2, map[string]fake.Graph{
		"good": func(_ context.Context, r *fake.Run) agent.Done { r.Chunk("values", `{}`); return r.Success("", `{}`) },
		"endless": func(context.Context, *fake.Run) agent.Done {
			return agent.Done{Status: "error", Failure: &agent.Failure{Error: "GraphRecursionError", Message: "too many"}}
		},
		"flaky": func(_ context.Context, r *fake.Run) agent.Done {
			if r.Job.Run.Attempt == 1 {
				return agent.Done{Status: "error", Retriable: true, Failure: &agent.Failure{Error: "LinkError"}}
			}
			return agent.Done{Status: "error", Failure: &agent.Failure{Error: "ValueError"}}
		},
		"slow": func(ctx context.Context, r *fake.Run) agent.Done {
			select {
			case <-let:
				return r.Success("", `{}`)
			case <-ctx.Done():
				return fake.Cancelled()
			}
		},
	})
	for _, graph := range []string{"good", "good", "endless", "flaky"} {
		s.wait(s.create(engine.RunRequest{AssistantID: graph, Stateless: true, Keep: true, Input: json.RawMessage(`{}`)}))
	}
	cancelled := s.create(engine.RunRequest{AssistantID: "slow", Stateless: true, Keep: true})
	if err := s.Cancel(t.Context(), cancelled.ThreadID, cancelled.ID, agent.CancelInterrupt, "x", true); err != nil {
		t.Fatal(err)
	}
	m := s.metrics()
	for name, c := range map[string]struct{ got, want int64 }{
		"attempts": {m.AttemptsStarted, 6}, "succeeded": {m.Succeeded, 2}, "cancelled": {m.Cancelled, 1}, "retriable": {m.FailedRetriable, 1},
		"after retry": {m.FailedAfterRetry, 1}, "recursion": {m.RecursionErrors, 1}, "started": {m.Started, 1}, "abandoned": {m.AbandonedByShutdown, 0},
		"unrecorded": {m.StatusErrors, 0}, "first waits": {int64(m.FirstWait.Count), 5}, "retry waits": {int64(m.RetryWait.Count), 1},
		"executions": {int64(m.Execution.Count), 6}, "published": {int64(m.Publish.Count), 2}, "slots": {int64(m.SlotsMax), 2}, "active": {int64(m.SlotsActive), 0},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %d, want %d", name, c.got, c.want)
		}
	}
	close(let)
}

// The queue is the deployment's, delayed runs and all.
func TestMetricsOfTheQueue(t *testing.T) {
	t.Parallel()
	let := make(chan struct{})
	s := newWorld(t).start("a", 1, map[string]fake.Graph{"slow": func(ctx context.Context, r *fake.Run) agent.Done {
		select {
		case <-let:
		case <-ctx.Done():
		}
		return r.Success("", `{}`)
	}})
	running := s.create(engine.RunRequest{AssistantID: "slow", Stateless: true, Keep: true})
	s.create(engine.RunRequest{AssistantID: "slow", Stateless: true, Keep: true, After: time.Hour})
	m := s.metrics()
	if m.Queue.Running != 1 || m.Queue.Pending != 1 || m.SlotsActive != 1 || m.Tracked == 0 {
		t.Errorf("got %+v, %d slots active, %d tracked; want one running and one pending", m.Queue, m.SlotsActive, m.Tracked)
	}
	close(let)
	s.wait(running)
}

func TestHistogramBuckets(t *testing.T) {
	t.Parallel()
	s := newWorld(t).start("a", 1, map[string]fake.Graph{"good": func(_ context.Context, r *fake.Run) agent.Done { return r.Success("", `{}`) }})
	s.wait(s.create(engine.RunRequest{AssistantID: "good", Stateless: true, Keep: true}))
	h := s.metrics().Execution
	bounds := engine.LatencyBounds()
	if h.Count != 1 || h.Buckets[bounds[len(bounds)-1]] != 1 || h.Sum < 0 || len(h.Buckets) != len(bounds) {
		t.Errorf("got %+v, want one of %d buckets", h, len(bounds))
	}
}
