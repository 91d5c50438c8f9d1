// Package storetest holds the conformance suites of the stores: what the ports promise, whatever the database.
package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

// startTime is the suites' first moment.
func startTime() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC) }

// RunAgent runs the suite of agent.Store; open returns an empty store that lives as long as the test.
func RunAgent(t *testing.T, open func(t *testing.T) agent.Store) {
	for name, test := range map[string]func(t *testing.T, s agent.Store){
		"threads": threads, "lifecycle": lifecycle, "reject race": rejectRace, "strategies": strategies, "fence": fence,
		"rollback": rollback, "requeue": requeue, "claim order": claimOrder, "checkpoints": checkpoints, "deltas": deltas, "frames": frames,
		"items": items, "assistants": assistants, "assistant versions": assistantVersions, "system assistants": systemAssistants, "notices": notices, "crons": crons, "fire once": fireOnce, "thread ttl": threadTTL, "item ttl": itemTTL,
		"temporary": temporary, "trace counts": traceCounts, "kept values": keptValues, "group isolation": isolation, "instances": instances,
		"order of writes": orderOfWrites, "admit all": admitAll, "patch state": patchState, "temporary frames": temporaryFrames, "graph of state": graphOfState, "queue": queue,
		"access filters": accessFilters, "access lists": accessLists, "access runs": accessRuns, "access items": accessItems, "gone threads": goneThreads, "access vectors": accessVectors,
		"thread frames": threadFrames, "followed": followed, "tails": tails, "vectors": vectors, "reindexing": reindexing,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

func raw(s string) json.RawMessage { return json.RawMessage(s) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantCode(t *testing.T, err error, want slipway.Code) {
	t.Helper()
	if got := slipway.ErrorCode(err); got != want {
		t.Fatalf("got error %v with code %q, want code %q", err, got, want)
	}
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

// admission is a run of graph "g" on a thread that is made if missing.
func admission(thread, run string, m agent.Multitask, n int) agent.Admission {
	at := startTime().Add(time.Duration(n) * time.Second)
	return agent.Admission{
		Run:          agent.Run{ID: run, ThreadID: thread, AssistantID: "a", GraphID: "g", Multitask: m, CreatedAt: at, Kwargs: agent.Kwargs{Config: raw(`{}`)}},
		CreateThread: true, ThreadMetadata: raw(`{"owner":"x"}`), ClaimFor: "i", Now: at,
	}
}

func admit(t *testing.T, s agent.Store, a agent.Admission) agent.Admitted {
	t.Helper()
	out, err := s.Admit(context.Background(), a)
	must(t, err)
	return out
}

func fenceOf(r agent.Run) agent.Fence { return agent.Fence{RunID: r.ID, Epoch: r.Epoch} }

func snapshot(value int, next string) *agent.Snapshot {
	return &agent.Snapshot{Values: raw(fmt.Sprintf(`{"n":%d}`, value)), Next: raw(next), Tasks: raw(`[{"id":"t1","interrupts":[{"id":"i1","value":1}]},{"id":"t2","interrupts":[]}]`)}
}

func finish(t *testing.T, s agent.Store, r agent.Run, status agent.RunStatus, snap *agent.Snapshot) agent.Finished {
	t.Helper()
	out, err := s.Finish(context.Background(), agent.Finish{Fence: fenceOf(r), Status: status, Snapshot: snap, Now: startTime().Add(time.Hour)})
	must(t, err)
	return out
}

// put writes a checkpoint with one channel "c" at version v.
func put(s agent.Store, f agent.Fence, thread, id, parent, version, value string) agent.Commit {
	cp := agent.Checkpoint{
		CheckpointKey: agent.CheckpointKey{ThreadID: thread, ID: id}, ParentID: parent, RunID: f.RunID, Language: "python",
		Header: raw(`{"channel_versions":{"c":` + version + `}}`), Metadata: raw(`{"step":1,"tags":["a","b"]}`),
	}
	var blobs []agent.ChannelBlob
	if value != "" {
		blobs = []agent.ChannelBlob{{Channel: "c", Version: version, Typed: agent.Typed{Type: "json", Bytes: []byte(value)}}}
	}
	return s.PutCheckpoint(context.Background(), f, cp, blobs)
}

func threads(t *testing.T, s agent.Store) {
	ctx := context.Background()
	made, err := s.CreateThread(ctx, agent.Thread{ID: "t", Metadata: raw(`{"a":{"b":[1,2]},"k":"v"}`), CreatedAt: startTime(), UpdatedAt: startTime()}, false)
	must(t, err)
	equal(t, "status", made.Status, agent.ThreadIdle)
	_, err = s.CreateThread(ctx, agent.Thread{ID: "t"}, false)
	wantCode(t, err, slipway.CodeConflict)
	again, err := s.CreateThread(ctx, agent.Thread{ID: "t"}, true)
	must(t, err)
	equal(t, "metadata", string(again.Metadata), `{"a":{"b":[1,2]},"k":"v"}`)
	for filter, want := range map[string]int{`{"a":{"b":[2]}}`: 1, `{"a":{"b":[3]}}`: 0, `{"k":"v"}`: 1, `{"k":1}`: 0, `{"missing":null}`: 0} {
		n, err := s.CountThreads(ctx, agent.ThreadQuery{Metadata: raw(filter)})
		must(t, err)
		equal(t, filter, n, want)
	}
	patched, err := s.PatchThread(ctx, "t", raw(`{"k":"w"}`), nil, startTime().Add(time.Second))
	must(t, err)
	equal(t, "patched", string(patched.Metadata), `{"a":{"b":[1,2]},"k":"w"}`)
	_, err = s.PutState(ctx, "t", "g", *snapshot(7, `["n"]`), startTime())
	must(t, err)
	must(t, put(s, agent.Fence{}, "t", "1", "", `"v1"`, `1`).Wait(ctx))
	copied, err := s.CopyThread(ctx, "t", "t2", startTime())
	must(t, err)
	equal(t, "copied values", string(copied.Values), `{"n":7}`)
	equal(t, "copied status", copied.Status, agent.ThreadInterrupted)
	must(t, s.DeleteThread(ctx, "t"))
	_, err = s.Thread(ctx, "t")
	wantCode(t, err, slipway.CodeNotFound)
	cp, err := s.Checkpoint(ctx, agent.CheckpointKey{ThreadID: "t2"})
	must(t, err)
	if cp == nil || len(cp.Values) != 1 {
		t.Fatalf("the copy's checkpoint is %+v, want one with a value", cp)
	}
}

func lifecycle(t *testing.T, s agent.Store) {
	ctx := context.Background()
	a := admit(t, s, admission("t", "r", "", 0))
	equal(t, "claimed", a.Run.Status, agent.RunRunning)
	equal(t, "epoch", a.Run.Epoch, int64(1))
	equal(t, "busy", a.Thread.Status, agent.ThreadBusy)
	equal(t, "metadata", string(a.Thread.Metadata), `{"assistant_id":"a","graph_id":"g","owner":"x"}`)
	must(t, put(s, fenceOf(a.Run), "t", "1", "", `"v1"`, `1`).Wait(ctx))
	r, err := s.Run(ctx, "t", "r")
	must(t, err)
	equal(t, "checkpointed", r.Checkpointed, true)
	_, err = s.PutState(ctx, "t", "g", *snapshot(1, `[]`), startTime())
	wantCode(t, err, slipway.CodeConflict)
	wantCode(t, s.DeleteThread(ctx, "t"), slipway.CodeConflict)
	out := finish(t, s, a.Run, agent.RunSuccess, snapshot(2, `["n"]`))
	equal(t, "outcome", out.Outcome, agent.RunSuccess)
	equal(t, "thread", out.Thread.Status, agent.ThreadInterrupted)
	equal(t, "interrupts", string(out.Thread.Interrupts), `{"t1":[{"id":"i1","value":1}]}`)
	th, err := s.Thread(ctx, "t")
	must(t, err)
	equal(t, "language", th.Language, "python")
	b := admit(t, s, admission("t", "r2", "", 1))
	out, err = s.Finish(ctx, agent.Finish{Fence: fenceOf(b.Run), Status: agent.RunError, Failure: &agent.Failure{Error: "E", Message: "m"}, Now: startTime()})
	must(t, err)
	equal(t, "failed thread", out.Thread.Status, agent.ThreadError)
	equal(t, "values left alone", string(out.Thread.Values), `{"n":2}`)
	must(t, s.DeleteRun(ctx, "t", "r", startTime()))
	_, err = s.Run(ctx, "", "r")
	wantCode(t, err, slipway.CodeNotFound)
	th, err = s.Thread(ctx, "t")
	must(t, err)
	equal(t, "values without a checkpoint", string(th.Values), "")
	equal(t, "state without a checkpoint", string(th.State), "")
	equal(t, "status without a checkpoint", th.Status, agent.ThreadIdle)
	equal(t, "interrupts without a checkpoint", string(th.Interrupts), "{}")
}

func rejectRace(t *testing.T, s agent.Store) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for i := range 32 {
		wg.Go(func() {
			_, err := s.Admit(context.Background(), admission("t", fmt.Sprint("r", i), agent.MultitaskReject, 0))
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won++
			} else if slipway.ErrorCode(err) != slipway.CodeConflict {
				t.Errorf("got %v, want a conflict", err)
			}
		})
	}
	wg.Wait()
	equal(t, "winners", won, 1)
}

func strategies(t *testing.T, s agent.Store) {
	ctx := context.Background()
	a := admit(t, s, admission("t", "r1", "", 0))
	p := admit(t, s, admission("t", "r2", "", 1))
	equal(t, "queued", p.Run.Status, agent.RunPending)
	b := admit(t, s, admission("t", "r3", agent.MultitaskInterrupt, 2))
	equal(t, "cancels", len(b.Cancels), 1)
	equal(t, "ended", len(b.Ended), 1)
	equal(t, "ended how", b.Ended[0].Status, agent.RunInterrupted)
	equal(t, "waits", b.Run.Status, agent.RunPending)
	out := finish(t, s, a.Run, agent.RunSuccess, nil)
	equal(t, "cancel wins", out.Outcome, agent.RunInterrupted)
	equal(t, "still busy", out.Thread.Status, agent.ThreadBusy)
	equal(t, "error", out.Thread.Error.Error, "UserInterrupt")
	c := admit(t, s, admission("t", "r4", agent.MultitaskRollback, 3))
	equal(t, "rolled back", c.Ended[0].Status, agent.RunRollback)
	equal(t, "runs at once", c.Run.Status, agent.RunRunning)
	_, err := s.Run(ctx, "t", "r3")
	wantCode(t, err, slipway.CodeNotFound)
	_, err = s.Cancel(ctx, "t", "r2", agent.CancelInterrupt, "x", startTime())
	wantCode(t, err, slipway.CodeNotFound)
}

func fence(t *testing.T, s agent.Store) {
	ctx := context.Background()
	a := admit(t, s, admission("t", "r", "", 0))
	_, err := s.Requeue(ctx, fenceOf(a.Run), true, 3, startTime())
	must(t, err)
	wantCode(t, put(s, fenceOf(a.Run), "t", "1", "", `"v"`, `1`).Wait(ctx), slipway.CodeStale)
	runs, _, err := s.Claim(ctx, "j", []string{"g"}, 1, startTime())
	must(t, err)
	equal(t, "epoch", runs[0].Epoch, int64(2))
	equal(t, "attempt", runs[0].Attempt, 1)
	wantCode(t, s.PutWrites(ctx, fenceOf(a.Run), agent.CheckpointKey{ThreadID: "t", ID: "1"}, nil).Wait(ctx), slipway.CodeStale)
	_, err = s.Finish(ctx, agent.Finish{Fence: fenceOf(a.Run), Status: agent.RunSuccess, Now: startTime()})
	wantCode(t, err, slipway.CodeStale)
	cp, err := s.Checkpoint(ctx, agent.CheckpointKey{ThreadID: "t", ID: "1"})
	must(t, err)
	if cp != nil {
		t.Fatalf("a stale worker's checkpoint is stored: %+v", cp)
	}
}

func rollback(t *testing.T, s agent.Store) {
	ctx := context.Background()
	a := admit(t, s, admission("t", "r1", "", 0))
	put(s, fenceOf(a.Run), "t", "1", "", `"v1"`, `1`)
	finish(t, s, a.Run, agent.RunSuccess, snapshot(1, `[]`))
	b := admit(t, s, admission("t", "r2", "", 1))
	put(s, fenceOf(b.Run), "t", "2", "1", `"v2"`, `2`)
	_, err := s.Cancel(ctx, "t", "r2", agent.CancelRollback, "why", startTime())
	must(t, err)
	out := finish(t, s, b.Run, agent.RunSuccess, snapshot(2, `["n"]`))
	equal(t, "outcome", out.Outcome, agent.RunRollback)
	equal(t, "values", string(out.Thread.Values), `{"n":1}`)
	equal(t, "status", out.Thread.Status, agent.ThreadIdle)
	_, err = s.Run(ctx, "t", "r2")
	wantCode(t, err, slipway.CodeNotFound)
	cp, err := s.Checkpoint(ctx, agent.CheckpointKey{ThreadID: "t"})
	must(t, err)
	equal(t, "latest", cp.ID, "1")
	equal(t, "value", string(cp.Values[0].Bytes), "1")
}

func requeue(t *testing.T, s agent.Store) {
	ctx := context.Background()
	a := admit(t, s, admission("t", "r", "", 0))
	out, err := s.Requeue(ctx, fenceOf(a.Run), false, 2, startTime())
	must(t, err)
	equal(t, "again", out.Run.Status, agent.RunPending)
	runs, _, err := s.Claim(ctx, "i", []string{"g"}, 5, startTime())
	must(t, err)
	out, err = s.Requeue(ctx, fenceOf(runs[0]), false, 2, startTime())
	must(t, err)
	equal(t, "used up", out.Outcome, agent.RunError)
	equal(t, "thread", out.Thread.Status, agent.ThreadError)
}
