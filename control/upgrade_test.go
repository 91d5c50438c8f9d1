package control_test

import (
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/pressly/goose/v3"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/control"
	"github.com/slipway-dev/slipway/store/sqlite"
)

const (
	oldTenant  = "01990000-0000-7000-8000-000000000001"
	oldKey     = "slw_of-the-time-before-migration-two-AAAAAAAAAA"
	oldRevoked = "slw_revoked-before-migration-two-BBBBBBBBBBBBBB"
)

// oldFile is a control store as it was before migration 00002, with the records that were written then.
func oldFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "control.db")
	db, err := sql.Open("sqlite", path) // the driver is store/sqlite's
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	p, err := goose.NewProvider(goose.DialectSQLite3, db, os.DirFS("../store/sqlite/migrations/control"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.UpTo(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	exec := func(query string, args ...any) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), query, args...); err != nil {
			t.Fatal(err)
		}
	}
	const at = "2026-01-02T03:04:05Z"
	exec(`INSERT INTO tenants (id, created_at, doc) VALUES (?, ?, ?)`, oldTenant, 1767323045000000,
		fmt.Sprintf(`{"ID":%q,"Name":"default","CreatedAt":%q}`, oldTenant, at))
	for id, key := range map[string]string{"k1": oldKey, "k2": oldRevoked} {
		revoked := "0001-01-01T00:00:00Z"
		if key == oldRevoked {
			revoked = at
		}
		sum := sha256.Sum256([]byte(key))
		hash := hex.EncodeToString(sum[:])
		exec(`INSERT INTO api_keys (id, tenant_id, hash, doc) VALUES (?, ?, ?, ?)`, id, oldTenant, hash,
			fmt.Sprintf(`{"ID":%q,"TenantID":%q,"Hash":%q,"Prefix":%q,"Role":"admin","CreatedAt":%q,"RevokedAt":%q}`, id, oldTenant, hash, key[:12], at, revoked))
	}
	exec(`INSERT INTO audit (id, tenant_id, principal, operation, subject, detail, at) VALUES ('a1', ?, 'key:slw_of-the-t', 'create_deployment', 'd1', '{"name":"desk"}', ?)`,
		oldTenant, 1767323045000000)
	return path
}

func TestAStoreFromBeforeTenantsHadNamesKeepsItsKeys(t *testing.T) {
	t.Parallel()
	path := oldFile(t)
	store, err := sqlite.OpenControl(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	first := newWorldOn(t, database(t)) // lends its clock and ids
	s := second(t, first.World, store, control.Config{}, nil)
	who, err := s.Authenticate(t.Context(), control.Credential{Key: oldKey})
	if err != nil || who.TenantID != oldTenant || who.Role != slipway.RoleAdmin || who.Organisation {
		t.Fatalf("the old key is %+v, %v; want the admin of its tenant", who, err)
	}
	if _, err := s.Authenticate(t.Context(), control.Credential{Key: oldRevoked}); slipway.ErrorCode(err) != slipway.CodeUnauthenticated {
		t.Errorf("the key that was revoked: %v, want CodeUnauthenticated", err)
	}
	if again, err := s.Bootstrap(t.Context()); err != nil || again.Key != "" || again.TenantID != oldTenant {
		t.Errorf("Bootstrap = %+v, %v; want the tenant that is there and no new key", again, err)
	}
	if tenant, err := s.Tenant(t.Context(), who, oldTenant); err != nil || tenant.Name != "default" {
		t.Errorf("tenant = %+v, %v", tenant, err)
	}
	fresh, err := s.RotateKey(t.Context(), who, "k1", slipway.Rotation{})
	if err != nil || !fresh.ExpiresAt.IsZero() {
		t.Fatalf("rotating it: %+v, %v", fresh, err)
	}
	entries, err := s.Audit(t.Context(), who, slipway.AuditQuery{Operation: "create_deployment"})
	if err != nil || len(entries) != 1 || entries[0].Outcome != slipway.OutcomeSuccess || len(entries[0].Changes) != 0 || entries[0].Detail != `{"name":"desk"}` {
		t.Errorf("the old entry is %+v, %v", entries, err)
	}
}
