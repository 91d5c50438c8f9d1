package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/agent"
)

// threadFrames: the frames of all runs of a thread in the order of their ids, which is not that of their texts.
func threadFrames(t *testing.T, s agent.Store) {
	ctx := context.Background()
	frame := func(thread, run string, seq int64, id string) agent.Frame {
		return agent.Frame{RunID: run, ThreadID: thread, Seq: seq, ID: id, Event: "values", Data: raw(`{"n":1}`)}
	}
	s.AppendFrames(ctx, []agent.Frame{frame("t", "b", 1, "5-10"), frame("t", "b", 2, "5-11"), frame("u", "c", 1, "70-0")})
	s.AppendFrames(ctx, []agent.Frame{frame("t", "a", 1, "5-9"), frame("t", "d", 1, "40-0"), frame("t", "d", 1, "41-0")})
	told := func(after string, limit int) (ids string) {
		list, err := s.ThreadFrames(ctx, "t", agent.FramePosition(after), limit)
		must(t, err)
		for _, f := range list {
			ids += f.ID + " "
		}
		return ids
	}
	equal(t, "all", told("", 0), "5-9 5-10 5-11 40-0 ")
	equal(t, "a page", told("5-9", 2), "5-10 5-11 ")
	for thread, want := range map[string]string{"t": "40-0", "u": "70-0", "": "70-0", "none": ""} {
		last, err := s.LastFrame(ctx, thread)
		must(t, err)
		equal(t, "last of "+thread, last, want)
	}
}

// followed: whoever claims a run learns that its thread is followed.
func followed(t *testing.T, s agent.Store) {
	ctx, start := context.Background(), startTime()
	r := admit(t, s, admission("t", "r1", "", 0)).Run
	equal(t, "nobody follows", r.Followed, false)
	gone, err := s.FollowThreads(ctx, []string{"t", "none"}, start.Add(10*time.Second))
	must(t, err)
	equal(t, "gone", fmt.Sprint(gone), "[none]")
	_, err = s.FollowThreads(ctx, []string{"t"}, start) // does not shorten
	must(t, err)
	finish(t, s, r, agent.RunSuccess, nil)
	_, err = s.PatchThread(ctx, "t", raw(`{"a":1}`), nil, start)
	must(t, err)
	equal(t, "admitted", admit(t, s, admission("t", "r2", "", 1)).Run.Followed, true)
	waiting := admission("t", "r3", "", 2)
	waiting.ClaimFor = ""
	admit(t, s, waiting)
	_, err = s.Cancel(ctx, "t", "r2", agent.CancelInterrupt, "", start)
	must(t, err)
	r2, err := s.Run(ctx, "t", "r2")
	must(t, err)
	finish(t, s, r2, agent.RunInterrupted, nil)
	runs, _, err := s.Claim(ctx, "i", []string{"g"}, 1, start.Add(9*time.Second))
	must(t, err)
	equal(t, "claimed", len(runs) == 1 && runs[0].Followed, true)
	finish(t, s, runs[0], agent.RunSuccess, nil)
	equal(t, "over", admit(t, s, admission("t", "r4", "", 11)).Run.Followed, false)
}

// tails: the last frames are stored with the end of the run, unless it is rolled back, which takes all of them.
func tails(t *testing.T, s agent.Store) {
	ctx := context.Background()
	end := func(run string, action agent.CancelAction) int {
		r := admit(t, s, admission("t", run, "", 0)).Run
		s.AppendFrames(ctx, []agent.Frame{{RunID: run, ThreadID: "t", Seq: 1, ID: "1-0", Event: "values", Data: raw(`1`)}})
		if action != "" {
			_, err := s.Cancel(ctx, "t", run, action, "", startTime())
			must(t, err)
		}
		_, err := s.Finish(ctx, agent.Finish{
			Fence: fenceOf(r), Status: agent.RunError, Failure: &agent.Failure{Error: "E", Message: "m"}, Now: startTime(),
			Tail: &agent.Tail{Seq: 1, IDs: [3]string{"2-0", "3-0", "4-0"}},
		})
		must(t, err)
		list, err := s.Frames(ctx, run, 0, 0)
		must(t, err)
		return len(list)
	}
	equal(t, "failed: values, error, end, done", end("r1", ""), 4)
	equal(t, "interrupted: values, end, done", end("r2", agent.CancelInterrupt), 3)
	equal(t, "rolled back", end("r3", agent.CancelRollback), 0)
	list, err := s.Frames(ctx, "r1", 1, 0)
	must(t, err)
	equal(t, "error", string(list[0].Data), `{"error":"E","message":"m"}`)
	equal(t, "end", string(list[1].Data), `{"run_id":"r1","status":"error"}`)
	equal(t, "done", list[2].ID+" "+string(list[2].Data), `4-0 {"status":"run_done","run_id":"r1"}`)
}
