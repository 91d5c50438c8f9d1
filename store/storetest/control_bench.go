package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
)

// A control database of 10 000 deployments with ten revisions each, the newest of which waits for a build.
const (
	benchDeployments = 10_000
	benchRevisions   = 10
)

// busyControl fills a database; the deployments belong to so many tenants.
func busyControl(b *testing.B, store slipway.Store, tenants int) {
	b.Helper()
	at := time.UnixMicro(1_700_000_000_000_000)
	for from := 0; from < benchDeployments; from += 500 {
		if err := store.Update(context.Background(), func(tx slipway.Tx) error {
			for i := from; i < from+500; i++ {
				if err := busyDeployment(tx, i, fmt.Sprintf("tenant-%05d", i%tenants), at); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			b.Fatal(err)
		}
	}
}

func busyDeployment(tx slipway.Tx, i int, tenant string, at time.Time) error {
	d := slipway.Deployment{
		ID: fmt.Sprintf("d-%05d", i), TenantID: tenant, Name: fmt.Sprintf("desk-%05d", i), Status: slipway.DeploymentReady,
		CreatedAt: at.Add(time.Duration(i) * time.Second), Source: slipway.SourceGithost,
	}
	if err := tx.PutDeployment(d); err != nil {
		return err
	}
	for n := range benchRevisions {
		r := slipway.Revision{
			ID: fmt.Sprintf("r-%05d-%02d", i, n), DeploymentID: d.ID, TenantID: tenant, Number: int64(n + 1), Status: slipway.Deployed,
			CreatedAt: d.CreatedAt.Add(time.Duration(n) * time.Hour), ArtifactDigest: fmt.Sprintf("sha256:%064x", i*benchRevisions+n),
		}
		if n == benchRevisions-1 {
			r.Status, r.ArtifactDigest = slipway.AwaitingBuild, ""
		}
		if err := tx.PutRevision(r); err != nil {
			return err
		}
	}
	return nil
}

// BenchControl measures what builders and collections ask of 100 000 revisions; open opens a new control store.
func BenchControl(b *testing.B, open func(b *testing.B) slipway.Store) {
	for _, tenants := range []int{1, 50, 10_000} {
		b.Run(fmt.Sprintf("ClaimBuild/tenants=%d", tenants), func(b *testing.B) {
			store, now := open(b), time.UnixMicro(1_800_000_000_000_000)
			busyControl(b, store, tenants)
			each(b, store, func(tx slipway.Tx) error {
				_, err := tx.ClaimBuild("", now)
				return err
			})
		})
	}
	b.Run("Collection", func(b *testing.B) {
		store := open(b)
		busyControl(b, store, 50)
		each(b, store, func(tx slipway.Tx) error {
			if _, err := tx.Artifacts(); err != nil {
				return err
			}
			_, err := tx.Revisions(slipway.RevisionQuery{})
			return err
		})
	})
}

func each(b *testing.B, store slipway.Store, fn func(tx slipway.Tx) error) {
	b.Helper()
	for b.Loop() {
		if err := store.View(context.Background(), fn); err != nil {
			b.Fatal(err)
		}
	}
}
