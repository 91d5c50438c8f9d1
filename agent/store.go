package agent

import (
	"context"
	"encoding/json"
	"time"
)

// Commit is a write on its way to the disk.
type Commit interface {
	// Wait returns once the write is durable, or with the error that kept it from being applied. Until somebody waits, or a
	// later write or read needs it, it may linger for a few milliseconds to share its way to the disk with others.
	Wait(ctx context.Context) error
	// Watch is Wait for those who have time: it does not hurry the write.
	Watch(ctx context.Context) error
}

// Fence names the claim a write belongs to; a write whose epoch is not the run's current one, or whose run is no longer
// running, fails with CodeStale. The zero Fence is for writes outside any run and always holds.
type Fence struct {
	RunID string
	Epoch int64
}

// Store keeps everything of one deployment. Writes are applied in the order in which the calls were made (calls that
// return a Commit: enqueued) and grouped into few transactions; every method but those returning a Commit is durable when
// it returns. Reads see every write of calls that were made before. Times come in as arguments. Implementations pass
// store/storetest. Missing threads and runs are CodeNotFound with the texts of the reference (section 1).
type Store interface {
	AssistantStore
	CronStore
	NoticeStore
	ValueStore
	FrameStore
	QueueStore
	VectorStore

	// CreateThread inserts a thread. If it exists: CodeConflict, or with reuse the stored one.
	CreateThread(ctx context.Context, t Thread, reuse bool) (Thread, error)
	Thread(ctx context.Context, id string) (Thread, error)
	Threads(ctx context.Context, q ThreadQuery) ([]Thread, error)
	CountThreads(ctx context.Context, q ThreadQuery) (int, error)
	// PatchThread merges metadata shallowly and, where ttl is not nil, sets the thread's TTL anew.
	PatchThread(ctx context.Context, id string, metadata json.RawMessage, ttl *TTL, now time.Time) (Thread, error)
	// DueThreads returns up to limit threads whose TTL is over, the longest overdue first.
	DueThreads(ctx context.Context, now time.Time, limit int) ([]Thread, error)
	// KeepLatest carries out a keep_latest TTL that is over: the thread keeps its latest checkpoint per namespace and what
	// delta channels need. It does nothing if the TTL was armed again meanwhile.
	KeepLatest(ctx context.Context, id string, now time.Time) error
	// Storage measures a thread.
	Storage(ctx context.Context, id string) (Storage, error)
	// DeleteThread removes the thread with runs, checkpoints, blobs, writes and frames. In-flight runs are cancelled by the
	// engine before; CodeConflict while one is running.
	DeleteThread(ctx context.Context, id string) error
	// CopyThread copies metadata, config, state and the complete checkpoint chain to a new id (reference 3).
	CopyThread(ctx context.Context, id, newID string, now time.Time) (Thread, error)
	// PutState stores the snapshot of a state update and recomputes the thread's row (reference 17.2).
	// CodeConflict "Thread <id> has in-flight runs" while runs are pending or running.
	PutState(ctx context.Context, threadID, graphID string, s Snapshot, now time.Time) (Thread, error)

	// PatchState merges metadata shallowly into that of the latest root checkpoint and into the thread's state, and returns
	// the checkpoint's address. CodeNotFound without a checkpoint.
	PatchState(ctx context.Context, threadID string, metadata json.RawMessage, now time.Time) (CheckpointKey, error)

	// Admit records a new run in one transaction (reference 17.5, 4.2): the thread is created if asked for, the multitask
	// rule is decided, cancels of other runs are recorded, the row is inserted, the thread becomes busy.
	Admit(ctx context.Context, a Admission) (Admitted, error)
	// AdmitAll is Admit for several runs in one transaction: all of them or none.
	AdmitAll(ctx context.Context, list []Admission) ([]Admitted, error)
	// Claim makes up to limit due pending runs of these graphs running, in their order, skipping threads that have a
	// running run, and returns them with epoch and attempt raised. next is when the earliest delayed run becomes due,
	// zero without one.
	Claim(ctx context.Context, instance string, graphIDs []string, limit int, now time.Time) (runs []Run, next time.Time, err error)
	// Finish ends a run that its worker has ended: run and thread change in one transaction, fenced. A recorded cancel
	// wins over status. A temporary run's thread goes.
	Finish(ctx context.Context, f Finish) (Finished, error)
	// Requeue gives a running run back: pending again, or error when its attempts are used up (reference 17.4), or what a
	// recorded cancel asks for. With free the attempt does not count.
	Requeue(ctx context.Context, fence Fence, free bool, maxAttempts int, now time.Time) (Finished, error)
	// Cancel records a cancel (reference 17.6). A pending run is ended at once. CodeNotFound "No runs found to cancel" for
	// one that is neither pending nor running.
	Cancel(ctx context.Context, threadID, runID string, action CancelAction, reason string, now time.Time) (Finished, error)
	// Run returns a run; ThreadID "" = of whichever thread.
	Run(ctx context.Context, threadID, runID string) (Run, error)
	Runs(ctx context.Context, q RunQuery) ([]Run, error)
	// InFlight returns the pending and running runs: of a thread, or with "" of all, oldest first.
	InFlight(ctx context.Context, threadID string) ([]Run, error)
	// PendingGraphs returns the graphs that pending runs wait for, in order.
	PendingGraphs(ctx context.Context) ([]string, error)
	// DeleteRun removes an ended run with its checkpoints and frames; CodeConflict while it is in flight. A thread that is left
	// without a checkpoint shows no state any more; the state that others leave is for the caller to put (PutState).
	DeleteRun(ctx context.Context, threadID, runID string, now time.Time) error

	// PutCheckpoint stores blobs (each once) and the checkpoint (again = overwrite), in one step (reference 14.4).
	PutCheckpoint(ctx context.Context, f Fence, cp Checkpoint, blobs []ChannelBlob) Commit
	// PutWrites stores pending writes: if all have negative Index they replace, else each is inserted once.
	PutWrites(ctx context.Context, f Fence, key CheckpointKey, writes []Write) Commit
	// Checkpoint returns one checkpoint, nil without error if there is none.
	Checkpoint(ctx context.Context, key CheckpointKey) (*CheckpointTuple, error)
	Checkpoints(ctx context.Context, q CheckpointQuery) ([]CheckpointTuple, error)
	DeleteCheckpoints(ctx context.Context, threadID string) error
	DeleteCheckpointsOfRuns(ctx context.Context, runIDs []string) error
	CopyCheckpoints(ctx context.Context, sourceThread, targetThread string) error
	// PruneCheckpoints keeps the latest checkpoint per namespace (keepLatest) or none, with what delta channels need.
	PruneCheckpoints(ctx context.Context, threadIDs []string, keepLatest bool) error
	DeltaHistory(ctx context.Context, key CheckpointKey, channels []string) ([]DeltaHistory, error)

	// StoreBatch executes the operations in order; later ones see earlier puts (reference 15). A nil RefreshTTL counts as
	// false: ItemRules fills it in.
	StoreBatch(ctx context.Context, ops []StoreOp, now time.Time) ([]StoreResult, error)

	// DropItems removes items whose time to live is over; nobody sees them any more anyway.
	DropItems(ctx context.Context, now time.Time) error

	// Register announces a server instance; it counts as alive until release is called or its process dies.
	Register(ctx context.Context, instance string) (release func() error, err error)
	// Dead returns the registered instances that hold running runs and are not alive.
	Dead(ctx context.Context) ([]string, error)
	// AwaitEnd returns when an instance is not alive any more, or with ctx.
	AwaitEnd(ctx context.Context, instance string) error
	// RunningOf returns the running runs held by an instance.
	RunningOf(ctx context.Context, instance string) ([]Run, error)
}

