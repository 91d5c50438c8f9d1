package supervise

import (
	"strings"
	"sync"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/worker/wire"
)

// maxCached bounds the bytes a cache holds; beyond it everything is forgotten, which costs only time.
const maxCached = 256 << 20

// cache keeps the results of cached nodes, shared by all workers of one language (reference 15).
type cache struct {
	clock slipway.Clock
	mu    sync.Mutex
	size  int
	spots map[string]cached
}

type cached struct {
	namespace string
	kind      string
	bytes     []byte
	until     time.Time // zero = for good
}

func newCache(clock slipway.Clock) *cache { return &cache{clock: clock, spots: map[string]cached{}} }

func (c *cache) apply(op wire.Op, payload []byte) (map[string]any, []byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch op.Op {
	case "cache.get":
		hits, bytes := c.get(op.Keys)
		return map[string]any{"hits": hits}, bytes, nil
	case "cache.set":
		return nil, nil, c.set(op.Entries, payload)
	}
	c.clear(op.Namespaces)
	return nil, nil, nil
}

func (c *cache) get(keys []wire.CacheKey) ([]map[string]any, []byte) {
	hits, now := []map[string]any{}, c.clock()
	var payload []byte
	for i, k := range keys {
		spot, ok := c.spots[place(k.Namespace, k.Key)]
		if !ok || (!spot.until.IsZero() && !now.Before(spot.until)) {
			continue
		}
		hits = append(hits, map[string]any{"index": i, "type": spot.kind, "size": len(spot.bytes)})
		payload = append(payload, spot.bytes...)
	}
	return hits, payload
}

func (c *cache) set(entries []wire.CacheEntry, payload []byte) error {
	for _, e := range entries {
		b, err := wire.Cut(&payload, e.Size)
		if err != nil {
			return err
		}
		spot := cached{namespace: strings.Join(e.Namespace, "\x00"), kind: e.Type, bytes: b}
		if e.TTL != nil {
			spot.until = c.clock().Add(time.Duration(*e.TTL * float64(time.Second)))
		}
		if c.size += len(b); c.size > maxCached {
			clear(c.spots)
			c.size = len(b)
		}
		c.spots[place(e.Namespace, e.Key)] = spot
	}
	return nil
}

// clear forgets the entries of exactly these namespaces; nil = all.
func (c *cache) clear(namespaces [][]string) {
	if namespaces == nil {
		clear(c.spots)
		c.size = 0
		return
	}
	for _, n := range namespaces {
		for at, spot := range c.spots {
			if spot.namespace == strings.Join(n, "\x00") {
				c.size -= len(spot.bytes)
				delete(c.spots, at)
			}
		}
	}
}

func place(namespace []string, key string) string {
	return strings.Join(namespace, "\x00") + "\x01" + key
}
