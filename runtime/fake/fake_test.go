package fake_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/runtime/fake"
	"github.com/slipway-dev/slipway/runtime/runtimetest"
)

func TestFakePassesTheSuite(t *testing.T) {
	t.Parallel()
	runtimetest.Run(t, func(t *testing.T) runtimetest.Harness {
		h := &harness{rt: fake.New(time.Now, nil)}
		t.Cleanup(func() { h.rt.Close() })
		return h
	})
}

type harness struct {
	rt   *fake.Runtime
	made int
}

func (h *harness) Runtime() slipway.Runtime             { return h.rt }
func (h *harness) Restart(*testing.T)                   { h.rt = h.rt.Restart() }
func (h *harness) Kill(_ *testing.T, revisionID string) { h.rt.Exit(revisionID, -1) }
func (h *harness) HasData(deploymentID string) bool     { return h.rt.HasData(deploymentID) }

func (h *harness) Workload(_ *testing.T, deploymentID string, kind runtimetest.Kind) slipway.Workload {
	h.made++
	id := fmt.Sprintf("r%d", h.made)
	switch kind {
	case runtimetest.Crashing:
		h.rt.SetScript(id, fake.Script{ExitCode: 3, Lines: []string{"boom"}})
	case runtimetest.Hopeless:
		h.rt.SetScript(id, fake.Script{Failure: `graph "agent" cannot be loaded: no module named nope`})
	case runtimetest.Stubborn:
		h.rt.SetScript(id, fake.Script{Stubborn: true})
	case runtimetest.Invalid:
		h.rt.FailEnsure(id, slipway.Errorf(slipway.CodeInvalid, "no artifact"))
	}
	return slipway.Workload{DeploymentID: deploymentID, Name: "desk", Blueprint: slipway.Blueprint{RevisionID: id}}
}
