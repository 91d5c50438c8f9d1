package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// LogEntry is one log line.
type LogEntry struct {
	ID        string  `json:"id"`
	Timestamp float64 `json:"timestamp"` // epoch milliseconds
	Level     string  `json:"level"`
	Message   string  `json:"message"`
}

// Time returns when the line was written.
func (e LogEntry) Time() time.Time { return time.UnixMicro(int64(e.Timestamp * 1000)) }

// LogFilter selects among log lines; what is empty selects nothing out.
type LogFilter struct {
	From, To time.Time // both inclusive
	Contains string
	Level    string // DEBUG, INFO, WARNING, ERROR or CRITICAL
	RunID    string
}

func (f LogFilter) query() url.Values {
	q := url.Values{}
	moment(q, "start_time", f.From)
	moment(q, "end_time", f.To)
	text(q, "query", f.Contains)
	text(q, "level", f.Level)
	text(q, "run_id", f.RunID)
	return q
}

// LogQuery selects a page of log lines. Without RevisionID the deploy logs of all revisions are read.
type LogQuery struct {
	LogFilter
	DeploymentID string
	RevisionID   string
	Build        bool   // build logs of the revision; else deploy logs
	Offset       string // NextOffset of the page before; "" = from the start
	Descending   bool
	Limit        int // 1..1000; 0 = the server's own 50
}

// Logs returns a page of log lines and the offset behind it; "" means that the stream has ended.
func (c *Client) Logs(ctx context.Context, q LogQuery) (entries []LogEntry, next string, err error) {
	path := "/v2/deployments/" + url.PathEscape(q.DeploymentID) + "/logs"
	values := q.query()
	if q.RevisionID != "" {
		path = revisionsPath(q.DeploymentID) + "/" + url.PathEscape(q.RevisionID) + "/logs"
		values.Set("type", q.kind("build", "deploy"))
	}
	values.Set("order", q.order())
	number(values, "limit", q.Limit)
	text(values, "offset", q.Offset)
	return c.logs(ctx, http.MethodGet, path, values, nil)
}

// ProjectLogs reads the same page by the older calls below /v1/projects, as stock clients do. They know no RunID.
func (c *Client) ProjectLogs(ctx context.Context, q LogQuery) (entries []LogEntry, next string, err error) {
	path := "/v1/projects/" + url.PathEscape(q.DeploymentID)
	if q.RevisionID != "" {
		path += "/revisions/" + url.PathEscape(q.RevisionID)
	}
	body := logsRequest{Order: q.order(), Limit: q.Limit, Offset: q.Offset, Query: q.Contains, Level: q.Level}
	body.StartTime, body.EndTime = instant(q.From), instant(q.To)
	return c.logs(ctx, http.MethodPost, path+q.kind("/build_logs", "/deploy_logs"), nil, body)
}

// logsRequest is the body of the calls below /v1/projects.
type logsRequest struct {
	Order     string     `json:"order,omitempty"`
	Limit     int        `json:"limit,omitempty"`
	Offset    string     `json:"offset,omitempty"`
	Query     string     `json:"query,omitempty"`
	Level     string     `json:"level,omitempty"`
	StartTime *time.Time `json:"start_time,omitempty"`
	EndTime   *time.Time `json:"end_time,omitempty"`
}

func (c *Client) logs(ctx context.Context, method, path string, values url.Values, in any) ([]LogEntry, string, error) {
	var out struct {
		Logs       []LogEntry `json:"logs"`
		NextOffset *string    `json:"next_offset"`
	}
	err := c.do(ctx, method, path, values, in, &out)
	return out.Logs, value(out.NextOffset), err
}

// DeploymentLogs reads the same page with cursors: Offset is the cursor, and a revision may be left out for build logs too.
func (c *Client) DeploymentLogs(ctx context.Context, q LogQuery) (entries []LogEntry, next string, err error) {
	values := q.query()
	values.Set("deployment_id", q.DeploymentID)
	text(values, "revision_id", q.RevisionID)
	values.Set("log_type", q.kind("BUILD", "DEPLOY"))
	values.Set("sort_order", q.order())
	number(values, "page_size", q.Limit)
	text(values, "cursor", q.Offset)
	var out struct {
		Items      []LogEntry `json:"items"`
		NextCursor *string    `json:"next_cursor"`
	}
	err = c.do(ctx, http.MethodGet, "/v2/deployment-logs", values, nil, &out)
	return out.Items, value(out.NextCursor), err
}

func (q LogQuery) kind(build, deploy string) string {
	if q.Build {
		return build
	}
	return deploy
}

func (q LogQuery) order() string {
	if q.Descending {
		return "desc"
	}
	return "asc"
}
