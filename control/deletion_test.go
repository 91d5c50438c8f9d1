package control_test

import (
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/control"
)

const retention = 168 * time.Hour // of controltest's service

func (w *world) gone() {
	w.t.Helper()
	d := w.desired()
	must(w.t, 0, w.Report(w.t.Context(), slipway.Report{DeploymentID: d.DeploymentID, Generation: d.Generation, Gone: true}))
}

func (w *world) sweep() time.Time {
	w.t.Helper()
	next, err := w.Sweep(w.t.Context())
	return must(w.t, next, err)
}

// deleted returns the only deployment that can be restored.
func (w *world) deleted() control.Deployment {
	w.t.Helper()
	list, err := w.List(w.t.Context(), w.Admin, slipway.DeploymentQuery{Statuses: []string{string(slipway.DeploymentAwaitingDelete)}})
	must(w.t, 0, err)
	if len(list) != 1 {
		w.t.Fatalf("%d deleted deployments, want 1", len(list))
	}
	return list[0]
}

func TestDeletedDeploymentIsKeptThenPurged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.create()
	w.deploy()
	job := w.patch(d.ID).LatestRevisionID
	must(t, 0, w.Delete(t.Context(), w.Admin, d.ID, control.Deletion{}))
	if got := w.desired(); !got.Retired || got.Deleted || got.Active != nil || got.Candidate != nil {
		t.Errorf("desired = %+v, want it retired: no workload, the data kept", got)
	}
	if _, err := w.Revision(t.Context(), w.Admin, d.ID, job); slipway.ErrorCode(err) != slipway.CodeNotFound {
		t.Errorf("revision of a deleted deployment: %v, want CodeNotFound", err)
	}
	w.gone()
	if kept := w.deleted(); kept.TornDownAt.IsZero() || len(kept.Secrets) != 2 {
		t.Errorf("kept = %+v, want it torn down with its secrets", kept)
	}
	if next := w.sweep(); !next.Equal(w.deleted().PurgeAt) {
		t.Errorf("next = %s, want %s", next, w.deleted().PurgeAt)
	}
	w.Advance(retention - time.Minute)
	w.sweep()
	if got := w.desired(); got.Deleted {
		t.Fatal("purged before its time")
	}
	w.Advance(time.Minute)
	if next := w.sweep(); !next.IsZero() {
		t.Errorf("next = %s, want nothing to wait for", next)
	}
	if got := w.desired(); !got.Deleted || got.Retired {
		t.Fatalf("desired = %+v, want its data destroyed", got)
	}
	w.gone()
	if again := w.create(); again.ID == d.ID {
		t.Error("the name was not free again")
	}
}

func TestRestoreBringsTheActiveRevisionBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.create()
	first := w.deploy()
	w.patch(d.ID)
	must(t, 0, w.Delete(t.Context(), w.Admin, d.ID, control.Deletion{}))
	w.gone()
	back, err := w.Restore(t.Context(), w.Admin, d.ID)
	must(t, 0, err)
	if back.Status != slipway.DeploymentReady || back.ActiveRevisionID != first || !back.DeletedAt.IsZero() || !back.PurgeAt.IsZero() {
		t.Errorf("restored = %+v", back.Deployment)
	}
	got := w.desired()
	if got.Retired || got.Deleted || got.Active == nil || got.Active.RevisionID != first || got.Candidate != nil {
		t.Errorf("desired = %+v, want the active revision alone", got)
	}
	if got.Active.Env["TOKEN"] != canary {
		t.Error("the secrets did not come back")
	}
	w.Advance(2 * retention)
	w.sweep()
	if w.desired().Deleted {
		t.Error("a restored deployment was purged")
	}
	if _, err := w.Restore(t.Context(), w.Admin, d.ID); slipway.ErrorCode(err) != slipway.CodeBadRequest {
		t.Errorf("restore of a living deployment: %v, want CodeBadRequest", err)
	}
	project, err := w.TracingProject(t.Context(), w.Admin, back.TracingProjectID)
	if err != nil || project.DeploymentID != d.ID {
		t.Errorf("tracing project = %+v, %v; want it bound again", project, err)
	}
}

func TestPurgeIsFinal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.create()
	if err := w.Purge(t.Context(), w.Admin, d.ID); slipway.ErrorCode(err) != slipway.CodeBadRequest {
		t.Errorf("purge of a living deployment: %v, want CodeBadRequest", err)
	}
	must(t, 0, w.Delete(t.Context(), w.Admin, d.ID, control.Deletion{}))
	for range 2 {
		must(t, 0, w.Purge(t.Context(), w.Admin, d.ID))
	}
	if _, err := w.Restore(t.Context(), w.Admin, d.ID); slipway.ErrorCode(err) != slipway.CodeBadRequest {
		t.Errorf("restore of a purged deployment: %v, want CodeBadRequest", err)
	}
	if !w.desired().Deleted {
		t.Error("its data is to stay")
	}
	w.gone()
	w.create()
}

func TestAStaleGoneDoesNotEndARestoredDeployment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.create()
	w.deploy()
	must(t, 0, w.Delete(t.Context(), w.Admin, d.ID, control.Deletion{}))
	retired := w.desired()
	_, err := w.Restore(t.Context(), w.Admin, d.ID)
	must(t, 0, err)
	err = w.Report(t.Context(), slipway.Report{DeploymentID: d.ID, Generation: retired.Generation, Gone: true})
	if slipway.ErrorCode(err) != slipway.CodeStale {
		t.Errorf("report = %v, want CodeStale", err)
	}
}

func TestDeleteAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.create()
	unknown := w.NextID()
	if _, err := w.DeleteAll(t.Context(), w.Admin, []string{unknown}); slipway.ErrorCode(err) != slipway.CodeNotFound {
		t.Errorf("none exists: %v, want CodeNotFound", err)
	}
	got, err := w.DeleteAll(t.Context(), w.Admin, []string{unknown, d.ID, d.ID})
	must(t, 0, err)
	if len(got.Deleted) != 1 || len(got.Failed) != 1 || got.Failed[0].ID != unknown || got.Failed[0].Detail != "Deployment ID "+unknown+" not found." {
		t.Errorf("result = %+v", got)
	}
	w.deleted()
}
