package engine

import (
	"sync/atomic"
	"time"
)

// Histogram is how often something took how long, in milliseconds.
type Histogram struct {
	Count uint64
	Sum   float64
	// Buckets holds, for each bound of LatencyBounds, how many took at most so long.
	Buckets map[float64]uint64
}

// LatencyBounds are the upper bounds of all histograms, in milliseconds.
func LatencyBounds() []float64 {
	return []float64{1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000, 300000, 1800000}
}

// histogram counts durations; it is safe for concurrent use and takes no lock.
type histogram struct {
	bounds  []float64
	buckets []atomic.Uint64 // one more than bounds
	micros  atomic.Int64
}

func newHistogram() *histogram {
	bounds := LatencyBounds()
	return &histogram{bounds: bounds, buckets: make([]atomic.Uint64, len(bounds)+1)}
}

func (h *histogram) observe(d time.Duration) {
	d = max(d, 0)
	ms, i := float64(d)/float64(time.Millisecond), 0
	for i < len(h.bounds) && ms > h.bounds[i] {
		i++
	}
	h.buckets[i].Add(1)
	h.micros.Add(d.Microseconds())
}

func (h *histogram) snapshot() Histogram {
	s := Histogram{Buckets: make(map[float64]uint64, len(h.bounds)), Sum: float64(h.micros.Load()) / 1000}
	for i := range h.buckets {
		s.Count += h.buckets[i].Load()
		if i < len(h.bounds) {
			s.Buckets[h.bounds[i]] = s.Count
		}
	}
	return s
}
