package postgres_test

import (
	"testing"

	"github.com/slipway-dev/slipway/beacon"
	"github.com/slipway-dev/slipway/store/postgres"
	"github.com/slipway-dev/slipway/store/postgres/pgtest"
	"github.com/slipway-dev/slipway/store/storetest"
)

func TestBeaconStore(t *testing.T) {
	t.Parallel()
	storetest.RunBeacon(t, func(t *testing.T) beacon.Store {
		s, err := postgres.OpenBeacon(t.Context(), pgtest.URL(t))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		return s
	})
}
