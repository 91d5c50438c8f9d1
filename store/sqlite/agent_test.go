package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/seal"
	"github.com/slipway-dev/slipway/store/sqlite"
	"github.com/slipway-dev/slipway/store/storetest"
)

func openAgent(t testing.TB, path string) *sqlite.AgentStore {
	t.Helper()
	s, err := sqlite.OpenAgent(path)
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

// What is asked of the store is asked of one that encrypts.
func TestAgentStoreThatEncrypts(t *testing.T) {
	t.Parallel()
	cipher, err := seal.NewValues([]byte("0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	storetest.RunAgent(t, func(t *testing.T) agent.Store {
		s := openAgent(t, filepath.Join(t.TempDir(), "agent.db"))
		s.SealWith(cipher)
		return s
	})
}

func TestAgentStore(t *testing.T) {
	t.Parallel()
	storetest.RunAgent(t, func(t *testing.T) agent.Store { return openAgent(t, filepath.Join(t.TempDir(), "agent.db")) })
}
