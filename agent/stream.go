package agent

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// Frame is one event of a stream (reference 10.1): of a run, or of a thread (10.4).
type Frame struct {
	// RunID is the run the frame belongs to; a frame of the thread itself has an id of its own here.
	RunID    string
	ThreadID string
	Seq      int64           // position within the run, from 1
	ID       string          // "<unix ms>-<n>", strictly rising within the thread; "" = a frame that is not kept
	Event    string          // "values", "messages/partial", "updates|sub:<uuid>", …
	Data     json.RawMessage // one line
	// After is set in the first frame of an attempt where the thread is followed: the position of the frame before it on the
	// thread. It is not stored.
	After int64
}

// FrameSteps is how many frames may bear the same millisecond in their ids.
const FrameSteps = 1 << 20

// FramePosition is the number that orders frame ids: the milliseconds times FrameSteps plus the count behind them. What is
// no id counts as one before all others.
func FramePosition(id string) int64 {
	a, b, _ := strings.Cut(id, "-")
	ms, _ := strconv.ParseInt(a, 10, 64)
	n, _ := strconv.ParseInt(b, 10, 64)
	const latest = 1<<43 - 1 // milliseconds; the year 2248
	return min(max(ms, 0), latest)*FrameSteps + min(max(n, 0), FrameSteps-1)
}

// FrameID is the id at a position.
func FrameID(position int64) string {
	return strconv.FormatInt(position/FrameSteps, 10) + "-" + strconv.FormatInt(position%FrameSteps, 10)
}

// Tail are the places that the last frames of a run will have: they are stored in the transaction that ends it, so that no
// crash comes between the end and the word of it.
type Tail struct {
	Seq int64     // of the frame before them
	IDs [3]string // for error, end and the thread's metadata
}

// Frames returns the last frames of a run that has ended: error where it failed for good, end, and the metadata that tells
// followers of its thread that the run is done (reference 10.4).
func (t Tail) Frames(r Run, outcome RunStatus) []Frame {
	last := make([]Frame, 0, len(t.IDs))
	add := func(event string, data json.RawMessage) {
		n := len(last)
		last = append(last, Frame{RunID: r.ID, ThreadID: r.ThreadID, Seq: t.Seq + int64(n) + 1, ID: t.IDs[n], Event: event, Data: data})
	}
	if r.Failure != nil && (outcome == RunError || outcome == RunTimeout) {
		failure, err := json.Marshal(r.Failure)
		if err == nil {
			add("error", failure)
		}
	}
	add("end", json.RawMessage(`{"run_id":"`+r.ID+`","status":"`+string(outcome)+`"}`))
	add("metadata", json.RawMessage(`{"status":"run_done","run_id":"`+r.ID+`"}`))
	return last
}

// FrameStore keeps the frames of resumable runs and of threads that somebody follows (reference 10.3, 10.4).
type FrameStore interface {
	// AppendFrames stores frames.
	AppendFrames(ctx context.Context, frames []Frame) Commit
	// Frames returns the kept frames of a run with Seq > after, in order.
	Frames(ctx context.Context, runID string, after int64, limit int) ([]Frame, error)
	// ThreadFrames returns the kept frames of a thread whose FramePosition is greater than after, in the order of their ids.
	ThreadFrames(ctx context.Context, threadID string, after int64, limit int) ([]Frame, error)
	// GoneThread returns what is left of the thread of a temporary run that has ended, its id and its metadata, as long as
	// the run's frames are kept; CodeNotFound "Run not found" without.
	GoneThread(ctx context.Context, runID string) (Thread, error)
	// LastFrame returns the greatest id of a thread's kept frames, with "" of all threads'; "" = none is kept.
	LastFrame(ctx context.Context, threadID string) (id string, err error)
	// DropFrames removes the frames of runs that ended before the given time.
	DropFrames(ctx context.Context, endedBefore time.Time) error

	// FollowThreads records that somebody follows the streams of threads until then; it never shortens. Runs claimed
	// meanwhile have Run.Followed. Returned are the ids that no thread has.
	FollowThreads(ctx context.Context, threadIDs []string, until time.Time) (gone []string, err error)
}
