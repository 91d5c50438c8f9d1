package intake

import (
	"fmt"
	"net/netip"
	"sync"
	"time"
)

// TooMany says that an address or a licence makes too many requests.
type TooMany struct {
	Who   string        // "address" or "licence"
	Rate  int           // requests allowed
	In    time.Duration // within this time
	After time.Duration // when the next one is allowed
}

// Error says what to do.
func (e *TooMany) Error() string {
	return fmt.Sprintf("this %s has made %d requests in %.0f s, which is all it may; send again after %.0f s, with more in one request", e.Who, e.Rate, e.In.Seconds(), e.After.Seconds())
}

const (
	slots = 10 // parts of a window
	// maxCounted bounds the memory of a limiter; further names share one count.
	maxCounted = 100_000
)

// limiter counts requests by name in a sliding window.
type limiter struct {
	rate   int
	window time.Duration

	mu     sync.Mutex
	counts map[string]*window
	swept  int64 // slot of the last sweep
}

// window holds the counts of the last slots, the newest of which is number last.
type window struct {
	last int64
	n    [slots]int
}

func newLimiter(rate int, w time.Duration) *limiter {
	return &limiter{rate: rate, window: w, counts: map[string]*window{}}
}

// take counts a request, or returns *TooMany.
func (l *limiter) take(name, who string, now time.Time) error {
	slot := now.UnixNano() / int64(l.window/slots)
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.find(name, slot)
	w.forward(slot)
	sum, oldest := 0, slot
	for back := int64(0); back < slots; back++ {
		if n := w.n[(slot-back)%slots]; n > 0 {
			sum, oldest = sum+n, slot-back
		}
	}
	if sum < l.rate {
		w.n[slot%slots]++
		return nil
	}
	free := time.Unix(0, (oldest+slots)*int64(l.window/slots)).Sub(now)
	return &TooMany{Who: who, Rate: l.rate, In: l.window, After: max(free, time.Second).Round(time.Second)}
}

// find returns the window of a name, making it if there is room.
func (l *limiter) find(name string, slot int64) *window {
	if w, ok := l.counts[name]; ok {
		return w
	}
	if len(l.counts) >= maxCounted {
		l.forget(slot)
	}
	if len(l.counts) >= maxCounted {
		name = ""
	}
	w := l.counts[name]
	if w == nil {
		w = &window{last: slot}
		l.counts[name] = w
	}
	return w
}

// forget drops windows that have passed, at most once a slot.
func (l *limiter) forget(slot int64) {
	if slot == l.swept {
		return
	}
	l.swept = slot
	for name, w := range l.counts {
		if slot-w.last >= slots {
			delete(l.counts, name)
		}
	}
}

// forward empties the slots that have passed since the last request. A clock that goes back counts into the newest slot.
func (w *window) forward(slot int64) {
	if slot-w.last >= slots {
		w.n = [slots]int{}
	} else {
		for s := w.last + 1; s <= slot; s++ {
			w.n[s%slots] = 0
		}
	}
	w.last = max(slot, w.last)
}

// Address counts a request of an address, or returns *TooMany. The addresses of one IPv6 network count as one: whoever has
// one has them all.
func (s *Service) Address(addr netip.Addr) error {
	addr = addr.Unmap()
	if addr.Is6() {
		if network, err := addr.WithZone("").Prefix(64); err == nil {
			addr = network.Addr()
		}
	}
	err := s.addresses.take(addr.String(), "address", s.cfg.Now())
	if err != nil {
		s.stats.limited.Add(1)
	}
	return err
}
