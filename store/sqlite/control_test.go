package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/store/sqlite"
	"github.com/slipway-dev/slipway/store/storetest"
)

func TestControlStore(t *testing.T) {
	t.Parallel()
	storetest.RunControl(t, func(t *testing.T) slipway.Store {
		s, err := sqlite.OpenControl(filepath.Join(t.TempDir(), "control.db"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	})
}
