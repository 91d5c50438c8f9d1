package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/agent"
)

// queue: what waits and what runs is counted, delayed runs too; what has ended is not.
func queue(t *testing.T, s agent.Store) {
	ctx := context.Background()
	want := func(what string, pending, running int, oldest time.Time) {
		t.Helper()
		q, err := s.Queue(ctx)
		must(t, err)
		equal(t, what+": pending", q.Pending, pending)
		equal(t, what+": running", q.Running, running)
		equal(t, what+": oldest", q.Oldest.UTC(), oldest.UTC())
	}
	want("nothing", 0, 0, time.Time{})
	first := admit(t, s, admission("a", "1", "", 0)).Run
	want("one runs", 0, 1, time.Time{})
	waiting := admission("b", "2", "", 3)
	waiting.ClaimFor = ""
	due := admit(t, s, waiting).Run.CreatedAt
	delayed := admission("c", "3", "", 60)
	delayed.ClaimFor = ""
	admit(t, s, delayed)
	want("two wait", 2, 1, due)
	_, err := s.Finish(ctx, agent.Finish{Fence: fenceOf(first), Status: agent.RunSuccess, Now: startTime().Add(time.Minute)})
	must(t, err)
	want("one has ended", 2, 0, due)
}
