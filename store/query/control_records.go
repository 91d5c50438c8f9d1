package query

import (
	"encoding/json"
	"time"

	"github.com/slipway-dev/slipway"
)

// Records of the control store are kept whole as JSON beside the columns that are searched.
func doc[T any](s scanner) (v T, err error) {
	var text string
	if err := s.Scan(&text); err != nil {
		return v, err
	}
	return v, json.Unmarshal([]byte(text), &v)
}

// find returns one record, CodeNotFound with the sentence if there is none.
func find[T any](c Conn, missing, query string, args ...any) (T, error) {
	v, ok, err := one(c, doc[T], query, args...)
	if err == nil && !ok {
		err = slipway.Errorf(slipway.CodeNotFound, "%s", missing)
	}
	return v, err
}

// Deployment returns one deployment.
func (t *tx) Deployment(tenantID, id string) (slipway.Deployment, error) {
	return find[slipway.Deployment](t.c, "Deployment "+id+" does not exist",
		`SELECT doc FROM deployments WHERE id = ?1 AND (?2 = '' OR tenant_id = ?2)`, id, tenantID)
}

// DeploymentByName finds also deployments awaiting deletion.
func (t *tx) DeploymentByName(tenantID, name string) (slipway.Deployment, error) {
	return find[slipway.Deployment](t.c, "Deployment "+name+" does not exist",
		`SELECT doc FROM deployments WHERE name = ?1 AND (?2 = '' OR tenant_id = ?2) ORDER BY created_at LIMIT 1`, name, tenantID)
}

// Deployments lists deployments.
func (t *tx) Deployments(q slipway.DeploymentQuery) ([]slipway.Deployment, error) {
	if q.NameContains != "" {
		return t.exactFirst(q)
	}
	return t.newestFirst(t.deploymentsWhere(q), q.Limit, q.Offset)
}

// newestFirst reads a page in the order of an index, so that what it costs is the page and not the table.
func (t *tx) newestFirst(w *where, limit, offset int) ([]slipway.Deployment, error) {
	tail, args := w.page(" ORDER BY created_at DESC, id DESC", limit, offset)
	return all(t.c, doc[slipway.Deployment], `SELECT doc FROM deployments`+tail, args...)
}

// exactFirst lists the deployments that bear the name before those that contain it.
func (t *tx) exactFirst(q slipway.DeploymentQuery) ([]slipway.Deployment, error) {
	exact := t.deploymentsWhere(q)
	exact.and("name = ?", q.NameContains)
	first, err := t.newestFirst(exact, 0, 0)
	if err != nil {
		return nil, err
	}
	skipped := min(q.Offset, len(first))
	first, q.Offset = first[skipped:], q.Offset-skipped
	if q.Limit > 0 {
		if len(first) >= q.Limit {
			return first[:q.Limit], nil
		}
		q.Limit -= len(first)
	}
	others := t.deploymentsWhere(q)
	others.and("name <> ?", q.NameContains)
	rest, err := t.newestFirst(others, q.Limit, q.Offset)
	return append(first, rest...), err
}

const putDeployment = `
INSERT INTO deployments (id, tenant_id, name, status, image_version, type, integration_id, listener_id, created_at, due_at, doc)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET status = excluded.status, name = excluded.name, image_version = excluded.image_version,
  type = excluded.type, due_at = excluded.due_at, doc = excluded.doc`

