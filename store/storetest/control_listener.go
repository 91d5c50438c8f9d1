package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
)

func listener(id, tenant, compute string, n int) slipway.Listener {
	return slipway.Listener{
		ID: id, TenantID: tenant, ComputeType: slipway.ComputeCluster, ComputeID: compute, CreatedAt: startTime().Add(time.Duration(n) * time.Second),
	}
}

func listeners(t *testing.T, s slipway.Store) {
	update(t, s, func(tx slipway.Tx) error {
		for i, compute := range []string{"east", "west", "south"} {
			must(t, tx.PutListener(listener(fmt.Sprint("l", i), "t", compute, i)))
		}
		must(t, tx.PutListener(listener("l9", "other", "east", 9)))
		wantCode(t, tx.PutListener(listener("l8", "t", "east", 8)), slipway.CodeConflict)
		changed := listener("l1", "t", "west", 1)
		changed.Namespaces, changed.LastSeenAt = []string{"a"}, startTime()
		must(t, tx.PutListener(changed))
		must(t, tx.DeleteListener("l2"))
		return tx.DeleteListener("nobody")
	})
	must(t, s.View(context.Background(), func(tx slipway.Tx) error {
		list, err := tx.Listeners(slipway.ListenerQuery{TenantID: "t", Limit: 1})
		must(t, err)
		equal(t, "newest", fmt.Sprint(len(list), list[0].ID, list[0].Namespaces, list[0].LastSeenAt.Equal(startTime())), "1l1[a] true")
		list, err = tx.Listeners(slipway.ListenerQuery{ComputeID: "east"})
		must(t, err)
		equal(t, "of every tenant", fmt.Sprint(len(list), list[0].ID), "2l9")
		list, err = tx.Listeners(slipway.ListenerQuery{TenantID: "t", Limit: 5, Offset: 1})
		must(t, err)
		equal(t, "rest", fmt.Sprint(len(list), list[0].ID), "1l0")
		_, err = tx.Listener("other", "l1")
		wantCode(t, err, slipway.CodeNotFound)
		_, err = tx.Listener("", "l1")
		return err
	}))
	placed(t, s)
}

// placed checks what belongs to a listener: the deployments that name it and what it measured of them.
func placed(t *testing.T, s slipway.Store) {
	at := "l1"
	update(t, s, func(tx slipway.Tx) error {
		here, there := deployment("d1", "here", 1), deployment("d2", "there", 2)
		there.SourceConfig.ListenerID = &at
		must(t, tx.PutDeployment(here))
		must(t, tx.PutDeployment(there))
		must(t, tx.PutMetrics(slipway.Metrics{DeploymentID: "d2", TenantID: "t", Replicas: 1}))
		return tx.PutMetrics(slipway.Metrics{DeploymentID: "d2", TenantID: "t", Replicas: 2})
	})
	must(t, s.View(context.Background(), func(tx slipway.Tx) error {
		none, yes, no := "", true, false
		for _, c := range []struct {
			q    slipway.DeploymentQuery
			want string
		}{
			{slipway.DeploymentQuery{Listener: &at}, "[d2]"}, {slipway.DeploymentQuery{Listener: &none}, "[d1]"},
			{slipway.DeploymentQuery{Remote: &yes}, "[d2]"}, {slipway.DeploymentQuery{Remote: &no}, "[d1]"}, {slipway.DeploymentQuery{}, "[d2 d1]"},
		} {
			found, err := tx.Deployments(c.q)
			must(t, err)
			ids := []string{}
			for _, d := range found {
				ids = append(ids, d.ID)
			}
			equal(t, fmt.Sprintf("%+v", c.q), fmt.Sprint(ids), c.want)
		}
		m, err := tx.Metrics("t", "d2")
		must(t, err)
		equal(t, "metrics", m.Replicas, 2)
		_, err = tx.Metrics("other", "d2")
		wantCode(t, err, slipway.CodeNotFound)
		return nil
	}))
	update(t, s, func(tx slipway.Tx) error { return tx.PurgeDeployment("d2") })
	must(t, s.View(context.Background(), func(tx slipway.Tx) error {
		_, err := tx.Metrics("t", "d2")
		wantCode(t, err, slipway.CodeNotFound)
		return nil
	}))
}
