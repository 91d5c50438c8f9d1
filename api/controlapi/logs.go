package controlapi

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/api/authn"
	"github.com/slipway-dev/slipway/control"
)

// LogEntry is one line; the timestamp is in milliseconds since 1970 with a fraction (control-plane reference 3).
type LogEntry struct {
	ID        string  `json:"id" required:"true"`
	Timestamp float64 `json:"timestamp" required:"true"`
	Level     string  `json:"level" required:"true"`
	Message   string  `json:"message" required:"true"`
}

// LogsResponse is a page of log lines; next_offset is null only at the end of a finished stream.
type LogsResponse struct {
	Logs       []LogEntry `json:"logs" required:"true" nullable:"false"`
	NextOffset *string    `json:"next_offset" required:"true"`
}

// DeploymentLogsList is LogsResponse as GET /v2/deployment-logs calls it.
type DeploymentLogsList struct {
	Items      []LogEntry `json:"items" required:"true" nullable:"false"`
	NextCursor *string    `json:"next_cursor" required:"true"`
}

// LogFilter selects log lines by what they say.
type LogFilter struct {
	StartTime time.Time `query:"start_time" doc:"inclusive"`
	EndTime   time.Time `query:"end_time" doc:"inclusive"`
	Query     string    `query:"query" doc:"part of the message, any case"`
	Level     string    `query:"level" enum:"DEBUG,INFO,WARNING,ERROR,CRITICAL"`
	RunID     string    `query:"run_id" format:"uuid" doc:"lines that name this run"`
}

