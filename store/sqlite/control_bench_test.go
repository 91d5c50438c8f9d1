package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/store/sqlite"
	"github.com/slipway-dev/slipway/store/storetest"
)

func BenchmarkControl(b *testing.B) {
	storetest.BenchControl(b, func(b *testing.B) slipway.Store {
		b.Helper()
		store, err := sqlite.OpenControl(filepath.Join(b.TempDir(), "control.db"))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = store.Close() })
		return store
	})
}
