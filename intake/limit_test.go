package intake

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestTheWindowSlides(t *testing.T) {
	t.Parallel()
	l := newLimiter(100, 10*time.Second)
	at := time.Unix(1_000_000_000, 0)
	take := func(n int) (allowed int) {
		for range n {
			if l.take("a", "address", at) == nil {
				allowed++
			}
		}
		return allowed
	}
	if got := take(60); got != 60 {
		t.Errorf("first 60: %d", got)
	}
	at = at.Add(5 * time.Second)
	if got := take(60); got != 40 {
		t.Errorf("5 s later: %d, want 40", got)
	}
	var many *TooMany
	if err := l.take("a", "address", at); !errors.As(err, &many) || many.After != 5*time.Second {
		t.Errorf("got %v, want another try after 5 s", err)
	}
	at = at.Add(many.After)
	if got := take(100); got != 60 {
		t.Errorf("when the first 60 have passed: %d, want 60", got)
	}
	if err := l.take("b", "address", at); err != nil {
		t.Errorf("another name: %v", err)
	}
	at = at.Add(time.Hour)
	if got := take(200); got != 100 {
		t.Errorf("an hour later: %d", got)
	}
	at = at.Add(-time.Hour)
	if got := take(1); got != 0 {
		t.Errorf("a clock that goes back gives %d more", got)
	}
}

func TestTheLimiterIsBounded(t *testing.T) {
	t.Parallel()
	l := newLimiter(10, 10*time.Second)
	at := time.Unix(1_000_000_000, 0)
	for i := range maxCounted {
		_ = l.take(fmt.Sprint(i), "address", at)
	}
	refused := 0
	for i := range 20 {
		if l.take(fmt.Sprint("new", i), "address", at) != nil {
			refused++
		}
	}
	if refused != 10 || len(l.counts) > maxCounted+1 {
		t.Errorf("%d of 20 new names were refused, want 10 (they share one count); %d counts", refused, len(l.counts))
	}
	if err := l.take("newest", "address", at.Add(time.Minute)); err != nil || len(l.counts) > 2 {
		t.Errorf("a minute later: %v with %d counts; want those that have passed forgotten", err, len(l.counts))
	}
}
