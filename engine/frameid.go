package engine

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/agent"
)

// idClock makes frame ids "<unix ms>-<n>" that rise strictly within this process, also when the clock goes back.
type idClock struct {
	mu   sync.Mutex
	last int64 // agent.FramePosition of the last one
}

func (c *idClock) next(now time.Time) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = max(c.last+1, now.UnixMilli()*agent.FrameSteps)
	return agent.FrameID(c.last)
}

// after makes the next id greater than id.
func (c *idClock) after(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = max(c.last, agent.FramePosition(id))
}

// idUntil is an id greater than any made before a moment's millisecond.
func idUntil(t time.Time) string {
	return agent.FrameID(t.UnixMilli()*agent.FrameSteps - 1)
}

// checkpointTime reads the time out of a checkpoint id, a UUIDv6 (reference 1): 60 bits of 100 ns since 1582-10-15.
func checkpointTime(id string) (time.Time, bool) {
	hex := strings.ReplaceAll(id, "-", "")
	if len(hex) != 32 || hex[12] != '6' {
		return time.Time{}, false
	}
	ticks, err := strconv.ParseInt(hex[:12]+hex[13:16], 16, 64)
	if err != nil {
		return time.Time{}, false
	}
	const gregorian = 122192928000000000 // ticks from 1582-10-15 to 1970
	return time.UnixMicro((ticks - gregorian) / 10), true
}

func idAfter(id, other string) bool { return agent.FramePosition(id) > agent.FramePosition(other) }