// PutDeployment inserts or replaces a deployment.
func (t *tx) PutDeployment(d slipway.Deployment) error {
	_, err := t.c.Exec(putDeployment, d.ID, d.TenantID, d.Name, d.Status, d.ImageVersion, orEmpty(d.SourceConfig.DeploymentType),
		orEmpty(d.SourceConfig.IntegrationID), d.ListenerID(), micros(d.CreatedAt), micros(d.Due()), encode(d))
	if t.taken(err, `SELECT 1 FROM deployments WHERE tenant_id = ? AND name = ? AND id <> ?`, d.TenantID, d.Name, d.ID) {
		return slipway.Errorf(slipway.CodeConflict, "a deployment named %q exists already; choose another name", d.Name)
	}
	return err
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// taken says whether err comes from a record that the query finds; other broken rules are faults of ours.
func (t *tx) taken(err error, query string, args ...any) bool {
	if err == nil || !t.dialect.Unique(err) {
		return false
	}
	_, ok, _ := one(t.c, scalar[int], query, args...)
	return ok
}

// PurgeDeployment removes a deployment with everything that hangs on it.
func (t *tx) PurgeDeployment(id string) error {
	for _, table := range []string{"logs", "uploads", "secret_sets", "tracing_projects", "api_keys", "revisions"} {
		if _, err := t.c.Exec(`DELETE FROM `+table+` WHERE deployment_id = ?`, id); err != nil {
			return err
		}
	}
	_, err := t.c.Exec(`DELETE FROM deployments WHERE id = ?`, id)
	return err
}

// Revision returns one revision.
func (t *tx) Revision(tenantID, deploymentID, id string) (slipway.Revision, error) {
	return find[slipway.Revision](t.c, "Revision "+id+" does not exist",
		`SELECT doc FROM revisions WHERE id = ?1 AND (?2 = '' OR tenant_id = ?2) AND (?3 = '' OR deployment_id = ?3)`, id, tenantID, deploymentID)
}

// Revisions lists revisions.
func (t *tx) Revisions(q slipway.RevisionQuery) ([]slipway.Revision, error) {
	w, order := &where{}, " ORDER BY created_at DESC, id DESC"
	if q.TenantID != "" {
		w.and("tenant_id = ?", q.TenantID)
	}
	if q.DeploymentID != "" {
		w.and("deployment_id = ?", q.DeploymentID)
		order = " ORDER BY number DESC"
	}
	in(w, "status", q.Statuses)
	tail, args := w.page(order, q.Limit, q.Offset)
	return all(t.c, doc[slipway.Revision], `SELECT doc FROM revisions`+tail, args...)
}

const putRevision = `
INSERT INTO revisions (id, deployment_id, tenant_id, number, status, created_at, lease_expires, doc) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET status = excluded.status, lease_expires = excluded.lease_expires, doc = excluded.doc`

// PutRevision inserts or replaces a revision.
func (t *tx) PutRevision(r slipway.Revision) error {
	return t.c.Send(putRevision, r.ID, r.DeploymentID, r.TenantID, r.Number, r.Status, micros(r.CreatedAt), micros(r.LeaseExpires), encode(r))
}

// claimBuild looks at one revision of each tenant that waits: the tenants are found by leaps through an index, so that the
// length of the queue does not matter.
const claimBuild = `
WITH RECURSIVE
waiting(tenant_id) AS (
  SELECT CASE WHEN ?2 <> '' THEN ?2 ELSE (SELECT min(tenant_id) FROM revisions WHERE status = 'AWAITING_BUILD') END
  UNION ALL
  SELECT (SELECT min(r.tenant_id) FROM revisions AS r WHERE r.status = 'AWAITING_BUILD' AND r.tenant_id > waiting.tenant_id)
  FROM waiting WHERE waiting.tenant_id IS NOT NULL AND ?2 = ''
),
busy(tenant_id, n) AS (SELECT tenant_id, count(*) FROM revisions WHERE status = 'BUILDING' AND lease_expires > ?1 GROUP BY tenant_id),
next(id) AS (
  SELECT (
    SELECT r.id FROM revisions AS r WHERE r.status = 'AWAITING_BUILD' AND r.tenant_id = waiting.tenant_id ORDER BY r.created_at, r.id LIMIT 1
  ) FROM waiting WHERE waiting.tenant_id IS NOT NULL
  UNION ALL
  SELECT id FROM revisions WHERE status = 'BUILDING' AND lease_expires <= ?1 AND (?2 = '' OR tenant_id = ?2)
)
SELECT doc FROM revisions WHERE id = (
  SELECT r.id FROM next
  JOIN revisions AS r ON r.id = next.id
  LEFT JOIN busy ON busy.tenant_id = r.tenant_id
  LEFT JOIN build_turns AS turn ON turn.tenant_id = r.tenant_id
  ORDER BY coalesce(busy.n, 0), coalesce(turn.at, 0), r.created_at, r.id LIMIT 1
)`

// ClaimBuild returns the next revision that waits for a build; tenants take turns.
func (t *tx) ClaimBuild(tenantID string, now time.Time) (slipway.Revision, error) {
	return find[slipway.Revision](t.c, "no revision waits for a build", claimBuild, micros(now), tenantID)
}

// AppendRevisionEvent records one step of a revision's life.
func (t *tx) AppendRevisionEvent(e slipway.RevisionEvent) error {
	return t.c.Send(`INSERT INTO revision_events (revision_id, status, reason, at) VALUES (?, ?, ?, ?)`, e.RevisionID, e.Status, e.Reason, micros(e.At))
}

// RevisionEvents returns a revision's life in order.
func (t *tx) RevisionEvents(revisionID string) ([]slipway.RevisionEvent, error) {
	return all(t.c, func(s scanner) (e slipway.RevisionEvent, err error) {
		var at int64
		err = s.Scan(&e.RevisionID, &e.Seq, &e.Status, &e.Reason, &at)
		e.At = fromMicros(at)
		return e, err
	}, `SELECT revision_id, seq, status, reason, at FROM revision_events WHERE revision_id = ? ORDER BY seq`, revisionID)
}

// PutSecretSet stores one version of a deployment's secrets.
func (t *tx) PutSecretSet(s slipway.SecretSet) error {
	return t.c.Send(`INSERT INTO secret_sets (id, deployment_id, tenant_id, doc) VALUES (?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET doc = excluded.doc`, s.ID, s.DeploymentID, s.TenantID, encode(s))
}

// SecretSet returns one version of a deployment's secrets.
func (t *tx) SecretSet(id string) (slipway.SecretSet, error) {
	return find[slipway.SecretSet](t.c, "Secret set "+id+" does not exist", `SELECT doc FROM secret_sets WHERE id = ?`, id)
}

const selectSecretSets = `SELECT s.doc FROM json_each(?) AS w CROSS JOIN secret_sets AS s WHERE s.id = w.value ->> 0`

// SecretSets returns those of the sets that exist.
func (t *tx) SecretSets(ids []string) ([]slipway.SecretSet, error) {
	return all(t.c, doc[slipway.SecretSet], selectSecretSets, encode(rows(ids)))
}

// Logs lists log lines of one deployment.
func (t *tx) Logs(q slipway.LogQuery) ([]slipway.LogEntry, error) {
	w, order, past := &where{}, " ORDER BY seq", "seq > ?"
	w.and("deployment_id = ? AND kind = ?", q.DeploymentID, string(q.Kind))
	if q.Descending {
		order, past = " ORDER BY seq DESC", "seq < ?"
	}
	if q.RevisionID != "" {
		w.and("revision_id = ?", q.RevisionID)
	}
	if q.After != 0 {
		w.and(past, q.After)
	}
	if !q.From.IsZero() {
		w.and("at >= ?", micros(q.From))
	}
	if !q.To.IsZero() {
		w.and("at <= ?", micros(q.To))
	}
	if q.Level != "" {
		w.and("level = ?", q.Level)
	}
	if q.Contains != "" {
		w.and(t.dialect.Folded("message"), q.Contains)
	}
	if q.RunID != "" {
		w.and(t.dialect.Folded("message"), "run_id="+q.RunID)
	}
	tail, args := w.page(order, q.Limit, 0)
	return all(t.c, scanLog, `SELECT seq, deployment_id, revision_id, kind, at, level, message FROM logs`+tail, args...)
}

func scanLog(s scanner) (e slipway.LogEntry, err error) {
	var at int64
	err = s.Scan(&e.Seq, &e.DeploymentID, &e.RevisionID, &e.Kind, &at, &e.Level, &e.Message)
	e.At = fromMicros(at)
	return e, err
}
