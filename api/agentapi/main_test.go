package agentapi_test

import (
	"os"
	"testing"

	"github.com/slipway-dev/slipway/store/postgres/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }
