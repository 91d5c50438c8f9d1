package postgres_test

import (
	"testing"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/store/postgres/pgtest"
	"github.com/slipway-dev/slipway/store/storetest"
)

func BenchmarkControl(b *testing.B) {
	storetest.BenchControl(b, func(b *testing.B) slipway.Store {
		b.Helper()
		return openControl(b, pgtest.URL(b))
	})
}
