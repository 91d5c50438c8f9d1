package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
)

func dueDeployments(t *testing.T, s slipway.Store) {
	terms := slipway.DeletionTerms{Grace: time.Hour, Retention: 2 * time.Hour}
	update(t, s, func(tx slipway.Tx) error {
		_, err := tx.DueDeployment()
		wantCode(t, err, slipway.CodeNotFound)
		for i, name := range []string{"a", "b", "c"} {
			d := deployment(fmt.Sprint("d", i), name, i)
			if i > 0 {
				d = d.Deleted(startTime().Add(time.Duration(-i)*time.Minute), terms)
			}
			must(t, tx.PutDeployment(d))
		}
		d, err := tx.DueDeployment()
		must(t, err)
		equal(t, "the earliest", d.ID, "d2")
		d, _ = d.Advanced(startTime().Add(time.Hour))
		return tx.PutDeployment(d) // now the retention is what it waits for
	})
	must(t, s.View(context.Background(), func(tx slipway.Tx) error {
		d, err := tx.DueDeployment()
		must(t, err)
		equal(t, "the earliest now", d.ID, "d1")
		equal(t, "its deletion", d.TearDownAt, startTime().Add(59*time.Minute))
		return nil
	}))
}

func countedDeployments(t *testing.T, s slipway.Store) {
	free := "dev_free"
	update(t, s, func(tx slipway.Tx) error {
		for i := range 4 {
			d := deployment(fmt.Sprint("d", i), fmt.Sprint("n", i), i)
			if i > 0 {
				d.SourceConfig.DeploymentType = &free
			}
			if i == 3 {
				d = d.Deleted(startTime(), slipway.DeletionTerms{Retention: time.Hour})
			}
			must(t, tx.PutDeployment(d))
		}
		n, err := tx.CountDeployments(slipway.DeploymentQuery{TenantID: "t", Type: free, Limit: 1})
		must(t, err)
		equal(t, "free", n, 2)
		n, err = tx.CountDeployments(slipway.DeploymentQuery{TenantID: "other"})
		must(t, err)
		equal(t, "of another tenant", n, 0)
		return nil
	})
}
