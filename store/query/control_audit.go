package query

import (
	"encoding/json"
	"time"

	"github.com/slipway-dev/slipway"
)

const (
	appendAudit = `
INSERT INTO audit (id, tenant_id, principal, operation, subject, outcome, address, request_id, detail, changes, at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	selectAudit = `
SELECT id, tenant_id, principal, operation, subject, outcome, address, request_id, detail, changes, at FROM audit`
	deleteAudit = `DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE at < ? ORDER BY at LIMIT ?)`
)

// AppendAudit records who did what.
func (t *tx) AppendAudit(e slipway.AuditEntry) error {
	if e.Outcome == "" {
		e.Outcome = slipway.OutcomeSuccess
	}
	if e.Changes == nil {
		e.Changes = []slipway.AuditChange{}
	}
	return t.c.Send(appendAudit, e.ID, e.TenantID, e.Principal, e.Operation, e.Subject, string(e.Outcome), e.Address, e.RequestID,
		e.Detail, encode(e.Changes), micros(e.At))
}

// AuditEntries lists audit entries, newest first.
func (t *tx) AuditEntries(q slipway.AuditQuery) ([]slipway.AuditEntry, error) {
	w := &where{}
	for _, c := range []struct{ column, value string }{
		{"tenant_id", q.TenantID},
		{"operation", q.Operation},
		{"principal", q.Principal},
		{"subject", q.Subject},
		{"outcome", string(q.Outcome)},
		{"request_id", q.RequestID},
	} {
		if c.value != "" {
			w.and(c.column+" = ?", c.value)
		}
	}
	if !q.From.IsZero() {
		w.and("at >= ?", micros(q.From))
	}
	if !q.To.IsZero() {
		w.and("at < ?", micros(q.To))
	}
	if !q.After.At.IsZero() {
		w.and("(at, id) < (?, ?)", micros(q.After.At), q.After.ID)
	}
	tail, args := w.page(" ORDER BY at DESC, id DESC", q.Limit, 0)
	return all(t.c, scanAudit, selectAudit+tail, args...)
}

func scanAudit(s scanner) (e slipway.AuditEntry, err error) {
	var changes string
	var at int64
	err = s.Scan(&e.ID, &e.TenantID, &e.Principal, &e.Operation, &e.Subject, &e.Outcome, &e.Address, &e.RequestID, &e.Detail, &changes, &at)
	if err != nil {
		return e, err
	}
	e.At = fromMicros(at)
	return e, json.Unmarshal([]byte(changes), &e.Changes)
}

// DeleteAudit removes old entries.
func (t *tx) DeleteAudit(before time.Time, limit int) (int, error) {
	n, err := t.c.Exec(deleteAudit, micros(before), limit)
	return int(n), err
}
