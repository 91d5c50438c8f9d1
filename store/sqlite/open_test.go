package sqlite_test

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/slipway-dev/slipway/store/sqlite"
)

func TestConcurrentOpenOfANewFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "agent.db")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			s, err := sqlite.OpenAgent(path)
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