// LogPager selects a page of log lines.
type LogPager struct {
	Order  string `query:"order" enum:"asc,desc" default:"asc"`
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"50"`
	Offset string `query:"offset"`
}

type revisionLogsInput struct {
	RevisionPath
	LogFilter
	LogPager
	Type string `query:"type" required:"true" enum:"build,deploy"`
}

type deploymentLogsInput struct {
	DeploymentPath
	LogFilter
	LogPager
}

type allLogsInput struct {
	LogFilter
	DeploymentID string `query:"deployment_id" required:"true" format:"uuid"`
	RevisionID   string `query:"revision_id" format:"uuid"`
	LogType      string `query:"log_type" enum:"BUILD,DEPLOY" default:"DEPLOY"`
	SortOrder    string `query:"sort_order" enum:"asc,desc" default:"asc"`
	PageSize     int    `query:"page_size" minimum:"1" maximum:"100" default:"20"`
	Cursor       string `query:"cursor"`
}

// LogsRequest is the body of the log reads that stock clients make by POST.
type LogsRequest struct {
	Order     *string    `json:"order" enum:"asc,desc"`
	Limit     *int       `json:"limit" minimum:"1" maximum:"1000"`
	Offset    *string    `json:"offset"`
	Level     *string    `json:"level" enum:"DEBUG,INFO,WARNING,ERROR,CRITICAL"`
	Query     *string    `json:"query"`
	StartTime *time.Time `json:"start_time"`
	EndTime   *time.Time `json:"end_time"`
}

// ProjectPath is the path parameter of the older log calls; a project id is a deployment id.
type ProjectPath struct {
	ProjectID string `path:"project_id" format:"uuid"`
}

type projectLogsInput struct {
	ProjectPath
	Body *LogsRequest
}

type projectRevisionLogsInput struct {
	ProjectPath
	RevisionID string `path:"revision_id" format:"uuid"`
	Body       *LogsRequest
}

type logsOutput struct{ Body LogsResponse }

func (a *api) logs() {
	project := "/v1/projects/{project_id}"
	huma.Register(a.huma, operation("get_revision_logs", http.MethodGet, revisionsPath+"/{revision_id}/logs", "Read a revision's logs", 404), a.revisionLogs)
	huma.Register(a.huma, operation("get_deployment_logs", http.MethodGet, deploymentsPath+"/{deployment_id}/logs", "Read the deploy logs of all revisions", 404), a.deploymentLogs)
	huma.Register(a.huma, reaching(control.ReachDeployment, operation("list_deployment_logs", http.MethodGet, "/v2/deployment-logs", "Read logs by cursor", 404)), a.allLogs)
	huma.Register(a.huma, operation("read_project_build_logs", http.MethodPost, project+"/revisions/{revision_id}/build_logs", "Read a revision's build logs", 404), a.projectBuildLogs)
	huma.Register(a.huma, operation("read_project_revision_deploy_logs", http.MethodPost, project+"/revisions/{revision_id}/deploy_logs", "Read a revision's deploy logs", 404), a.projectRevisionLogs)
	huma.Register(a.huma, operation("read_project_deploy_logs", http.MethodPost, project+"/deploy_logs", "Read the deploy logs of all revisions", 404), a.projectLogs)
}

// query makes the query of the filter. Lines name their run as run_id=ID.
func (f LogFilter) query() slipway.LogQuery {
	return slipway.LogQuery{From: f.StartTime, To: f.EndTime, Contains: f.Query, Level: f.Level, RunID: f.RunID}
}

func (a *api) readLogs(ctx context.Context, q slipway.LogQuery, offset string) (*logsOutput, error) {
	page, err := a.svc.Logs(ctx, authn.Principal(ctx), q, offset)
	if err != nil {
		return nil, a.problem(err)
	}
	return &logsOutput{LogsResponse{Logs: entries(page), NextOffset: page.Next}}, nil
}

func entries(page control.LogPage) []LogEntry {
	out := make([]LogEntry, len(page.Entries))
	for i, e := range page.Entries {
		out[i] = LogEntry{ID: strconv.FormatInt(e.Seq, 10), Timestamp: float64(e.At.UnixMicro()) / 1000, Level: e.Level, Message: e.Message}
	}
	return out
}

func (a *api) revisionLogs(ctx context.Context, in *revisionLogsInput) (*logsOutput, error) {
	q := in.query()
	q.DeploymentID, q.RevisionID, q.Kind = in.DeploymentID, in.RevisionID, slipway.LogKind(in.Type)
	q.Descending, q.Limit = in.Order == "desc", in.Limit
	return a.readLogs(ctx, q, in.Offset)
}

func (a *api) deploymentLogs(ctx context.Context, in *deploymentLogsInput) (*logsOutput, error) {
	q := in.query()
	q.DeploymentID, q.Kind = in.DeploymentID, slipway.LogDeploy
	q.Descending, q.Limit = in.Order == "desc", in.Limit
	return a.readLogs(ctx, q, in.Offset)
}

func (a *api) allLogs(ctx context.Context, in *allLogsInput) (*struct{ Body DeploymentLogsList }, error) {
	q := in.query()
	q.DeploymentID, q.RevisionID, q.Kind = in.DeploymentID, in.RevisionID, slipway.LogDeploy
	if in.LogType == "BUILD" {
		q.Kind = slipway.LogBuild
	}
	q.Descending, q.Limit = in.SortOrder == "desc", in.PageSize
	out, err := a.readLogs(ctx, q, in.Cursor)
	if err != nil {
		return nil, err
	}
	return &struct{ Body DeploymentLogsList }{DeploymentLogsList{out.Body.Logs, out.Body.NextOffset}}, nil
}

func (a *api) projectBuildLogs(ctx context.Context, in *projectRevisionLogsInput) (*logsOutput, error) {
	q, offset := in.Body.query(in.ProjectID, in.RevisionID, slipway.LogBuild)
	return a.readLogs(ctx, q, offset)
}

func (a *api) projectRevisionLogs(ctx context.Context, in *projectRevisionLogsInput) (*logsOutput, error) {
	q, offset := in.Body.query(in.ProjectID, in.RevisionID, slipway.LogDeploy)
	return a.readLogs(ctx, q, offset)
}

func (a *api) projectLogs(ctx context.Context, in *projectLogsInput) (*logsOutput, error) {
	q, offset := in.Body.query(in.ProjectID, "", slipway.LogDeploy)
	return a.readLogs(ctx, q, offset)
}

// query makes the query of a body, which may be absent.
func (r *LogsRequest) query(deploymentID, revisionID string, kind slipway.LogKind) (slipway.LogQuery, string) {
	q := slipway.LogQuery{DeploymentID: deploymentID, RevisionID: revisionID, Kind: kind, Limit: 50}
	if r == nil {
		return q, ""
	}
	q.Descending = value(r.Order) == "desc"
	q.Level, q.Contains, q.From, q.To = value(r.Level), value(r.Query), value(r.StartTime), value(r.EndTime)
	if r.Limit != nil {
		q.Limit = *r.Limit
	}
	return q, value(r.Offset)
}

func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
