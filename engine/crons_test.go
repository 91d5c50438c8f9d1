package engine_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/engine"
	"github.com/slipway-dev/slipway/worker/fake"
)

// soon is a schedule whose dates come every 20 ms; "never" has none.
func soon(schedule, _ string, after time.Time) (time.Time, error) {
	if schedule == "never" {
		return time.Time{}, nil
	}
	if schedule == "wrong" {
		return time.Time{}, slipway.Errorf(slipway.CodeInvalid, "Invalid cron schedule: 'wrong'")
	}
	return after.Add(20 * time.Millisecond).Truncate(20 * time.Millisecond), nil
}

func withDates(c *engine.Config) { c.NextDate = soon }

func TestACronRunsOnItsThreadWithItsMetadata(t *testing.T) {
	t.Parallel()
	g := newGate()
	s := newWorld(t).start("a", 1, map[string]fake.Graph{"agent": g.graph}, withDates)
	thread := s.thread()
	c, err := s.CreateCron(t.Context(), agent.Cron{ThreadID: thread, Schedule: "soon", Enabled: true, Metadata: raw(`{"k":1}`)},
		engine.RunRequest{AssistantID: "agent", Input: raw(`{"x":1}`), Multitask: agent.MultitaskReject})
	if err != nil {
		t.Fatal(err)
	}
	run := g.await(t).Job.Run
	if run.ThreadID != thread || string(run.Kwargs.Input) != `{"x":1}` {
		t.Errorf("got run %+v", run)
	}
	for _, want := range []string{`"cron_id":"` + c.ID + `"`, `"k":1`} {
		if !strings.Contains(string(run.Metadata), want) {
			t.Errorf("metadata: got %s, want %s in it", run.Metadata, want)
		}
	}
	if err := s.DeleteCron(t.Context(), c.ID); err != nil {
		t.Fatal(err)
	}
	close(g.let)
}

// Two instances on one database fire each date once.
func TestTwoInstancesFireADateOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var ran atomic.Int32
	graphs := map[string]fake.Graph{"agent": echo}
	var made atomic.Bool
	once := func(c *engine.Config) {
		c.NextDate = func(_, _ string, after time.Time) (time.Time, error) {
			if made.CompareAndSwap(false, true) {
				return after.Add(100 * time.Millisecond).Truncate(time.Microsecond), nil
			}
			ran.Add(1) // the date after this one is asked for: somebody fires it
			return time.Time{}, nil
		}
	}
	one, two := w.start("one", 2, graphs, once), w.start("two", 2, graphs, once)
	c, err := one.CreateCron(t.Context(), agent.Cron{Schedule: "x", Enabled: true, OnRunCompleted: "keep"}, engine.RunRequest{AssistantID: "agent"})
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	for ran.Load() == 0 || fires(t, two, c.ID) == 0 {
		if time.Now().After(deadline) {
			t.Fatal("the date has passed and nothing ran")
		}
		time.Sleep(time.Millisecond)
	}
	if got := fires(t, two, c.ID); got != 1 {
		t.Errorf("got %d runs of one date, want 1", got)
	}
	if got, err := two.Cron(t.Context(), c.ID); err != nil || !got.NextRun.IsZero() {
		t.Errorf("got %+v, %v, want no further date", got.NextRun, err)
	}
}

// fires counts the threads that a stateless cron has made.
func fires(t *testing.T, s *server, cronID string) int {
	t.Helper()
	n, err := s.CountThreads(t.Context(), agent.ThreadQuery{Metadata: raw(`{"cron_id":"` + cronID + `"}`)})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Dates that passed while nobody was there fire once, not once each.
func TestMissedDatesFireOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	graphs := map[string]fake.Graph{"agent": echo}
	far := func(c *engine.Config) {
		c.NextDate = func(_, _ string, after time.Time) (time.Time, error) { return after.Add(time.Hour), nil }
	}
	first := w.start("one", 0, graphs, far)
	c, err := first.CreateCron(t.Context(), agent.Cron{Schedule: "x", Enabled: true, OnRunCompleted: "keep"}, engine.RunRequest{AssistantID: "agent"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.store.ChangeCron(t.Context(), c.ID, func(c agent.Cron) (agent.Cron, error) {
		c.NextRun = c.NextRun.Add(-10 * time.Hour) // nine dates ago
		return c, nil
	}); err != nil {
		t.Fatal(err)
	}
	first.stop()
	second := w.start("two", 1, graphs, far)
	deadline := time.Now().Add(time.Minute)
	for fires(t, second, c.ID) == 0 {
		if time.Now().After(deadline) {
			t.Fatal("the missed date did not fire")
		}
		time.Sleep(time.Millisecond)
	}
	if got, err := second.Cron(t.Context(), c.ID); err != nil || !got.NextRun.After(time.Now().Add(time.Minute)) {
		t.Errorf("next date: got %v, %v, want one in an hour", got.NextRun, err)
	}
	if got := fires(t, second, c.ID); got != 1 {
		t.Errorf("got %d runs, want 1", got)
	}
}

func TestACronThatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	s := newWorld(t).start("a", 0, map[string]fake.Graph{"agent": echo}, withDates)
	for name, c := range map[string]struct {
		cron agent.Cron
		run  engine.RunRequest
		want slipway.Code
	}{
		"assistant": {agent.Cron{Schedule: "soon"}, engine.RunRequest{AssistantID: "nobody"}, slipway.CodeNotFound},
		"thread":    {agent.Cron{Schedule: "soon", ThreadID: "0199f0a0-0000-7000-8000-000000000001"}, engine.RunRequest{AssistantID: "agent"}, slipway.CodeNotFound},
		"schedule":  {agent.Cron{Schedule: "wrong"}, engine.RunRequest{AssistantID: "agent"}, slipway.CodeInvalid},
	} {
		if _, err := s.CreateCron(t.Context(), c.cron, c.run); slipway.ErrorCode(err) != c.want {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}

func TestADisabledOrEndedCronHasNoDate(t *testing.T) {
	t.Parallel()
	s := newWorld(t).start("a", 0, map[string]fake.Graph{"agent": echo}, withDates)
	run := engine.RunRequest{AssistantID: "agent"}
	for name, c := range map[string]agent.Cron{
		"disabled": {Schedule: "soon"}, "ended": {Schedule: "soon", Enabled: true, EndTime: time.Now().Add(-time.Hour)}, "never": {Schedule: "never", Enabled: true},
	} {
		made, err := s.CreateCron(t.Context(), c, run)
		if err != nil || !made.NextRun.IsZero() {
			t.Errorf("%s: got %v, %v, want no date", name, made.NextRun, err)
		}
	}
}
