package control_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/control"
	"github.com/slipway-dev/slipway/control/controltest"
	"github.com/slipway-dev/slipway/seal"
	"github.com/slipway-dev/slipway/store/sqlite"
)

// lostKey is a sealer that cannot open what it sealed for one deployment, as after its master key was replaced.
type lostKey struct {
	*seal.Key
	deployment atomic.Value
}

func (k *lostKey) Open(tenantID, deploymentID, name string, sealed []byte) (string, error) {
	if deploymentID == k.deployment.Load() {
		return "", seal.ErrSealed
	}
	return k.Key.Open(tenantID, deploymentID, name, sealed)
}

func newSealedWorld(t *testing.T) (*world, *lostKey) {
	t.Helper()
	store, err := sqlite.OpenControl(filepath.Join(t.TempDir(), "control.db"))
	must(t, 0, err)
	t.Cleanup(func() { _ = store.Close() })
	key, err := seal.New(bytes.Repeat([]byte{7}, seal.KeySize))
	must(t, 0, err)
	sealer := &lostKey{Key: key}
	return &world{controltest.New(t, store, sealer, "http://slipway.test"), t}, sealer
}

func (w *world) createNamed(name string) control.Deployment {
	w.t.Helper()
	d, err := w.Create(w.t.Context(), w.Admin, slipway.DeploymentCreate{
		Name: name, Source: slipway.SourceGithost, SourceConfig: slipway.SourceConfig{RepoURL: p("https://example.com/a/b")},
		SourceRevisionConfig: slipway.SourceRevisionConfig{AgentgraphConfigPath: p("agentgraph.json")},
		Secrets:              []slipway.Secret{{Name: "TOKEN", Value: canary}},
	})
	return must(w.t, d, err)
}

func TestSecretsThatCannotBeOpenedFailTheirOwnBuildOnly(t *testing.T) {
	t.Parallel()
	w, key := newSealedWorld(t)
	broken, fine := w.createNamed("broken"), w.createNamed("fine")
	key.deployment.Store(broken.ID)
	if job := w.claim("b"); job.DeploymentID != fine.ID {
		t.Fatalf("the build of %s was handed out, want that of the other deployment", job.Name)
	}
	r, err := w.Revision(t.Context(), w.Admin, broken.ID, broken.LatestRevisionID)
	must(t, 0, err)
	if r.Status != slipway.BuildFailed || !strings.Contains(r.StatusReason, "TOKEN") || !strings.Contains(r.StatusReason, "master key") {
		t.Errorf("revision = %s %q, want BUILD_FAILED with the secret and the remedy", r.Status, r.StatusReason)
	}
}

func TestSecretsThatCannotBeOpenedBreakTheirOwnBlueprintOnly(t *testing.T) {
	t.Parallel()
	w, key := newSealedWorld(t)
	broken, fine := w.createNamed("broken"), w.createNamed("fine")
	w.complete(w.claim("b"))
	w.complete(w.claim("b"))
	key.deployment.Store(broken.ID)
	state, err := w.Desired(t.Context(), "")
	must(t, 0, err)
	for _, d := range state.Deployments {
		switch b := d.Candidate; {
		case d.DeploymentID == fine.ID && (b.Broken != "" || b.Env["TOKEN"] != canary):
			t.Errorf("the other deployment's blueprint = %+v", b)
		case d.DeploymentID == broken.ID && (!strings.Contains(b.Broken, "TOKEN") || b.Env != nil):
			t.Errorf("the broken blueprint = %+v, want the secret named and no environment", b)
		}
	}
	// a revision that needs the lost values is not made, and says why
	failed, err := w.Redeploy(t.Context(), w.Admin, broken.ID, broken.LatestRevisionID)
	must(t, 0, err)
	r, err := w.Revision(t.Context(), w.Admin, broken.ID, failed.LatestRevisionID)
	must(t, 0, err)
	if r.Status != slipway.CreateFailed || !strings.Contains(r.StatusReason, "TOKEN") {
		t.Errorf("revision = %s %q, want CREATE_FAILED with the secret", r.Status, r.StatusReason)
	}
	// setting the secret again mends it
	_, err = w.Patch(t.Context(), w.Admin, broken.ID, slipway.DeploymentPatch{Secrets: &[]slipway.Secret{{Name: "TOKEN", Value: "new"}}})
	must(t, 0, err)
}

func TestTheTracingProjectOutlivesItsDeploymentUnlessAskedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.create()
	again := func(how control.Deletion, id string) control.Deployment {
		must(t, 0, w.Delete(t.Context(), w.Admin, id, how))
		must(t, 0, w.Delete(t.Context(), w.Admin, id, control.Deletion{Force: true}))
		return w.create()
	}
	second := again(control.Deletion{}, first.ID)
	if second.TracingProjectID != first.TracingProjectID {
		t.Errorf("the tracing project went with its deployment, though nobody asked for that")
	}
	if third := again(control.Deletion{TracingProject: true}, second.ID); third.TracingProjectID == second.TracingProjectID {
		t.Errorf("the tracing project stayed, though it was to go")
	}
}
