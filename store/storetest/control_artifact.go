package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
)

// Tenants take turns, however many revisions one of them has waiting.
func buildTurns(t *testing.T, s slipway.Store) {
	now := startTime()
	update(t, s, func(tx slipway.Tx) error {
		for i, tenant := range []string{"many", "many", "many", "few"} {
			d := deployment(fmt.Sprint("d", i), fmt.Sprint("n", i), i)
			d.TenantID = tenant
			must(t, tx.PutDeployment(d))
			must(t, tx.PutRevision(slipway.Revision{
				ID: fmt.Sprint("r", i), DeploymentID: d.ID, TenantID: tenant, Number: 1, Status: slipway.AwaitingBuild, CreatedAt: now.Add(time.Duration(i) * time.Second),
			}))
		}
		return nil
	})
	var order []string
	for turn := range 4 {
		update(t, s, func(tx slipway.Tx) error {
			at := now.Add(time.Duration(turn) * time.Minute)
			r, err := tx.ClaimBuild("", at)
			must(t, err)
			order = append(order, r.ID)
			must(t, tx.TakeBuildTurn(r.TenantID, at))
			r.Status = slipway.BuildFailed // at once: only the turns tell whose the next is
			return tx.PutRevision(r)
		})
	}
	equal(t, "order by turns", fmt.Sprint(order), "[r0 r3 r1 r2]")
	update(t, s, func(tx slipway.Tx) error {
		for i, status := range []slipway.RevisionStatus{slipway.Building, slipway.AwaitingBuild, slipway.AwaitingBuild, slipway.AwaitingBuild} {
			r, err := tx.Revision("", "", fmt.Sprint("r", i))
			must(t, err)
			r.Status, r.LeaseExpires = status, now.Add(time.Hour)
			must(t, tx.PutRevision(r))
		}
		must(t, tx.TakeBuildTurn("few", now.Add(time.Hour)))
		r, err := tx.ClaimBuild("", now.Add(2*time.Minute))
		must(t, err)
		equal(t, "who has none under way", r.ID, "r3")
		r, err = tx.ClaimBuild("many", now.Add(2*time.Minute))
		must(t, err)
		equal(t, "of one tenant", r.ID, "r1")
		_, err = tx.ClaimBuild("nobody", now)
		wantCode(t, err, slipway.CodeNotFound)
		return nil
	})
}

func artifacts(t *testing.T, s slipway.Store) {
	now := startTime()
	a := slipway.Artifact{Digest: "sha256:a", CreatedAt: now, Parts: []slipway.ArtifactPart{{Path: "bundles/a", Blob: "sha256:b", Size: 3}}}
	update(t, s, func(tx slipway.Tx) error {
		_, err := tx.Artifact(a.Digest)
		wantCode(t, err, slipway.CodeNotFound)
		must(t, tx.PutArtifact(slipway.Artifact{Digest: a.Digest}))
		must(t, tx.PutArtifact(a))
		got, err := tx.Artifact(a.Digest)
		must(t, err)
		equal(t, "artifact", fmt.Sprint(got), fmt.Sprint(a))
		all, err := tx.Artifacts()
		must(t, err)
		equal(t, "artifacts", len(all), 1)
		must(t, tx.DeleteArtifact(a.Digest))
		must(t, tx.DeleteArtifact(a.Digest))
		_, err = tx.Artifact(a.Digest)
		wantCode(t, err, slipway.CodeNotFound)

		must(t, tx.PutDeployment(deployment("d", "n", 0)))
		must(t, tx.PutUpload(slipway.Upload{ID: "waiting", DeploymentID: "d", ObjectPath: "1"}))
		must(t, tx.PutUpload(slipway.Upload{ID: "arrived", DeploymentID: "d", ObjectPath: "2", Digest: "sha256:c"}))
		found, err := tx.Uploads()
		must(t, err)
		equal(t, "uploads", fmt.Sprint(len(found))+" "+found[0].ID, "2 arrived")
		must(t, tx.DeleteUpload("arrived"))
		must(t, tx.DeleteUpload("arrived"))
		_, err = tx.UploadByPath("d", "2")
		wantCode(t, err, slipway.CodeNotFound)
		found, err = tx.Uploads()
		must(t, err)
		equal(t, "uploads without the deleted one", fmt.Sprint(len(found))+" "+found[0].ID, "1 waiting")
		return nil
	})
}

// An expired lease is claimed before what waits since, a held one not at all, and neither by another tenant's builder.
func expiredLeases(t *testing.T, s slipway.Store) {
	now := startTime()
	lease := map[string]time.Time{"r0": now.Add(-time.Second), "r2": now.Add(time.Minute)}
	update(t, s, func(tx slipway.Tx) error {
		for i, tenant := range []string{"a", "a", "b", "b"} {
			d, id := deployment(fmt.Sprint("d", i), fmt.Sprint("n", i), i), fmt.Sprint("r", i)
			d.TenantID = tenant
			must(t, tx.PutDeployment(d))
			r := slipway.Revision{
				ID: id, DeploymentID: d.ID, TenantID: tenant, Number: 1, Status: slipway.AwaitingBuild, CreatedAt: now.Add(time.Duration(i) * time.Second),
			}
			if !lease[id].IsZero() {
				r.Status, r.LeaseExpires = slipway.Building, lease[id]
			}
			must(t, tx.PutRevision(r))
		}
		return nil
	})
	next := func(tenant, want string) {
		t.Helper()
		must(t, s.View(t.Context(), func(tx slipway.Tx) error {
			if r, err := tx.ClaimBuild(tenant, now); err != nil || r.ID != want {
				t.Errorf("claim of %q is %q, %v; want %s", tenant, r.ID, err, want)
			}
			return nil
		}))
	}
	next("", "r0")
	next("a", "r0")
	next("b", "r3")
	update(t, s, func(tx slipway.Tx) error {
		r, err := tx.Revision("", "d0", "r0")
		must(t, err)
		r.LeaseExpires = now.Add(time.Minute)
		return tx.PutRevision(r)
	})
	next("", "r1") // each tenant has one under way: the oldest
}
