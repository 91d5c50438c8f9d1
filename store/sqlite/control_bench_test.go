package sqlite_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/store/sqlite"
)

// A control database of 10 000 deployments with ten revisions each, the newest of which waits for a build.
const (
	benchDeployments = 10_000
	benchRevisions   = 10
)

// busyControl fills a database; the deployments belong to so many tenants.
func busyControl(b *testing.B, tenants int) slipway.Store {
	b.Helper()
	store, err := sqlite.OpenControl(filepath.Join(b.TempDir(), "control.db"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = store.Close() })
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
	return store
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

// BenchmarkClaimBuild asks for the next build where 10 000 wait among 100 000 revisions.
func BenchmarkClaimBuild(b *testing.B) {
	for _, tenants := range []int{1, 50, 10_000} {
		b.Run(fmt.Sprintf("tenants=%d", tenants), func(b *testing.B) {
			store := busyControl(b, tenants)
			now := time.UnixMicro(1_800_000_000_000_000)
			for b.Loop() {
				if err := store.View(b.Context(), func(tx slipway.Tx) error {
					_, err := tx.ClaimBuild("", now)
					return err
				}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
