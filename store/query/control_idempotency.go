package query

import (
	"time"

	"github.com/slipway-dev/slipway"
)

// IdempotencyClaim returns the claim of a scope.
func (t *tx) IdempotencyClaim(scope string) (slipway.IdempotencyClaim, error) {
	return find[slipway.IdempotencyClaim](t.c, "the request is new", `SELECT doc FROM idempotency WHERE scope = ?`, scope)
}

const putClaim = `
INSERT INTO idempotency (scope, tenant_id, ends_at, running, doc) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (scope) DO UPDATE SET ends_at = excluded.ends_at, running = excluded.running, doc = excluded.doc`

// PutIdempotencyClaim inserts or replaces a claim.
func (t *tx) PutIdempotencyClaim(c slipway.IdempotencyClaim) error {
	running := 0
	if c.Running {
		running = 1
	}
	_, err := t.c.Exec(putClaim, c.Scope, c.TenantID, micros(c.EndsAt), running, encode(c))
	return err
}

// DropIdempotencyClaim removes a claim.
func (t *tx) DropIdempotencyClaim(scope string) error {
	_, err := t.c.Exec(`DELETE FROM idempotency WHERE scope = ?`, scope)
	return err
}

const expireClaims = `
DELETE FROM idempotency WHERE scope IN (SELECT scope FROM idempotency WHERE ends_at <= ? ORDER BY ends_at LIMIT ?)`

// ExpireIdempotencyClaims removes claims whose time is over.
func (t *tx) ExpireIdempotencyClaims(now time.Time, limit int) (time.Time, error) {
	next, ok, err := one(t.c, scalar[int64], `SELECT ends_at FROM idempotency ORDER BY ends_at LIMIT 1`)
	if err != nil || !ok || next > micros(now) {
		return fromMicros(next), err
	}
	if _, err := t.c.Exec(expireClaims, micros(now), limit); err != nil {
		return time.Time{}, err
	}
	next, _, err = one(t.c, scalar[int64], `SELECT ends_at FROM idempotency ORDER BY ends_at LIMIT 1`)
	return fromMicros(next), err
}

const trimClaims = `
DELETE FROM idempotency WHERE tenant_id = ?1 AND scope IN (
  SELECT scope FROM idempotency WHERE tenant_id = ?1 ORDER BY ends_at DESC LIMIT ?2 OFFSET ?3)`

// TrimIdempotencyClaims bounds the claims of a tenant.
func (t *tx) TrimIdempotencyClaims(tenantID string, keep int) error {
	_, err := t.c.Exec(trimClaims, tenantID, 1<<30, keep)
	return err
}

// FreeIdempotencyClaims ends every attempt that did not answer.
func (t *tx) FreeIdempotencyClaims() error {
	held, err := all(t.c, doc[slipway.IdempotencyClaim], `SELECT doc FROM idempotency WHERE running = 1`)
	if err != nil {
		return err
	}
	for _, c := range held {
		if !c.Committed {
			err = t.DropIdempotencyClaim(c.Scope)
		} else {
			c.LeaseEnds = time.Time{}
			err = t.PutIdempotencyClaim(c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
