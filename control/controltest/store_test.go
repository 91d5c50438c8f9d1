package controltest_test

import (
	"testing"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/control/controltest"
	"github.com/slipway-dev/slipway/store/storetest"
)

// The store in memory keeps the access records by the same rules as the databases.
func TestAccessRecords(t *testing.T) {
	t.Parallel()
	storetest.RunAccess(t, func(*testing.T) slipway.Store { return controltest.NewStore() })
}
