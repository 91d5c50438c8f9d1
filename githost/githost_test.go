package githost_test

import (
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/githost"
	"github.com/slipway-dev/slipway/githost/githosttest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	for _, kind := range slipway.HostKinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			githosttest.Run(t, func(t *testing.T) *githosttest.World { return githosttest.Scripted(t, kind, githost.New(time.Now)) })
		})
	}
}
