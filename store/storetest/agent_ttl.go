package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

// threadTTL: `delete` counts from when it was set, `keep_latest` anew from every change of the state.
func threadTTL(t *testing.T, s agent.Store) {
	ctx, start := context.Background(), startTime()
	minute := func(n int) time.Time { return start.Add(time.Duration(n) * time.Minute) }
	mortal := agent.TTL{Strategy: agent.TTLDelete, Minutes: 10}
	_, err := s.CreateThread(ctx, agent.Thread{ID: "d", TTL: mortal.From(start), CreatedAt: start, UpdatedAt: start}, false)
	must(t, err)
	keep := agent.TTL{Strategy: agent.TTLKeepLatest, Minutes: 10}
	a := admission("k", "r", "", 0)
	a.ThreadTTL = keep.From(start)
	run := admit(t, s, a).Run
	for _, id := range []string{"1", "2"} {
		must(t, put(s, fenceOf(run), "k", id, "", `1`, `1`).Wait(ctx))
	}
	finish(t, s, run, agent.RunSuccess, snapshot(1, `[]`)) // an hour after start: armed again

	due, err := s.DueThreads(ctx, minute(15), 10)
	must(t, err)
	equal(t, "due", len(due), 1)
	equal(t, "first", due[0].ID, "d")
	n, err := s.CountThreads(ctx, agent.ThreadQuery{Now: minute(15)})
	must(t, err)
	equal(t, "visible", n, 1)
	_, err = s.PatchThread(ctx, "d", nil, nil, minute(15))
	wantCode(t, err, slipway.CodeNotFound)
	_, err = s.CopyThread(ctx, "d", "e", minute(15))
	wantCode(t, err, slipway.CodeNotFound)

	must(t, s.KeepLatest(ctx, "k", minute(69)))
	list, err := s.Checkpoints(ctx, agent.CheckpointQuery{ThreadID: "k"})
	must(t, err)
	equal(t, "not due yet", len(list), 2)
	must(t, s.KeepLatest(ctx, "k", minute(70)))
	list, err = s.Checkpoints(ctx, agent.CheckpointQuery{ThreadID: "k"})
	must(t, err)
	equal(t, "only the latest", len(list), 1)
	equal(t, "which", list[0].ID, "2")
	due, err = s.DueThreads(ctx, minute(1000), 10)
	must(t, err)
	equal(t, "carried out once", len(due), 1)

	anew, err := s.CreateThread(ctx, agent.Thread{ID: "d", Metadata: raw(`{"new":1}`), CreatedAt: minute(16), UpdatedAt: minute(16)}, true)
	must(t, err)
	equal(t, "an expired thread makes room", string(anew.Metadata), `{"new":1}`)
	size, err := s.Storage(ctx, "k")
	must(t, err)
	equal(t, "storage", size.Checkpoints.Count*10+size.Channels["c"].Count, 11)
	equal(t, "bytes, which may be encrypted", size.Channels["c"].Bytes >= 1, true)
}

// itemTTL: a read restarts the time to live where it is asked to, a put always does.
func itemTTL(t *testing.T, s agent.Store) {
	ctx, start, ttl := context.Background(), startTime(), 10.0
	at := func(n int) time.Time { return start.Add(time.Duration(n) * time.Minute) }
	batch := func(now time.Time, rules agent.ItemRules, op agent.StoreOp) agent.StoreResult {
		out, err := s.StoreBatch(ctx, rules.Apply([]agent.StoreOp{op}), now)
		must(t, err)
		return out[0]
	}
	get := agent.StoreOp{Get: &agent.GetOp{Namespace: []string{"a"}, Key: "k"}}
	search := agent.StoreOp{Search: &agent.SearchOp{Prefix: []string{"a"}, Limit: 5}}
	put := agent.StoreOp{Put: &agent.PutOp{Namespace: []string{"a"}, Key: "k", Value: raw(`{"v":1}`)}}
	batch(start, agent.ItemRules{DefaultTTL: &ttl}, put)
	equal(t, "there", batch(at(9), agent.ItemRules{}, get).Item != nil, true)                      // lives until 19
	equal(t, "found", len(batch(at(18), agent.ItemRules{}, search).Items), 1)                      // lives until 28
	equal(t, "read only", batch(at(27), agent.ItemRules{KeepOnRead: true}, get).Item != nil, true) // still until 28
	equal(t, "expired", batch(at(28), agent.ItemRules{}, get).Item == nil, true)
	must(t, s.DropItems(ctx, at(28)))
	equal(t, "gone for good", batch(start, agent.ItemRules{}, get).Item == nil, true)
}
