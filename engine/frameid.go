package engine

import (
	"math"
	"strconv"
	"strings"
	"sync"
	"time"
)

// idClock makes frame ids "<unix ms>-<n>" that rise strictly within this process, also when the clock goes back.
type idClock struct {
	mu sync.Mutex
	ms int64
	n  int64
}

func (c *idClock) next(now time.Time) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ms := now.UnixMilli(); ms > c.ms {
		c.ms, c.n = ms, 0
	} else {
		c.n++
	}
	return strconv.FormatInt(c.ms, 10) + "-" + strconv.FormatInt(c.n, 10)
}

// after makes the next id greater than id.
func (c *idClock) after(id string) {
	ms, n := splitID(id)
	c.mu.Lock()
	defer c.mu.Unlock()
	if ms > c.ms || (ms == c.ms && n > c.n) {
		c.ms, c.n = ms, n
	}
}

// idUntil is an id greater than any made before a moment's millisecond.
func idUntil(t time.Time) string {
	return strconv.FormatInt(t.UnixMilli()-1, 10) + "-" + strconv.FormatInt(math.MaxInt64, 10)
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

func splitID(id string) (ms, n int64) {
	a, b, _ := strings.Cut(id, "-")
	ms, _ = strconv.ParseInt(a, 10, 64)
	n, _ = strconv.ParseInt(b, 10, 64)
	return ms, n
}

func idAfter(id, other string) bool {
	am, an := splitID(id)
	bm, bn := splitID(other)
	return am > bm || (am == bm && an > bn)
}
