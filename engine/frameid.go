package engine

import (
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
