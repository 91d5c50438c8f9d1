package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

func claimOrder(t *testing.T, s agent.Store) {
	ctx := context.Background()
	for i, id := range []string{"r1", "r2"} {
		a := admission("t", id, "", i)
		a.ClaimFor = ""
		admit(t, s, a)
	}
	late := admission("u", "r3", "", 100)
	late.ClaimFor, late.Now = "", startTime()
	admit(t, s, late)
	others, _, err := s.Claim(ctx, "i", []string{"other"}, 5, startTime().Add(time.Minute))
	must(t, err)
	equal(t, "other graph", len(others), 0)
	runs, next, err := s.Claim(ctx, "i", []string{"g"}, 5, startTime().Add(time.Minute))
	must(t, err)
	equal(t, "one per thread", len(runs), 1)
	equal(t, "oldest", runs[0].ID, "r1")
	equal(t, "next", next, startTime().Add(100*time.Second))
}

func checkpoints(t *testing.T, s agent.Store) {
	ctx := context.Background()
	put(s, agent.Fence{}, "t", "1", "", `"v1"`, `1`)
	put(s, agent.Fence{}, "t", "2", "1", `"v1"`, `other`)
	key := agent.CheckpointKey{ThreadID: "t", ID: "2"}
	write := func(index int, value string) agent.Write {
		return agent.Write{TaskID: "k", Index: index, Channel: "c", Typed: agent.Typed{Type: "json", Bytes: []byte(value)}}
	}
	s.PutWrites(ctx, agent.Fence{}, key, []agent.Write{write(1, "b"), write(0, "a")})
	s.PutWrites(ctx, agent.Fence{}, key, []agent.Write{write(0, "ignored")})
	s.PutWrites(ctx, agent.Fence{}, key, []agent.Write{write(-3, "x")})
	s.PutWrites(ctx, agent.Fence{}, key, []agent.Write{write(-3, "y")})
	cp, err := s.Checkpoint(ctx, agent.CheckpointKey{ThreadID: "t"})
	must(t, err)
	equal(t, "blob is insert-once", string(cp.Values[0].Bytes), "1")
	got := ""
	for _, w := range cp.Writes {
		got += string(w.Bytes)
	}
	equal(t, "writes", got, "yab")
	list, err := s.Checkpoints(ctx, agent.CheckpointQuery{ThreadID: "t", Filter: raw(`{"tags":["b"]}`), Before: "2"})
	must(t, err)
	equal(t, "listed", fmt.Sprintf("%d %s", len(list), list[0].ID), "1 1")
	must(t, s.CopyCheckpoints(ctx, "t", "u"))
	must(t, s.PruneCheckpoints(ctx, []string{"u"}, true))
	list, err = s.Checkpoints(ctx, agent.CheckpointQuery{ThreadID: "u"})
	must(t, err)
	equal(t, "pruned", len(list), 1)
	equal(t, "shared blob stays", len(list[0].Values), 1)
	must(t, s.DeleteCheckpoints(ctx, "t"))
	cp, err = s.Checkpoint(ctx, key)
	if cp != nil || err != nil {
		t.Fatalf("got %v, %v, want nothing", cp, err)
	}
}

func deltas(t *testing.T, s agent.Store) {
	ctx := context.Background()
	put(s, agent.Fence{}, "t", "1", "", `1`, `seed`)
	put(s, agent.Fence{}, "t", "2", "1", `2`, ``)
	put(s, agent.Fence{}, "t", "3", "2", `3`, ``)
	for _, id := range []string{"1", "2", "3"} {
		w := agent.Write{TaskID: "k", Channel: "c", Typed: agent.Typed{Type: "json", Bytes: []byte("w" + id)}}
		s.PutWrites(ctx, agent.Fence{}, agent.CheckpointKey{ThreadID: "t", ID: id}, []agent.Write{w})
	}
	out, err := s.DeltaHistory(ctx, agent.CheckpointKey{ThreadID: "t", ID: "3"}, []string{"c", "d"})
	must(t, err)
	equal(t, "seed", string(out[0].Seed.Bytes), "seed")
	equal(t, "writes", string(out[0].Writes[0].Bytes)+string(out[0].Writes[1].Bytes), "w1w2")
	equal(t, "no seed", out[1].Seed == nil, true)
}

func frames(t *testing.T, s agent.Store) {
	ctx := context.Background()
	a := admit(t, s, admission("t", "r", "", 0))
	for i := range 3 {
		s.AppendFrames(ctx, []agent.Frame{{RunID: "r", ThreadID: "t", Seq: int64(i + 1), ID: fmt.Sprint(i), Event: "values", Data: raw(`{}`)}})
	}
	got, err := s.Frames(ctx, "r", 1, 10)
	must(t, err)
	equal(t, "after", len(got), 2)
	must(t, s.DropFrames(ctx, startTime().Add(2*time.Hour)))
	got, _ = s.Frames(ctx, "r", 0, 10)
	equal(t, "running keeps", len(got), 3)
	finish(t, s, a.Run, agent.RunSuccess, nil)
	must(t, s.DropFrames(ctx, startTime().Add(2*time.Hour)))
	got, _ = s.Frames(ctx, "r", 0, 10)
	equal(t, "dropped", len(got), 0)
}

