package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/slipway-dev/slipway/beacon"
	"github.com/slipway-dev/slipway/store/sqlite"
	"github.com/slipway-dev/slipway/store/storetest"
)

func TestBeaconStore(t *testing.T) {
	t.Parallel()
	storetest.RunBeacon(t, func(t *testing.T) beacon.Store {
		s, err := sqlite.OpenBeacon(filepath.Join(t.TempDir(), "collector.db"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	})
}