// Admission is a run to be admitted.
type Admission struct {
	Run Run // complete but for Status, Epoch, Attempt, Instance; CreatedAt may lie in the future
	// CreateThread: make the thread if it is missing (with ThreadMetadata); else a missing one is CodeNotFound.
	CreateThread   bool
	ThreadMetadata json.RawMessage
	// Filter must allow the thread if it exists already; else it is CodeNotFound.
	Filter *Filter
	// ThreadTTL is given to the thread if it is made here; nil = none.
	ThreadTTL *TTL
	// ThreadConfig is laid over the thread's stored config (never the request's configurable, reference 4.2).
	ThreadConfig json.RawMessage
	// ClaimFor, when set, makes the run running at once for that instance, if it is due and the thread is free.
	ClaimFor string
	Now      time.Time
}

// Admitted is the outcome of an Admission. A run refused by `reject` is CodeConflict instead.
type Admitted struct {
	Run     Run // Status running if it was claimed at once
	Thread  Thread
	Cancels []Run // running runs for which a cancel was recorded: their workers must be told
	Ended   []Run // pending runs that the strategy ended at once
}

// Finish is a worker's word on how a run ended.
type Finish struct {
	Fence
	Status   RunStatus // success, error, timeout, or interrupted when it was stopped
	Failure  *Failure
	Snapshot *Snapshot // nil = the run wrote no checkpoint
	// Tail, when set, is where the run's last frames are kept in the same transaction, unless it is rolled back.
	Tail *Tail
	Now  time.Time
}

// Finished is the state after a run changed.
type Finished struct {
	Run     Run       // as it now stands; Status pending after a requeue
	Outcome RunStatus // what streams report: the final status, or rollback when the row is gone; "" if not ended
	Thread  *Thread   // nil if it went with a temporary run
}

// TopicMissed is the topic on which a Bus tells the own process, with an empty message, that messages of others may have
// been lost: its subscribers look into the Store.
const TopicMissed = "missed"

// Bus carries short messages between the server instances of one deployment, the own one included. Delivery is at most
// once and in order per publisher; whoever needs certainty looks into the Store after waking up, and after TopicMissed.
type Bus interface {
	Publish(topic string, payload []byte)
	// Subscribe calls fn for every message of the topic, one at a time, until cancel is called.
	Subscribe(topic string, fn func(payload []byte)) (cancel func())
}
