package slipway_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/slipway-dev/slipway"
)

func TestMoveFollowsTheTable(t *testing.T) {
	t.Parallel()
	for _, from := range slipway.RevisionStatuses() {
		for _, to := range slipway.RevisionStatuses() {
			got, err := slipway.Revision{Status: from}.Move(to, "why", at)
			switch {
			case from == to:
				if err != nil || got.StatusReason != "" {
					t.Errorf("%s to itself: %+v, %v; want nothing to happen", from, got, err)
				}
			case slices.Contains(from.NextStatuses(), to):
				if err != nil || got.Status != to || got.StatusReason != "why" || !got.UpdatedAt.Equal(at) {
					t.Errorf("%s to %s: %+v, %v", from, to, got, err)
				}
			case slipway.ErrorCode(err) != slipway.CodeConflict || got.Status != from:
				t.Errorf("%s to %s: %+v, %v; want CodeConflict", from, to, got, err)
			}
		}
	}
}

func TestEveryRevisionCanEnd(t *testing.T) {
	t.Parallel()
	for _, s := range slipway.RevisionStatuses() {
		if s.Terminal() == slices.Contains(s.NextStatuses(), slipway.Interrupted) {
			t.Errorf("%s: terminal = %v, can be interrupted = %v; want one of the two", s, s.Terminal(), !s.Terminal())
		}
	}
}

func TestPromoteProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		statuses := rapid.SliceOfN(rapid.SampledFrom(slipway.RevisionStatuses()), 0, 8).Draw(t, "statuses")
		var all []slipway.Revision
		newest, busy, queued := int64(0), false, 0
		for i, s := range statuses {
			all = append(all, slipway.Revision{Number: int64(i + 1), Status: s})
			busy = busy || s.InProgress()
			if s == slipway.Queued {
				newest, queued = int64(i+1), queued+1
			}
		}
		all = rapid.Permutation(all).Draw(t, "order")
		got := slipway.Promote(all)
		if busy || queued == 0 {
			if got.Next != nil || got.Skipped != nil {
				t.Fatalf("%v: %+v, want nothing", all, got)
			}
			return
		}
		if got.Next == nil || got.Next.Number != newest || len(got.Skipped) != queued-1 {
			t.Fatalf("%v: %+v, want %d next and %d skipped", all, got, newest, queued-1)
		}
	})
}
