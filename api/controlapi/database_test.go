package controlapi_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/api/controlapi"
	"github.com/slipway-dev/slipway/control"
	"github.com/slipway-dev/slipway/control/controltest"
	"github.com/slipway-dev/slipway/seal"
	"github.com/slipway-dev/slipway/store/postgres"
	"github.com/slipway-dev/slipway/store/postgres/pgtest"
	"github.com/slipway-dev/slipway/store/sqlite"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// newRealServer is a server on a real database that serves every source.
func newRealServer(t *testing.T, database string) *server {
	t.Helper()
	var store interface {
		slipway.Store
		Close() error
	}
	var err error
	if database == "postgres" {
		store, err = postgres.OpenControl(t.Context(), pgtest.URL(t))
	} else {
		store, err = sqlite.OpenControl(filepath.Join(t.TempDir(), "control.db"))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	key, err := seal.New(bytes.Repeat([]byte{7}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	w := controltest.New(t, store, key, base, func(c *control.Config) { c.Sources = append(c.Sources, slipway.SourceExternalContainer) })
	return &server{World: w, t: t, handler: controlapi.New(w.Service, controlapi.Config{BaseURL: base, Version: "test", Log: slog.New(slog.DiscardHandler)})}
}
