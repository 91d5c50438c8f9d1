package client

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"time"
)

// AuditEntry records who did what, to what, from where, and what changed.
type AuditEntry struct {
	ID        string          `json:"id"`
	Time      time.Time       `json:"time"`
	TenantID  *string         `json:"tenant_id"`
	Principal string          `json:"principal"`
	Operation string          `json:"operation"`
	Subject   *string         `json:"subject"`
	Outcome   string          `json:"outcome"`
	Address   *string         `json:"address"`
	RequestID *string         `json:"request_id"`
	Detail    json.RawMessage `json:"detail"`
	Changes   []AuditChange   `json:"changes"`
}

// AuditChange is one field before and after; of a secret only the mask.
type AuditChange struct {
	Field  string          `json:"field"`
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
}

// AuditFilter selects entries; what is empty selects nothing out.
type AuditFilter struct {
	Operation, Principal, Subject, Outcome, RequestID string
	From, To                                          time.Time
}

func (f AuditFilter) query() url.Values {
	q := url.Values{}
	text(q, "operation", f.Operation)
	text(q, "principal", f.Principal)
	text(q, "subject", f.Subject)
	text(q, "outcome", f.Outcome)
	text(q, "request_id", f.RequestID)
	moment(q, "from", f.From)
	moment(q, "to", f.To)
	return q
}

// AuditLogs lists one page, newest first; next is the cursor of the following page, "" at the end.
func (c *Client) AuditLogs(ctx context.Context, f AuditFilter, limit int, cursor string) (list []AuditEntry, next string, err error) {
	q := f.query()
	number(q, "limit", limit)
	text(q, "cursor", cursor)
	var out struct {
		Resources []AuditEntry `json:"resources"`
		Cursor    *string      `json:"cursor"`
	}
	err = c.do(ctx, http.MethodGet, "/v2/audit-logs", q, nil, &out)
	return out.Resources, value(out.Cursor), err
}

// ExportAuditLogs writes the whole selection, newest first, one entry a line; format is "jsonl" or "csv", "" for the server's
// own. It takes as long as it takes: bound it by ctx.
func (c *Client) ExportAuditLogs(ctx context.Context, f AuditFilter, format string, to io.Writer) error {
	q := f.query()
	text(q, "format", format)
	req, err := c.request(ctx, http.MethodGet, "/v2/audit-logs/export", q, nil)
	if err != nil {
		return err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return c.transportError(ctx, err)
	}
	defer res.Body.Close()
	if res.StatusCode >= 300 {
		return answerError(res)
	}
	_, err = io.Copy(to, res.Body)
	return err
}

// AuditActivities lists one page in the shape of OCSF API Activity, each as it is; next is the cursor of the following page.
func (c *Client) AuditActivities(ctx context.Context, from, to time.Time, operation string, limit int, cursor string) (list []json.RawMessage, next string, err error) {
	q := url.Values{}
	moment(q, "start_time", from)
	moment(q, "end_time", to)
	text(q, "operation", operation)
	number(q, "limit", limit)
	text(q, "cursor", cursor)
	var out struct {
		Items  []json.RawMessage `json:"items"`
		Cursor *string           `json:"cursor"`
	}
	err = c.do(ctx, http.MethodGet, "/api/v1/audit-logs", q, nil, &out)
	return out.Items, value(out.Cursor), err
}
