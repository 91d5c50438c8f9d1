package storetest

import (
	"context"
	"fmt"
	"testing"

	"github.com/slipway-dev/slipway"
)

func tracingProjects(t *testing.T, s slipway.Store) {
	update(t, s, func(tx slipway.Tx) error {
		for i, name := range []string{"chat", "desk", "mail"} {
			must(t, tx.PutTracingProject(slipway.TracingProject{
				ID: fmt.Sprint("p", i), TenantID: "t", Name: name, DeploymentID: fmt.Sprint("d", i), CreatedAt: startTime(),
			}))
		}
		must(t, tx.PutTracingProject(slipway.TracingProject{ID: "p9", TenantID: "other", Name: "chat"}))
		wantCode(t, tx.PutTracingProject(slipway.TracingProject{ID: "p8", TenantID: "t", Name: "chat"}), slipway.CodeConflict)
		return nil
	})
	must(t, s.View(context.Background(), func(tx slipway.Tx) error {
		list, err := tx.TracingProjects(slipway.TracingProjectQuery{TenantID: "t", Limit: 2})
		must(t, err)
		equal(t, "newest first", fmt.Sprint(len(list), list[0].ID), "2p2")
		list, err = tx.TracingProjects(slipway.TracingProjectQuery{TenantID: "t", Limit: 2, Offset: 2})
		must(t, err)
		equal(t, "rest", fmt.Sprint(len(list), list[0].ID), "1p0")
		list, err = tx.TracingProjects(slipway.TracingProjectQuery{TenantID: "other", Name: "chat"})
		must(t, err)
		equal(t, "of the other tenant", fmt.Sprint(len(list), list[0].ID), "1p9")
		p, err := tx.TracingProject("t", "p1")
		must(t, err)
		equal(t, "project", p.DeploymentID, "d1")
		_, err = tx.TracingProject("other", "p1")
		wantCode(t, err, slipway.CodeNotFound)
		return nil
	}))
}
