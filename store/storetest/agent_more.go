package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
)

// orderOfWrites: the library applies writes in the order it gets them, so tasks come by their path first.
func orderOfWrites(t *testing.T, s agent.Store) {
	ctx := context.Background()
	put(s, agent.Fence{}, "t", "1", "", `1`, `seed`)
	put(s, agent.Fence{}, "t", "2", "1", `2`, ``)
	key := agent.CheckpointKey{ThreadID: "t", ID: "1"}
	for _, w := range []agent.Write{
		{TaskID: "a", TaskPath: "~2"}, {TaskID: "c", TaskPath: "~1", Index: 1}, {TaskID: "c", TaskPath: "~1"}, {TaskID: "b", TaskPath: "~1"},
	} {
		w.Channel, w.Typed = "c", agent.Typed{Type: "json", Bytes: []byte(w.TaskID + fmt.Sprint(w.Index))}
		s.PutWrites(ctx, agent.Fence{}, key, []agent.Write{w})
	}
	cp, err := s.Checkpoint(ctx, key)
	must(t, err)
	equal(t, "pending writes", bytesOf(cp.Writes), "b0c0c1a0")
	out, err := s.DeltaHistory(ctx, agent.CheckpointKey{ThreadID: "t", ID: "2"}, []string{"c"})
	must(t, err)
	equal(t, "delta history", bytesOf(out[0].Writes), "b0c0c1a0")
}

func bytesOf(writes []agent.Write) string {
	got := ""
	for _, w := range writes {
		got += string(w.Bytes)
	}
	return got
}

func admitAll(t *testing.T, s agent.Store) {
	ctx := context.Background()
	missing := admission("nowhere", "r2", "", 0)
	missing.CreateThread = false
	_, err := s.AdmitAll(ctx, []agent.Admission{admission("t", "r1", "", 0), missing})
	wantCode(t, err, slipway.CodeNotFound)
	_, err = s.Thread(ctx, "t")
	wantCode(t, err, slipway.CodeNotFound)
	out, err := s.AdmitAll(ctx, []agent.Admission{admission("t", "r1", "", 0), admission("t", "r2", "", 0)})
	must(t, err)
	equal(t, "statuses", fmt.Sprintf("%s %s", out[0].Run.Status, out[1].Run.Status), "running pending")
}

func patchState(t *testing.T, s agent.Store) {
	ctx := context.Background()
	_, err := s.PatchState(ctx, "t", raw(`{}`), startTime())
	wantCode(t, err, slipway.CodeNotFound)
	r := admit(t, s, admission("t", "r", "", 0)).Run
	_, err = s.PatchState(ctx, "t", raw(`{}`), startTime())
	wantCode(t, err, slipway.CodeNotFound)
	put(s, fenceOf(r), "t", "1", "", `1`, `1`)
	put(s, fenceOf(r), "t", "2", "1", `2`, `2`)
	snap := snapshot(1, `[]`)
	snap.Metadata = raw(`{"step":1,"big":12345678901234567890}`)
	finish(t, s, r, agent.RunError, snap)
	key, err := s.PatchState(ctx, "t", raw(`{"step":2,"x":"y"}`), startTime())
	must(t, err)
	equal(t, "address", key, agent.CheckpointKey{ThreadID: "t", ID: "2"})
	cp, err := s.Checkpoint(ctx, key)
	must(t, err)
	equal(t, "checkpoint", string(cp.Metadata), `{"step":2,"tags":["a","b"],"x":"y"}`)
	th, err := s.Thread(ctx, "t")
	must(t, err)
	equal(t, "thread", th.Status, agent.ThreadError)
	list, err := s.Checkpoints(ctx, agent.CheckpointQuery{ThreadID: "t", Filter: raw(`{"x":"y"}`)})
	must(t, err)
	equal(t, "checkpoints that changed", len(list), 1)
}

// graphOfState: the thread names the graph that wrote its state, whatever was admitted and cancelled since.
func graphOfState(t *testing.T, s agent.Store) {
	r := admit(t, s, admission("t", "r1", "", 0)).Run
	other := admission("t", "r2", "", 1)
	other.Run.GraphID = "other"
	admit(t, s, other)
	_, err := s.Cancel(context.Background(), "t", "r2", agent.CancelInterrupt, "enough", startTime())
	must(t, err)
	th := finish(t, s, r, agent.RunSuccess, snapshot(1, `[]`)).Thread
	equal(t, "metadata", string(th.Metadata), `{"assistant_id":"a","graph_id":"g","owner":"x"}`)
}

// temporaryFrames: the replay window outlives the run's row.
func temporaryFrames(t *testing.T, s agent.Store) {
	ctx := context.Background()
	a := admission("t", "r", "", 0)
	a.Run.Temporary = true
	run := admit(t, s, a).Run
	at := startTime().Add(time.Minute)
	s.AppendFrames(ctx, []agent.Frame{{RunID: "r", ThreadID: "t", Seq: 1, ID: fmt.Sprintf("%d-0", at.UnixMilli()), Event: "values", Data: raw(`{}`)}})
	finish(t, s, run, agent.RunSuccess, nil)
	kept := func(endedBefore time.Time) int {
		must(t, s.DropFrames(ctx, endedBefore))
		frames, err := s.Frames(ctx, "r", 0, 10)
		must(t, err)
		return len(frames)
	}
	equal(t, "within the window", kept(at), 1)
	equal(t, "after it", kept(at.Add(time.Millisecond)), 0)
}
