package storetest

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

func cron(id, thread string, due time.Time) agent.Cron {
	return agent.Cron{
		ID: id, AssistantID: "a", ThreadID: thread, Schedule: "* * * * *", NextRun: due, Enabled: true, Metadata: raw(`{"k":"` + id + `"}`),
		Payload: raw(`{"p":1}`), Request: raw(`{"r":1}`), CreatedAt: startTime(), UpdatedAt: startTime(),
	}
}

func crons(t *testing.T, s agent.Store) {
	ctx, start := context.Background(), startTime().Truncate(time.Microsecond)
	wantCode(t, s.CreateCron(ctx, cron("x", "none", start)), slipway.CodeNotFound)
	_, err := s.CreateThread(ctx, agent.Thread{ID: "t", CreatedAt: start, UpdatedAt: start}, false)
	must(t, err)
	must(t, s.CreateCron(ctx, cron("1", "t", start.Add(time.Minute))))
	must(t, s.CreateCron(ctx, cron("2", "", start.Add(time.Second))))
	next, err := s.NextCron(ctx)
	must(t, err)
	equal(t, "next", next, start.Add(time.Second))
	due, err := s.DueCrons(ctx, start.Add(time.Hour), 10)
	must(t, err)
	equal(t, "longest overdue first", due[0].ID+due[1].ID, "21")
	off, err := s.ChangeCron(ctx, "2", func(c agent.Cron) (agent.Cron, error) { c.Enabled = false; return c, nil })
	must(t, err)
	equal(t, "disabled", off.Enabled, false)
	_, fired, err := s.Fire(ctx, agent.Firing{CronID: "2", Due: off.NextRun})
	must(t, err)
	equal(t, "a disabled one does not fire", fired, false)
	no := false
	for name, c := range map[string]struct {
		q    agent.CronQuery
		want int
	}{
		"all": {agent.CronQuery{}, 2}, "thread": {agent.CronQuery{ThreadID: "t"}, 1}, "off": {agent.CronQuery{Enabled: &no}, 1},
		"metadata": {agent.CronQuery{Metadata: raw(`{"k":"1"}`)}, 1}, "assistant": {agent.CronQuery{AssistantID: "b"}, 0},
	} {
		n, err := s.CountCrons(ctx, c.q)
		must(t, err)
		equal(t, name, n, c.want)
		list, err := s.Crons(ctx, c.q)
		must(t, err)
		equal(t, name, len(list), c.want)
	}
	must(t, s.DeleteThread(ctx, "t"))
	_, err = s.Cron(ctx, "1")
	wantCode(t, err, slipway.CodeNotFound)
	must(t, s.DeleteCron(ctx, "2"))
	wantCode(t, s.DeleteCron(ctx, "2"), slipway.CodeNotFound)
}

// fireOnce: whoever tries to fire one date, it happens once, with the run.
func fireOnce(t *testing.T, s agent.Store) {
	ctx, start := context.Background(), startTime().Truncate(time.Microsecond)
	must(t, s.CreateCron(ctx, cron("c", "", start)))
	var all sync.WaitGroup
	var wins atomic.Int32
	for i := range 16 {
		all.Go(func() {
			run := admission("t"+string(rune('a'+i)), "r"+string(rune('a'+i)), "", 0)
			out, fired, err := s.Fire(ctx, agent.Firing{CronID: "c", Due: start, Next: start.Add(time.Minute), Run: &run})
			if err != nil || fired != (out.Run.ID != "") {
				t.Errorf("fire: %v %v %+v", fired, err, out.Run)
			}
			if fired {
				wins.Add(1)
			}
		})
	}
	all.Wait()
	equal(t, "fired", wins.Load(), 1)
	runs, err := s.InFlight(ctx, "")
	must(t, err)
	equal(t, "runs", len(runs), 1)
	// A thread that refuses the run lets the date pass.
	must(t, s.CreateCron(ctx, cron("d", runs[0].ThreadID, start)))
	refused := admission(runs[0].ThreadID, "z", agent.MultitaskReject, 1)
	out, fired, err := s.Fire(ctx, agent.Firing{CronID: "d", Due: start, Next: start.Add(time.Hour), Run: &refused})
	must(t, err)
	equal(t, "passed", fired && out.Run.ID == "", true)
	c, err := s.Cron(ctx, "d")
	must(t, err)
	equal(t, "next", c.NextRun, start.Add(time.Hour))
}
