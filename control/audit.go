package control

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/slipway-dev/slipway"
)

// audit records who changed what, inside the transaction that changes it. changes are slipway.AuditDiff's; detail is what
// else tells the reader what happened. Neither ever holds a secret's value.
func (s *Service) audit(tx slipway.Tx, who slipway.Principal, operation, subject string, detail map[string]any, changes ...slipway.AuditChange) error {
	if detail == nil {
		detail = map[string]any{}
	}
	text, err := json.Marshal(detail)
	if err != nil {
		return fmt.Errorf("audit %s: %w", operation, err)
	}
	return tx.AppendAudit(slipway.AuditEntry{
		ID: s.ids(), TenantID: who.TenantID, Principal: who.ID, Operation: operation, Subject: subject, Outcome: slipway.OutcomeSuccess,
		Address: who.Address, RequestID: who.RequestID, Detail: string(text), Changes: changes, At: s.clock(),
	})
}

// auditDiff records a change of something with the fields that differ; nil before or after means that it did not exist.
func (s *Service) auditDiff(tx slipway.Tx, who slipway.Principal, operation, subject string, detail map[string]any, before, after any) error {
	changes, err := slipway.AuditDiff(before, after)
	if err != nil {
		return err
	}
	return s.audit(tx, who, operation, subject, detail, changes...)
}

// auditChange records what a change comes to: the fields before and after, and the names of the secrets that were set or
// removed. before is zero for a new deployment, secrets are the names it had.
func (s *Service) auditChange(tx slipway.Tx, who slipway.Principal, operation string, before slipway.Deployment, secrets []string, c slipway.Change) error {
	changes, err := slipway.AuditDiff(auditView(before), auditView(c.Deployment))
	if err != nil {
		return err
	}
	if c.Secrets != nil {
		has, set := append([]string{}, c.Secrets.Keep...), []string{}
		for _, secret := range c.Secrets.Values {
			set = append(set, secret.Name)
		}
		changes = append(changes, slipway.AuditSecrets(secrets, set, append(has, set...))...)
	}
	detail := map[string]any{"name": c.Deployment.Name}
	if c.Revision != nil {
		detail["revision_id"] = c.Revision.ID
	}
	return s.audit(tx, who, operation, c.Deployment.ID, detail, changes...)
}

// auditView is what the audit log compares of a deployment; nil for none.
func auditView(d slipway.Deployment) map[string]any {
	if d.ID == "" {
		return nil
	}
	view := map[string]any{
		"status": d.Status, "latest_revision_id": given(d.LatestRevisionID), "active_revision_id": given(d.ActiveRevisionID),
		"name": d.Name, "display_name": given(d.DisplayName), "source": d.Source, "source_config": d.SourceConfig, "source_revision_config": d.SourceRevisionConfig,
		"secret_references": d.SecretReferences, "compute_tier": d.ComputeTier, "database_tier": d.DatabaseTier,
	}
	for name, at := range map[string]time.Time{"deleted_at": d.DeletedAt, "purge_at": d.PurgeAt} {
		if !at.IsZero() {
			view[name] = at.UTC()
		}
	}
	return view
}

// given is nil for a text that there is none of.
func given(text string) any {
	if text == "" {
		return nil
	}
	return text
}

const (
	// refusalEvery is how often the same refusal is recorded anew; a caller that tries again and again fills no log.
	refusalEvery = time.Minute
	// refusalLimit bounds how many refusals are remembered as recorded.
	refusalLimit = 10000
)

// refusals remembers which refused attempts were recorded lately. It is safe for concurrent use.
type refusals struct {
	mu       sync.Mutex
	recorded map[refusal]time.Time
}

type refusal struct{ principal, tenant, operation, subject string }

func newRefusals() *refusals { return &refusals{recorded: map[refusal]time.Time{}} }

// fresh says whether a refusal is to be recorded.
func (r *refusals) fresh(what refusal, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at, ok := r.recorded[what]; ok && now.Sub(at) < refusalEvery {
		return false
	}
	if len(r.recorded) >= refusalLimit {
		clear(r.recorded)
	}
	r.recorded[what] = now
	return true
}

// Refused records an attempt that was answered with 403, by somebody who is known. The same attempt within a minute is
// recorded once. It never fails: the answer is given already, and what goes wrong is logged.
func (s *Service) Refused(ctx context.Context, who slipway.Principal, operation, subject string) {
	if who.ID == "" || !s.refused.fresh(refusal{who.ID, who.TenantID, operation, subject}, s.clock()) {
		return
	}
	err := s.store.Update(context.WithoutCancel(ctx), func(tx slipway.Tx) error {
		return tx.AppendAudit(slipway.AuditEntry{
			ID: s.ids(), TenantID: who.TenantID, Principal: who.ID, Operation: operation, Subject: subject, Outcome: slipway.OutcomeRefused,
			Address: who.Address, RequestID: who.RequestID, Detail: "{}", At: s.clock(),
		})
	})
	if err != nil {
		s.log.Error("refused attempt not recorded", "operation", operation, "principal", who.ID, "error", err)
	}
}

// auditScope is the tenant whose entries the caller sees: that in which it acts, or, for an organisation-wide admin that
// chose none, "" for all.
func auditScope(who slipway.Principal) (string, error) {
	if who.TenantID == "" {
		return "", authorizeOrganisation(who, mayReadAudit)
	}
	return who.TenantID, authorize(who, mayReadAudit)
}

// Audit returns one page of the audit log, newest first.
func (s *Service) Audit(ctx context.Context, who slipway.Principal, q slipway.AuditQuery) ([]slipway.AuditEntry, error) {
	scope, err := auditScope(who)
	if err != nil {
		return nil, err
	}
	q.TenantID = scope
	var out []slipway.AuditEntry
	err = s.store.View(ctx, func(tx slipway.Tx) (err error) {
		out, err = tx.AuditEntries(q)
		return err
	})
	return out, wrap("read audit log", err)
}

// auditPage is how many entries an export holds in memory at a time.
const auditPage = 500

// ExportAudit calls fn with the audit log page by page, newest first, until its end or an error, which it returns. Entries that
// are written meanwhile are newer than where it began and do not come.
func (s *Service) ExportAudit(ctx context.Context, who slipway.Principal, q slipway.AuditQuery, fn func([]slipway.AuditEntry) error) error {
	for q.Limit = auditPage; ; {
		page, err := s.Audit(ctx, who, q)
		if err != nil {
			return err
		}
		if err := fn(page); err != nil {
			return err
		}
		if len(page) < auditPage {
			return nil
		}
		last := page[len(page)-1]
		q.After = slipway.AuditCursor{At: last.At, ID: last.ID}
	}
}

// sweepBatch bounds how many entries one transaction of a sweep removes, so that nobody waits long behind it.
const sweepBatch = 1000

// SweepAudit removes what is older than the retention.
func (s *Service) SweepAudit(ctx context.Context) error {
	if s.cfg.AuditRetention < 0 {
		return nil
	}
	before := s.clock().Add(-s.cfg.AuditRetention)
	for n := sweepBatch; n == sweepBatch; {
		err := s.store.Update(ctx, func(tx slipway.Tx) (err error) {
			n, err = tx.DeleteAudit(before, sweepBatch)
			return err
		})
		if err != nil {
			return fmt.Errorf("sweep audit log: %w", err)
		}
	}
	return nil
}