func items(t *testing.T, s agent.Store) {
	ctx := context.Background()
	ttl, yes := 1.0, true
	item := func(ns []string, key, value string, ttl *float64) agent.StoreOp {
		return agent.StoreOp{Put: &agent.PutOp{Namespace: ns, Key: key, Value: raw(value), TTL: ttl}}
	}
	out, err := s.StoreBatch(ctx, []agent.StoreOp{
		item([]string{"a", "b"}, "k", `{"n":1,"s":"x"}`, nil), item([]string{"a_", "b"}, "k", `{"n":2}`, nil), item([]string{"a"}, "e", `{"n":3}`, &ttl),
		{Get: &agent.GetOp{Namespace: []string{"a", "b"}, Key: "k"}},
	}, startTime())
	must(t, err)
	equal(t, "sees its put", string(out[3].Item.Value), `{"n":1,"s":"x"}`)
	search := func(at time.Time, filter string) int {
		out, err := s.StoreBatch(ctx, []agent.StoreOp{{Search: &agent.SearchOp{Prefix: []string{"a"}, Filter: raw(filter), Limit: 10}}}, at)
		must(t, err)
		return len(out[0].Items)
	}
	for filter, want := range map[string]int{`{}`: 2, `{"n":{"$gt":1}}`: 1, `{"n":{"$lte":1}}`: 1, `{"s":"x"}`: 1, `{"s":{"$gt":1}}`: 0, `{"n":{"$ne":3}}`: 1} {
		equal(t, filter, search(startTime(), filter), want)
	}
	_, err = s.StoreBatch(ctx, []agent.StoreOp{{Get: &agent.GetOp{Namespace: []string{"a"}, Key: "e", RefreshTTL: &yes}}}, startTime().Add(50*time.Second))
	must(t, err)
	equal(t, "refreshed", search(startTime().Add(90*time.Second), `{}`), 2)
	equal(t, "expired", search(startTime().Add(200*time.Second), `{}`), 1)
	out, err = s.StoreBatch(ctx, []agent.StoreOp{{Namespaces: &agent.NamespacesOp{Suffix: []string{"b"}, MaxDepth: 1, Limit: 10}}}, startTime())
	must(t, err)
	equal(t, "namespaces", fmt.Sprint(out[0].Namespaces), "[[a] [a_]]")
}

func temporary(t *testing.T, s agent.Store) {
	a := admission("t", "r", "", 0)
	a.Run.Temporary = true
	out := finish(t, s, admit(t, s, a).Run, agent.RunSuccess, snapshot(1, `[]`))
	equal(t, "thread is nil", out.Thread == nil, true)
	_, err := s.Thread(context.Background(), "t")
	wantCode(t, err, slipway.CodeNotFound)
}

// isolation: failing writes between good ones harm nobody.
func isolation(t *testing.T, s agent.Store) {
	ctx := context.Background()
	var good, bad []agent.Commit
	for i := range 50 {
		good = append(good, put(s, agent.Fence{}, "t", fmt.Sprint(100+i), "", `1`, `1`))
		bad = append(bad, put(s, agent.Fence{RunID: "no", Epoch: 1}, "t", fmt.Sprint(i), "", `2`, `2`))
	}
	for i := range good {
		must(t, good[i].Wait(ctx))
		wantCode(t, bad[i].Wait(ctx), slipway.CodeStale)
	}
	list, err := s.Checkpoints(ctx, agent.CheckpointQuery{ThreadID: "t"})
	must(t, err)
	equal(t, "stored", len(list), 50)
}

func instances(t *testing.T, s agent.Store) {
	ctx := context.Background()
	release, err := s.Register(ctx, "i")
	must(t, err)
	admit(t, s, admission("t", "r", "", 0))
	dead, err := s.Dead(ctx)
	must(t, err)
	equal(t, "alive", len(dead), 0)
	short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	if err := s.AwaitEnd(short, "i"); err == nil {
		t.Fatal("AwaitEnd returned while the instance was alive")
	}
	ended := make(chan error, 1)
	go func() { ended <- s.AwaitEnd(ctx, "i") }()
	must(t, release())
	must(t, <-ended)
	dead, err = s.Dead(ctx)
	must(t, err)
	equal(t, "dead", fmt.Sprint(dead), "[i]")
	runs, err := s.RunningOf(ctx, "i")
	must(t, err)
	equal(t, "its runs", len(runs), 1)
	graphs, err := s.PendingGraphs(ctx)
	must(t, err)
	equal(t, "graphs of pending runs", len(graphs), 0)
	_, err = s.Requeue(ctx, agent.Fence{RunID: runs[0].ID, Epoch: runs[0].Epoch}, true, 3, time.UnixMicro(9))
	must(t, err)
	graphs, err = s.PendingGraphs(ctx)
	must(t, err)
	equal(t, "graphs of pending runs", fmt.Sprint(graphs), fmt.Sprint([]string{runs[0].GraphID}))
}
