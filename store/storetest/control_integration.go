package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
)

func integration(id, tenant, name string) slipway.Integration {
	return slipway.Integration{ID: id, TenantID: tenant, Kind: slipway.HostGitea, Name: name, HostURL: "https://git.example.com", Sealed: []byte{0, 255}}
}

func integrations(t *testing.T, s slipway.Store) {
	update(t, s, func(tx slipway.Tx) error {
		for i, name := range []string{"a", "b", "c"} {
			must(t, tx.PutIntegration(integration(fmt.Sprint("i", i), "t", name)))
		}
		must(t, tx.PutIntegration(integration("i9", "other", "a")))
		wantCode(t, tx.PutIntegration(integration("i8", "t", "a")), slipway.CodeConflict)
		id := "i1"
		d := deployment("d", "n", 0)
		d.SourceConfig.IntegrationID = &id
		must(t, tx.PutDeployment(d))
		return tx.PutDeployment(deployment("d2", "n2", 0))
	})
	must(t, s.View(context.Background(), func(tx slipway.Tx) error {
		i, err := tx.Integration("t", "i1")
		must(t, err)
		equal(t, "sealed", string(i.Sealed), "\x00\xff")
		_, err = tx.Integration("other", "i1")
		wantCode(t, err, slipway.CodeNotFound)
		list, err := tx.Integrations(slipway.IntegrationQuery{TenantID: "t", Before: "i2", Limit: 1})
		must(t, err)
		equal(t, "page", fmt.Sprint(len(list), list[0].ID), "1i1")
		list, err = tx.Integrations(slipway.IntegrationQuery{TenantID: "t", Kind: slipway.HostGitHub})
		must(t, err)
		equal(t, "of another kind", len(list), 0)
		found, err := tx.Deployments(slipway.DeploymentQuery{TenantID: "t", Integration: "i1"})
		must(t, err)
		equal(t, "deployments", fmt.Sprint(len(found), found[0].ID), "1d")
		return nil
	}))
}

func deliveries(t *testing.T, s slipway.Store) {
	now := startTime()
	add := func(tx slipway.Tx, key string, at time.Time) bool {
		first, err := tx.AddDelivery("i", key, at)
		must(t, err)
		return first
	}
	update(t, s, func(tx slipway.Tx) error {
		must(t, tx.PutIntegration(integration("i", "t", "a")))
		equal(t, "first", add(tx, "x", now), true)
		equal(t, "again", add(tx, "x", now.Add(time.Hour)), false)
		equal(t, "another", add(tx, "y", now.Add(time.Hour)), true)
		return tx.PruneDeliveries("i", now.Add(time.Minute))
	})
	update(t, s, func(tx slipway.Tx) error {
		equal(t, "kept", add(tx, "y", now), false)
		equal(t, "pruned", add(tx, "x", now), true)
		must(t, tx.DeleteIntegration("i"))
		_, err := tx.Integration("", "i")
		wantCode(t, err, slipway.CodeNotFound)
		return nil
	})
}

func statusNotes(t *testing.T, s slipway.Store) {
	now := startTime()
	note := func(version int64, next time.Time) slipway.StatusNote {
		return slipway.StatusNote{RevisionID: "r", IntegrationID: "i", Version: version, NextAt: next}
	}
	count := func(tx slipway.Tx, due time.Time) int {
		list, err := tx.StatusNotes(due, 10)
		must(t, err)
		return len(list)
	}
	update(t, s, func(tx slipway.Tx) error {
		must(t, tx.PutIntegration(integration("i", "t", "a")))
		must(t, tx.PutDeployment(deployment("d", "n", 0)))
		must(t, tx.PutRevision(slipway.Revision{ID: "r", DeploymentID: "d", TenantID: "t", Number: 1, Status: slipway.Queued, CreatedAt: now}))
		must(t, tx.PutStatusNote(note(1, now)))
		must(t, tx.PutStatusNote(note(2, now.Add(time.Hour))))
		equal(t, "not due", count(tx, now), 0)
		equal(t, "all", count(tx, time.Time{}), 1)
		must(t, tx.RescheduleStatusNote(note(1, now))) // of an older version: nothing happens
		equal(t, "still not due", count(tx, now), 0)
		must(t, tx.DeleteStatusNote(note(1, now)))
		equal(t, "still there", count(tx, time.Time{}), 1)
		must(t, tx.RescheduleStatusNote(note(2, now)))
		equal(t, "due", count(tx, now), 1)
		must(t, tx.PurgeDeployment("d"))
		equal(t, "gone with its revision", count(tx, time.Time{}), 0)
		return nil
	})
}
