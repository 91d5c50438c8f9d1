package agent

import (
	"context"
	"encoding/json"
	"time"
)

// Bounds of kept values.
const (
	MaxValueKey  = 1 << 10        // bytes of a key
	MaxValue     = 8 << 20        // bytes of a value
	MaxValueLife = 24 * time.Hour // how long a value is kept at most
)

// ValueStore keeps what user code puts aside for a while under a key of its own, for all workers and instances of the
// deployment (the module langgraph_api.cache, reference 13).
type ValueStore interface {
	// KeptValue returns a value that is not over at now; nil without error if there is none.
	KeptValue(ctx context.Context, key string, now time.Time) (json.RawMessage, error)
	// KeepValue keeps a value until the given time in place of what the key had.
	KeepValue(ctx context.Context, key string, value json.RawMessage, until time.Time) error
	// DropValues removes values that are over; nobody sees them any more anyway.
	DropValues(ctx context.Context, now time.Time) error
}
