package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/agent"
)

// notices: the end of a run with a webhook leaves word, in the same transaction, once, whatever becomes of the run.
func notices(t *testing.T, s agent.Store) {
	ctx, end := context.Background(), startTime().Add(time.Hour).Truncate(time.Microsecond)
	hooked := func(run string) agent.Admission {
		a := admission("t"+run, run, "", 0)
		a.Run.Kwargs.Webhook = "https://example.com/" + run
		return a
	}
	next, err := s.NextNotice(ctx)
	must(t, err)
	equal(t, "nothing yet", next.IsZero(), true)
	finish(t, s, admit(t, s, hooked("a")).Run, agent.RunSuccess, snapshot(7, `[]`))
	finish(t, s, admit(t, s, admission("silent", "silent", "", 0)).Run, agent.RunSuccess, nil)
	gone := hooked("b")
	gone.Run.Temporary = true
	finish(t, s, admit(t, s, gone).Run, agent.RunError, snapshot(8, `[]`))
	rolled := admit(t, s, hooked("c")).Run
	_, err = s.Cancel(ctx, rolled.ThreadID, rolled.ID, agent.CancelRollback, "x", end)
	must(t, err)
	finish(t, s, rolled, agent.RunInterrupted, nil)

	next, err = s.NextNotice(ctx)
	must(t, err)
	equal(t, "due at the end", next, end)
	lease := end.Add(time.Minute)
	list, err := s.TakeNotices(ctx, end, lease, 10)
	must(t, err)
	equal(t, "notices", len(list), 2)
	equal(t, "values of a thread", list[0].ID+string(list[0].Values), `a{"n":7}`)
	equal(t, "a temporary run has none", list[1].ID+string(list[1].Values), `b`)
	equal(t, "status", list[1].Run.Status, agent.RunError)
	equal(t, "attempts", list[0].Attempts, 1)
	again, err := s.TakeNotices(ctx, end, lease, 10)
	must(t, err)
	equal(t, "taken", len(again), 0)
	must(t, s.DropNotice(ctx, "a"))
	must(t, s.PutOffNotice(ctx, "b", lease.Add(time.Minute)))
	again, err = s.TakeNotices(ctx, lease, lease, 10)
	must(t, err)
	equal(t, "put off", len(again), 0)
	again, err = s.TakeNotices(ctx, lease.Add(time.Minute), lease, 10)
	must(t, err)
	equal(t, "due again", len(again) == 1 && again[0].Attempts == 2, true)
}
