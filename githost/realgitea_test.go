//go:build realgitea

package githost_test

import (
	"os"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/githost"
	"github.com/slipway-dev/slipway/githost/githosttest"
)

// TestRealGitea runs the suite against the Gitea that `make test-githost` built.
func TestRealGitea(t *testing.T) {
	g := githosttest.StartGitea(t, os.Getenv("GITEA"), os.Getenv("GITEA_STATIC"))
	t.Run("suite", func(t *testing.T) {
		githosttest.Run(t, func(t *testing.T) *githosttest.World { return g.NewAccount(t).World(t, githost.New(time.Now)) })
	})
}
