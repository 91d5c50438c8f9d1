package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
)

// RunControl runs the suite of slipway.Store; open returns an empty store that lives as long as the test.
func RunControl(t *testing.T, open func(t *testing.T) slipway.Store) {
	RunAccess(t, open)
	for name, test := range map[string]func(t *testing.T, s slipway.Store){
		"deployments": deployments, "builds": builds, "build turns": buildTurns, "expired leases": expiredLeases, "artifacts": artifacts, "logs": logs, "transactions": transactions, "access": access,
		"tracing projects": tracingProjects, "integrations": integrations, "deliveries": deliveries, "status notes": statusNotes,
		"listeners": listeners, "webhooks": webhooks,
		"due deployments": dueDeployments, "idempotency": idempotency, "bounded logs": boundedLogs, "counted deployments": countedDeployments,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

func update(t *testing.T, s slipway.Store, fn func(tx slipway.Tx) error) {
	t.Helper()
	must(t, s.Update(context.Background(), fn))
}

func deployment(id, name string, n int) slipway.Deployment {
	return slipway.Deployment{ID: id, TenantID: "t", Name: name, Source: slipway.SourceInternalSource, Status: slipway.DeploymentUnused, CreatedAt: startTime().Add(time.Duration(n))}
}

func deployments(t *testing.T, s slipway.Store) {
	update(t, s, func(tx slipway.Tx) error {
		for i, name := range []string{"chat", "chat-2", "Other_1"} {
			d := deployment(fmt.Sprint("d", i), name, i*1000)
			must(t, tx.PutDeployment(d))
		}
		wantCode(t, tx.PutDeployment(deployment("d9", "chat", 0)), slipway.CodeConflict)
		_, err := tx.Deployment("other", "d0")
		wantCode(t, err, slipway.CodeNotFound)
		found, err := tx.Deployments(slipway.DeploymentQuery{TenantID: "t", NameContains: "chat"})
		must(t, err)
		equal(t, "exact first", found[0].Name, "chat")
		for offset, want := range []string{"d0", "d1", ""} { // d1 is newer, but d0 bears the name
			found, err = tx.Deployments(slipway.DeploymentQuery{TenantID: "t", NameContains: "chat", Limit: 1, Offset: offset})
			must(t, err)
			got := ""
			for _, d := range found {
				got += d.ID
			}
			equal(t, fmt.Sprint("page ", offset), got, want)
		}
		found, err = tx.Deployments(slipway.DeploymentQuery{NameContains: "R_"})
		must(t, err)
		equal(t, "literal", len(found), 1)
		found, err = tx.Deployments(slipway.DeploymentQuery{TenantID: "t", Limit: 2})
		must(t, err)
		equal(t, "newest first", fmt.Sprintf("%d %s", len(found), found[0].ID), "2 d2")
		return tx.PurgeDeployment("d0")
	})
	must(t, s.View(context.Background(), func(tx slipway.Tx) error {
		_, err := tx.DeploymentByName("t", "chat")
		wantCode(t, err, slipway.CodeNotFound)
		return nil
	}))
}

func builds(t *testing.T, s slipway.Store) {
	now := startTime()
	update(t, s, func(tx slipway.Tx) error {
		must(t, tx.PutDeployment(deployment("d", "n", 0)))
		_, err := tx.ClaimBuild("", now)
		wantCode(t, err, slipway.CodeNotFound)
		r := slipway.Revision{ID: "r", DeploymentID: "d", TenantID: "t", Number: 1, Status: slipway.Building, LeaseExpires: now, CreatedAt: now}
		must(t, tx.PutRevision(r))
		_, err = tx.ClaimBuild("", now.Add(-time.Second))
		wantCode(t, err, slipway.CodeNotFound)
		got, err := tx.ClaimBuild("", now)
		must(t, err)
		equal(t, "claimed", got.ID, "r")
		must(t, tx.AppendRevisionEvent(slipway.RevisionEvent{RevisionID: "r", Status: slipway.Building, At: now}))
		events, err := tx.RevisionEvents("r")
		must(t, err)
		equal(t, "events", len(events), 1)
		equal(t, "at", events[0].At, now)
		return nil
	})
}

func logs(t *testing.T, s slipway.Store) {
	var entries []slipway.LogEntry
	for i := range 5 {
		entries = append(entries, slipway.LogEntry{DeploymentID: "d", RevisionID: "r", Kind: slipway.LogDeploy, At: startTime().Add(time.Duration(i) * time.Second), Level: "INFO", Message: fmt.Sprint("Line 100% ", i)})
	}
	must(t, s.AppendLogs(context.Background(), entries))
	must(t, s.View(context.Background(), func(tx slipway.Tx) error {
		q := slipway.LogQuery{DeploymentID: "d", Kind: slipway.LogDeploy, After: entries[1].Seq, Contains: "line 100%", Limit: 2}
		got, err := tx.Logs(q)
		must(t, err)
		equal(t, "forward", fmt.Sprint(len(got), got[0].Seq), fmt.Sprint(2, entries[2].Seq))
		q.Descending = true
		got, err = tx.Logs(q)
		must(t, err)
		equal(t, "backward", fmt.Sprint(len(got), got[0].Seq), fmt.Sprint(1, entries[0].Seq))
		return nil
	}))
}

func transactions(t *testing.T, s slipway.Store) {
	boom := errors.New("boom")
	err := s.Update(context.Background(), func(tx slipway.Tx) error {
		must(t, tx.PutDeployment(deployment("d", "n", 0)))
		return boom
	})
	if !errors.Is(err, boom) {
		t.Fatalf("got %v, want the function's own error", err)
	}
	must(t, s.View(context.Background(), func(tx slipway.Tx) error {
		_, err := tx.Deployment("t", "d")
		wantCode(t, err, slipway.CodeNotFound)
		wantCode(t, tx.PutDeployment(deployment("d", "n", 0)), slipway.CodeInternal)
		return nil
	}))
}

func access(t *testing.T, s slipway.Store) {
	update(t, s, func(tx slipway.Tx) error {
		must(t, tx.PutTenant(slipway.Tenant{ID: "t", Name: "T", CreatedAt: startTime()}))
		must(t, tx.PutAPIKey(slipway.APIKey{ID: "k", TenantID: "t", Hash: "h", Role: slipway.RoleAdmin}))
		must(t, tx.PutUpload(slipway.Upload{ID: "u", DeploymentID: "d", ObjectPath: "p"}))
		must(t, tx.PutSecretSet(slipway.SecretSet{ID: "s", Secrets: []slipway.SealedSecret{{Name: "A", Sealed: []byte{0, 255}}}}))
		must(t, tx.PutTracingProject(slipway.TracingProject{ID: "p", TenantID: "t", Name: "n"}))
		must(t, tx.AppendAudit(slipway.AuditEntry{ID: "a", TenantID: "t", At: startTime()}))
		return nil
	})
	must(t, s.View(context.Background(), func(tx slipway.Tx) error {
		k, err := tx.APIKeyByHash("h")
		must(t, err)
		equal(t, "role", k.Role, slipway.RoleAdmin)
		_, err = tx.APIKeyByHash("x")
		wantCode(t, err, slipway.CodeNotFound)
		u, err := tx.UploadByPath("d", "p")
		must(t, err)
		equal(t, "upload", u.ID, "u")
		sets, err := tx.SecretSets([]string{"s", "missing"})
		must(t, err)
		equal(t, "secret sets", len(sets), 1)
		set, err := tx.SecretSet("s")
		must(t, err)
		equal(t, "sealed", string(set.Secrets[0].Sealed), "\x00\xff")
		return nil
	}))
}
