package controlapi

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/api/authn"
	"github.com/slipway-dev/slipway/control"
)

const auditPath = "/v2/audit-logs"

// AuditLogEntry is who did what, to what, from where, and what changed.
type AuditLogEntry struct {
	ID        string         `json:"id" required:"true" doc:"id of the entry"`
	Time      time.Time      `json:"time" required:"true" doc:"when it happened"`
	TenantID  *string        `json:"tenant_id" required:"true" doc:"the tenant it happened in; null if it concerns the organization"`
	Principal string         `json:"principal" required:"true" doc:"who did it: key:PREFIX, user:SUBJECT, proxy:USER, or a part of the platform"`
	Operation string         `json:"operation" required:"true" doc:"what was done or attempted, e.g. create_deployment"`
	Subject   *string        `json:"subject" required:"true" doc:"id of what it was done to"`
	Outcome   string         `json:"outcome" required:"true" enum:"success,refused" doc:"refused: it was answered with 403 and changed nothing"`
	Address   *string        `json:"address" required:"true" doc:"address of the client; null if the platform did it itself"`
	RequestID *string        `json:"request_id" required:"true" doc:"the X-Request-Id of the answer"`
	Detail    map[string]any `json:"detail" required:"true" nullable:"false" doc:"what else tells what happened"`
	Changes   []AuditChange  `json:"changes" required:"true" nullable:"false" doc:"the fields that changed, before and after"`
}

// AuditChange is one field before and after.
type AuditChange struct {
	Field  string `json:"field" required:"true" doc:"path of the field, e.g. source_config.repo_url"`
	Before any    `json:"before" required:"true" doc:"its value before; null if there was none; of a secret only the mask"`
	After  any    `json:"after" required:"true" doc:"its value after; null if there is none; of a secret only the mask"`
}

// AuditLogList is one page of the audit log.
type AuditLogList struct {
	Resources []AuditLogEntry `json:"resources" required:"true" nullable:"false" doc:"the entries of this page, newest first"`
	Cursor    *string         `json:"cursor" required:"true" doc:"give it to read on; null at the end"`
}

// AuditFilter selects audit entries.
type AuditFilter struct {
	Operation string    `query:"operation" maxLength:"200" doc:"exact operation, e.g. create_deployment"`
	Principal string    `query:"principal" maxLength:"200" doc:"exact principal, e.g. key:slw_abcdefgh"`
	Subject   string    `query:"subject" maxLength:"200" doc:"id of what was changed"`
	Outcome   string    `query:"outcome" enum:"success,refused" doc:"how it ended"`
	RequestID string    `query:"request_id" maxLength:"200" doc:"the X-Request-Id of an answer"`
	From      time.Time `query:"from" doc:"not before this time (RFC 3339)"`
	To        time.Time `query:"to" doc:"before this time (RFC 3339)"`
}

func (f AuditFilter) query() slipway.AuditQuery {
	return slipway.AuditQuery{
		Operation: f.Operation, Principal: f.Principal, Subject: f.Subject, Outcome: slipway.Outcome(f.Outcome), RequestID: f.RequestID,
		From: f.From, To: f.To,
	}
}

type auditInput struct {
	AuditFilter
	Limit  int    `query:"limit" minimum:"1" maximum:"100" default:"20" doc:"how many entries at most"`
	Cursor string `query:"cursor" maxLength:"200" doc:"the cursor of the page before"`
}

func (a *api) audit() {
	// Without X-Tenant-Id an organisation-wide admin reads the entries of all tenants.
	wide := func(op huma.Operation) huma.Operation { return reaching(control.ReachOrganisation, op) }
	huma.Register(a.huma, wide(operation("list_audit_logs", http.MethodGet, auditPath, "Read the audit log")), a.listAudit)
	huma.Register(a.huma, wide(exports(operation("export_audit_logs", http.MethodGet, auditPath+"/export", "Export the audit log"))), a.exportAudit)
	huma.Register(a.huma, wide(operation("list_audit_logs_ocsf", http.MethodGet, "/api/v1/audit-logs", "Read the audit log as OCSF API Activity")), a.listOCSF)
}

func (a *api) listAudit(ctx context.Context, in *auditInput) (*struct{ Body AuditLogList }, error) {
	found, next, err := a.auditPage(ctx, in.query(), in.Cursor, in.Limit)
	if err != nil {
		return nil, a.problem(err)
	}
	list := AuditLogList{Resources: []AuditLogEntry{}, Cursor: next}
	for _, e := range found {
		list.Resources = append(list.Resources, auditEntry(e))
	}
	return &struct{ Body AuditLogList }{list}, nil
}

// auditPage reads one page and the cursor of the next; nil at the end.
func (a *api) auditPage(ctx context.Context, q slipway.AuditQuery, cursor string, limit int) ([]slipway.AuditEntry, *string, error) {
	var err error
	if q.After, err = readCursor(cursor); err != nil {
		return nil, nil, err
	}
	q.Limit = limit + 1
	found, err := a.svc.Audit(ctx, authn.Principal(ctx), q)
	if err != nil || len(found) <= limit {
		return found, nil, err
	}
	last := found[limit-1]
	next := base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(last.At.UnixMicro(), 10) + " " + last.ID))
	return found[:limit], &next, nil
}

func readCursor(text string) (slipway.AuditCursor, error) {
	if text == "" {
		return slipway.AuditCursor{}, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	at, id, _ := strings.Cut(string(raw), " ")
	micros, bad := strconv.ParseInt(at, 10, 64)
	if err != nil || bad != nil || id == "" {
		var problems slipway.Problems
		problems.Add([]any{"query", "cursor"}, "%q is no cursor of this list; leave it out to begin anew", text)
		return slipway.AuditCursor{}, problems.Err()
	}
	return slipway.AuditCursor{At: time.UnixMicro(micros).UTC(), ID: id}, nil
}

func auditEntry(e slipway.AuditEntry) AuditLogEntry {
	out := AuditLogEntry{
		ID: e.ID, Time: e.At.UTC(), TenantID: orNull(e.TenantID), Principal: e.Principal, Operation: e.Operation, Subject: orNull(e.Subject),
		Outcome: string(e.Outcome), Address: orNull(e.Address), RequestID: orNull(e.RequestID), Detail: map[string]any{}, Changes: []AuditChange{},
	}
	if json.Unmarshal([]byte(e.Detail), &out.Detail) != nil || out.Detail == nil {
		out.Detail = map[string]any{}
	}
	for _, c := range e.Changes {
		out.Changes = append(out.Changes, AuditChange{Field: c.Field, Before: recorded(c.Before), After: recorded(c.After)})
	}
	return out
}

// recorded is stored JSON as it is, null for none.
func recorded(raw json.RawMessage) any {
	if len(raw) == 0 {
		return nil
	}
	return raw
}
