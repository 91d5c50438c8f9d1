package postgres_test

import (
	"os"
	"testing"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/store/postgres"
	"github.com/slipway-dev/slipway/store/postgres/pgtest"
	"github.com/slipway-dev/slipway/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

func openControl(t testing.TB, url string) *postgres.ControlStore {
	t.Helper()
	s, err := postgres.OpenControl(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func openAgent(t testing.TB, url, schema string) *postgres.AgentStore {
	t.Helper()
	s, err := postgres.OpenAgent(t.Context(), url, schema)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestControlStore(t *testing.T) {
	t.Parallel()
	storetest.RunControl(t, func(t *testing.T) slipway.Store { return openControl(t, pgtest.URL(t)) })
}

func TestAgentStore(t *testing.T) {
	t.Parallel()
	storetest.RunAgent(t, func(t *testing.T) agent.Store { return openAgent(t, pgtest.URL(t), "agent_test") })
}
