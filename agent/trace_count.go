package agent

import (
	"context"
	"time"
)

// TraceCount is how many traces a deployment made in one interval (spec 4.5). A trace is a run that a worker began to
// execute; it counts once, in the transaction that writes its terminal state, whatever that state is.
type TraceCount struct {
	Seq         int64 // names the count for ever; never used again by the store it is from
	From, To    time.Time
	First, Last time.Time // when the first and the last of them ended
	Traces      int64
}

// TraceCounts keeps the counts of a deployment until they are billed. A count that was once returned never changes: what
// ends later makes another one, so that whoever reads counts again after a crash reads the same.
type TraceCounts interface {
	// SealCounts closes the intervals that ended at or before now and returns up to limit closed counts that are not
	// dropped, oldest first.
	SealCounts(ctx context.Context, now time.Time, limit int) ([]TraceCount, error)
	// DropCounts removes counts that need not be returned again; unknown ones are no error.
	DropCounts(ctx context.Context, seqs []int64) error
}
