package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/agent"
)

// traceCounts: a run that a worker had counts once, in the interval in which it ends, however it ends; what was read never
// changes.
func traceCounts(t *testing.T, s agent.Store) {
	counts, ok := s.(agent.TraceCounts)
	if !ok {
		t.Fatal("the store keeps no trace counts")
	}
	ctx, start := context.Background(), startTime()
	hour := start.Truncate(time.Hour)
	sealed := func(now time.Time) []agent.TraceCount {
		t.Helper()
		list, err := counts.SealCounts(ctx, now, 10)
		must(t, err)
		return list
	}
	end := func(thread, id string, minute int) {
		t.Helper()
		run := admit(t, s, admission(thread, id, "", 0)).Run
		_, err := s.Finish(ctx, agent.Finish{Fence: fenceOf(run), Status: agent.RunError, Now: hour.Add(time.Duration(minute) * time.Minute)})
		must(t, err)
	}
	end("a", "1", 10)
	end("a", "2", 5)
	end("b", "3", 59)
	end("b", "4", 60)

	// Never executed: counts nothing. Cancelled while running: counts, also when it is rolled back. Lost twice: counts once.
	waiting := admission("c", "5", "", 0)
	waiting.ClaimFor = ""
	admit(t, s, waiting)
	_, err := s.Cancel(ctx, "c", "5", agent.CancelInterrupt, "why", hour)
	must(t, err)
	rolled := admit(t, s, admission("d", "6", "", 0)).Run
	_, err = s.Cancel(ctx, "d", "6", agent.CancelRollback, "why", hour)
	must(t, err)
	_, err = s.Finish(ctx, agent.Finish{Fence: fenceOf(rolled), Status: agent.RunSuccess, Now: hour.Add(time.Minute)})
	must(t, err)
	lost := admit(t, s, admission("e", "7", "", 0)).Run
	_, err = s.Requeue(ctx, fenceOf(lost), false, 2, hour)
	must(t, err)
	equal(t, "nothing is sealed early", len(sealed(hour.Add(59*time.Minute))), 0)
	again, _, err := s.Claim(ctx, "i", []string{"g"}, 5, start)
	must(t, err)
	_, err = s.Requeue(ctx, fenceOf(again[0]), false, 2, hour.Add(20*time.Minute))
	must(t, err)
	// Superseded after it was given back: a worker had it.
	given := admit(t, s, admission("f", "8", "", 0)).Run
	_, err = s.Requeue(ctx, fenceOf(given), true, 2, hour)
	must(t, err)
	over := admission("f", "9", agent.MultitaskInterrupt, 0)
	over.Now = hour.Add(30 * time.Minute)
	admit(t, s, over)

	first := sealed(hour.Add(time.Hour))
	equal(t, "sealed", len(first), 1)
	want := agent.TraceCount{Seq: first[0].Seq, From: hour, To: hour.Add(time.Hour), First: hour.Add(time.Minute), Last: hour.Add(59 * time.Minute), Traces: 6}
	equal(t, "the first hour", first[0], want)
	end("g", "10", 40) // late: the clock went back
	later := sealed(hour.Add(2 * time.Hour))
	equal(t, "sealed later", len(later), 3)
	equal(t, "the first count is what it was", later[0], want)
	total := int64(0)
	for _, n := range later {
		total += n.Traces
	}
	equal(t, "all", total, int64(8))
	must(t, counts.DropCounts(ctx, []int64{later[0].Seq, later[1].Seq, 999}))
	rest := sealed(hour.Add(2 * time.Hour))
	equal(t, "left", len(rest), 1)
	equal(t, "which", rest[0], later[2])
}
