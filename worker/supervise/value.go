package supervise

import (
	"context"
	"encoding/json"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/worker/wire"
)

// keptValue answers value.get; null where there is none.
func (l *link) keptValue(ctx context.Context, op wire.Op) (map[string]any, []byte, error) {
	value, err := l.pool.store.KeptValue(ctx, op.Key, l.pool.clock())
	if err != nil {
		return nil, nil, err
	}
	if value == nil {
		value = json.RawMessage("null")
	}
	return map[string]any{"value": value}, nil, nil
}

// keepValue carries out value.set; without a ttl, or with a longer one, a value lives a day.
func (l *link) keepValue(ctx context.Context, op wire.Op) error {
	switch {
	case op.Key == "" || len(op.Key) > agent.MaxValueKey:
		return slipway.Errorf(slipway.CodeInvalid, "the key of a cached value has %d bytes; use 1 to %d", len(op.Key), agent.MaxValueKey)
	case len(op.Value) > agent.MaxValue:
		return slipway.Errorf(slipway.CodeInvalid, "the cached value %q has %d bytes; %d is the limit", op.Key, len(op.Value), agent.MaxValue)
	case op.TTL != nil && !(*op.TTL > 0):
		return slipway.Errorf(slipway.CodeInvalid, "the ttl of the cached value %q is %v; give seconds above 0", op.Key, *op.TTL)
	}
	life := agent.MaxValueLife
	if op.TTL != nil && *op.TTL < life.Seconds() {
		life = time.Duration(*op.TTL * float64(time.Second))
	}
	if len(op.Value) == 0 {
		op.Value = json.RawMessage("null")
	}
	return l.pool.store.KeepValue(ctx, op.Key, op.Value, l.pool.clock().Add(life))
}
