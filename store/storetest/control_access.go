package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
)

// RunAccess runs the part of the suite that is about tenants, keys and the audit log.
func RunAccess(t *testing.T, open func(t *testing.T) slipway.Store) {
	for name, test := range map[string]func(t *testing.T, s slipway.Store){"tenants": tenants, "api keys": apiKeys, "audit log": auditLog} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

func tenants(t *testing.T, s slipway.Store) {
	var taken error
	update(t, s, func(tx slipway.Tx) error {
		for i, name := range []string{"first", "second", "third"} {
			must(t, tx.PutTenant(slipway.Tenant{ID: fmt.Sprint("t", i), Name: name, CreatedAt: startTime().Add(time.Duration(i) * time.Second)}))
		}
		must(t, tx.PutTenant(slipway.Tenant{ID: "t2", Name: "renamed", CreatedAt: startTime().Add(2 * time.Second)}))
		taken = tx.PutTenant(slipway.Tenant{ID: "t9", Name: "first"})
		must(t, tx.PutAPIKey(slipway.APIKey{ID: "k", TenantID: "t1", Hash: "h"}))
		return tx.DeleteTenant("t1")
	})
	wantCode(t, taken, slipway.CodeConflict)
	must(t, s.View(context.Background(), func(tx slipway.Tx) error {
		one, err := tx.Tenant("t2")
		must(t, err)
		equal(t, "name", one.Name, "renamed")
		_, err = tx.Tenant("t1")
		wantCode(t, err, slipway.CodeNotFound)
		_, err = tx.APIKeyByHash("h")
		wantCode(t, err, slipway.CodeNotFound)
		list, err := tx.Tenants(slipway.TenantQuery{Limit: 1, Offset: 1})
		must(t, err)
		equal(t, "second oldest", list[0].ID, "t2")
		list, err = tx.Tenants(slipway.TenantQuery{Name: "first"})
		must(t, err)
		equal(t, "by name", list[0].ID, "t0")
		list, err = tx.Tenants(slipway.TenantQuery{ID: "t2", Name: "first"})
		must(t, err)
		equal(t, "by both", len(list), 0)
		return nil
	}))
}

func apiKeys(t *testing.T, s slipway.Store) {
	at := startTime()
	update(t, s, func(tx slipway.Tx) error {
		must(t, tx.PutDeployment(deployment("d", "n", 0)))
		for _, k := range []slipway.APIKey{
			{ID: "k1", TenantID: "t", Hash: "1", Role: slipway.RoleAdmin, ExpiresAt: at},
			{ID: "k2", TenantID: "t", Hash: "2", DeploymentID: "d"},
			{ID: "k3", TenantID: "", Hash: "3", DefaultTenantID: "t"},
		} {
			must(t, tx.PutAPIKey(k))
		}
		must(t, tx.TouchAPIKeys(map[string]time.Time{"k1": at.Add(time.Second), "unknown": at}))
		must(t, tx.TouchAPIKeys(map[string]time.Time{"k1": at}))
		return tx.PutAPIKey(slipway.APIKey{ID: "k1", TenantID: "t", Hash: "1", Role: slipway.RoleViewer, RevokedAt: at})
	})
	must(t, s.View(context.Background(), func(tx slipway.Tx) error {
		k, err := tx.APIKey("t", "k1")
		must(t, err)
		equal(t, "role", k.Role, slipway.RoleViewer)
		equal(t, "revoked", k.RevokedAt, at)
		equal(t, "last use outlives a change, the latest counts", k.LastUsedAt, at.Add(time.Second))
		_, err = tx.APIKey("other", "k1")
		wantCode(t, err, slipway.CodeNotFound)
		_, err = tx.APIKey("", "k1")
		wantCode(t, err, slipway.CodeNotFound)
		list, err := tx.APIKeys(slipway.APIKeyQuery{TenantID: "t", Limit: 1})
		must(t, err)
		equal(t, "newest first", fmt.Sprint(len(list))+list[0].ID, "1k2")
		list, err = tx.APIKeys(slipway.APIKeyQuery{})
		must(t, err)
		equal(t, "of the organisation", list[0].ID+list[0].DefaultTenantID, "k3t")
		return nil
	}))
	update(t, s, func(tx slipway.Tx) error { return tx.PurgeDeployment("d") })
	must(t, s.View(context.Background(), func(tx slipway.Tx) error {
		list, err := tx.APIKeys(slipway.APIKeyQuery{TenantID: "t", DeploymentID: "d"})
		must(t, err)
		equal(t, "deploy keys of what is gone", len(list), 0)
		return nil
	}))
}

func auditLog(t *testing.T, s slipway.Store) {
	at := startTime()
	update(t, s, func(tx slipway.Tx) error {
		for i := range 6 { // two each in one microsecond
			must(t, tx.AppendAudit(slipway.AuditEntry{
				ID: fmt.Sprint("a", i), TenantID: "t", Principal: fmt.Sprint("p", i%2), Operation: "o", Subject: fmt.Sprint("s", i%3),
				Address: "192.0.2.1", RequestID: fmt.Sprint("r", i), Detail: `{"n":1}`, At: at.Add(time.Duration(i/2) * time.Second),
				Changes: []slipway.AuditChange{{Field: "f", After: json.RawMessage(`"x"`)}},
			}))
		}
		return tx.AppendAudit(slipway.AuditEntry{ID: "b", TenantID: "u", Outcome: slipway.OutcomeRefused, At: at})
	})
	must(t, s.View(context.Background(), func(tx slipway.Tx) error {
		cursor, seen := slipway.AuditCursor{}, ""
		for range 6 {
			page, err := tx.AuditEntries(slipway.AuditQuery{TenantID: "t", After: cursor, Limit: 1})
			must(t, err)
			cursor, seen = slipway.AuditCursor{At: page[0].At, ID: page[0].ID}, seen+page[0].ID
		}
		equal(t, "page by page", seen, "a5a4a3a2a1a0")
		for name, c := range map[string]struct {
			q    slipway.AuditQuery
			want string
		}{
			"every tenant": {slipway.AuditQuery{}, "a5a4a3a2ba1a0"},
			"principal":    {slipway.AuditQuery{TenantID: "t", Principal: "p1"}, "a5a3a1"},
			"subject":      {slipway.AuditQuery{Subject: "s0"}, "a3a0"},
			"outcome":      {slipway.AuditQuery{Outcome: slipway.OutcomeRefused}, "b"},
			"request":      {slipway.AuditQuery{RequestID: "r2"}, "a2"},
			"operation":    {slipway.AuditQuery{Operation: "x"}, ""},
			"times":        {slipway.AuditQuery{TenantID: "t", From: at.Add(time.Second), To: at.Add(2 * time.Second)}, "a3a2"},
		} {
			page, err := tx.AuditEntries(c.q)
			must(t, err)
			got := ""
			for _, e := range page {
				got += e.ID
			}
			equal(t, name, got, c.want)
		}
		page, err := tx.AuditEntries(slipway.AuditQuery{RequestID: "r5"})
		must(t, err)
		equal(t, "whole", fmt.Sprintf("%+v", page[0]), fmt.Sprintf("%+v", slipway.AuditEntry{
			ID: "a5", TenantID: "t", Principal: "p1", Operation: "o", Subject: "s2", Outcome: slipway.OutcomeSuccess, Address: "192.0.2.1",
			RequestID: "r5", Detail: `{"n":1}`, At: at.Add(2 * time.Second), Changes: []slipway.AuditChange{{Field: "f", Before: json.RawMessage("null"), After: json.RawMessage(`"x"`)}},
		}))
		return nil
	}))
	for _, want := range []int{2, 1, 0} { // a0, a1 and b are older
		n := 0
		update(t, s, func(tx slipway.Tx) (err error) {
			n, err = tx.DeleteAudit(at.Add(time.Second), 2)
			return err
		})
		equal(t, "deleted", n, want)
	}
}
