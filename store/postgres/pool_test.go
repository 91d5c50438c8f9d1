package postgres_test

import (
	"sync"
	"testing"

	"github.com/slipway-dev/slipway/store/postgres/pgtest"
)

// A hundred reads at once need no more connections than there may be, and who waited is counted.
func TestPoolStats(t *testing.T) {
	t.Parallel()
	s := openAgent(t, pgtest.URL(t), "agent_pool")
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			if _, err := s.Queue(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if p := s.Pool(); p.Max < 2 || p.Size < 1 || p.Size > p.Max || p.Queued == 0 || p.Errors != 0 {
		t.Errorf("got %+v", p)
	}
}
