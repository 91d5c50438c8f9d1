package beaconapi

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/beacon"
)

// VerifyRequest is the body of verify.
type VerifyRequest struct {
	License string `json:"license" doc:"A licence key." minLength:"1" maxLength:"16384"`
}

// VerifyAnswer is the answer of verify.
type VerifyAnswer struct {
	Token string `json:"token" doc:"A short-lived EdDSA JWT; its keys are at /.well-known/jwks.json."`
}

// IngestRequest is the body of ingest-traces.
type IngestRequest struct {
	License           string             `json:"license" doc:"A licence key, or a token of verify." minLength:"1" maxLength:"16384"`
	TraceTransactions []TraceTransaction `json:"trace_transactions" maxItems:"10000" nullable:"false"`
}

// TraceTransaction is one element of ingest-traces (spec 4.5).
type TraceTransaction struct {
	ID                 string `json:"id" format:"uuid" doc:"Counts once for a customer, however often it is sent."`
	TenantID           string `json:"tenant_id" format:"uuid"`
	SessionID          string `json:"session_id" format:"uuid"`
	TraceCount         int64  `json:"trace_count" minimum:"0" maximum:"1000000000"`
	StartInsertionTime string `json:"start_insertion_time" doc:"ISO 8601; UTC if it has no offset."`
	EndInsertionTime   string `json:"end_insertion_time"`
	StartIntervalTime  string `json:"start_interval_time" doc:"Decides the month that is billed."`
	EndIntervalTime    string `json:"end_interval_time"`
	Status             string `json:"status" minLength:"1" maxLength:"100"`
	FailedSends        int64  `json:"num_failed_send_attempts" minimum:"0"`
	TransactionType    string `json:"transaction_type" minLength:"1" maxLength:"100"`
	OrganizationID     string `json:"organization_id" format:"uuid"`
}

// IngestAnswer is the answer of ingest-traces.
type IngestAnswer struct {
	InsertedCount int `json:"inserted_count" doc:"Transactions that were new."`
}

// UsageRequest is the body of usage-snapshot.
type UsageRequest struct {
	LicenseKey    string           `json:"license_key" doc:"A licence key, or a token of verify." minLength:"1" maxLength:"16384"`
	FromTimestamp string           `json:"from_timestamp" doc:"ISO 8601 with UTC offset."`
	ToTimestamp   string           `json:"to_timestamp" doc:"ISO 8601 with UTC offset."`
	Measures      map[string]int64 `json:"measures" nullable:"false" doc:"Counts by name: workspaces, users, projects, experiments, datasets, evaluators, run_rules, annotation_queues, prompts, prompt_commits, prompt_pulls, active_pats_30d, and those of newer versions."`
}

type input[T any] struct{ Body *T }

type output[T any] struct{ Body T }

func operation(id, path, summary string) huma.Operation {
	return huma.Operation{
		OperationID: id, Method: http.MethodPost, Path: path, Summary: summary, MaxBodyBytes: maxBody,
		Errors: []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity, http.StatusTooManyRequests},
	}
}

// billing registers the calls of billing and usage telemetry.
func (a *api) billing() {
	huma.Register(a.huma, operation("verify", "/v1/beacon/verify", "Verify a licence"), a.verify)
	huma.Register(a.huma, operation("ingest_traces", "/v1/beacon/ingest-traces", "Count trace transactions"), a.ingest)
	huma.Register(a.huma, operation("usage_snapshot", "/v1/beacon/usage-snapshot", "Record what an installation uses"), a.usage)
}

func (a *api) verify(ctx context.Context, in *input[VerifyRequest]) (*output[VerifyAnswer], error) {
	if in.Body == nil {
		return nil, a.problem(missingBody())
	}
	token, _, err := a.svc.Verify(ctx, in.Body.License)
	if err != nil {
		return nil, a.problem(err)
	}
	return &output[VerifyAnswer]{VerifyAnswer{Token: token}}, nil
}

func (a *api) ingest(ctx context.Context, in *input[IngestRequest]) (*output[IngestAnswer], error) {
	if in.Body == nil {
		return nil, a.problem(missingBody())
	}
	caller, err := a.svc.Identify(in.Body.License)
	if err != nil {
		return nil, a.problem(err)
	}
	list, err := in.Body.toDomain()
	if err != nil {
		return nil, a.problem(err)
	}
	n, err := a.svc.AddTransactions(ctx, caller, list)
	if err != nil {
		return nil, a.problem(err)
	}
	return &output[IngestAnswer]{IngestAnswer{InsertedCount: n}}, nil
}

func (a *api) usage(ctx context.Context, in *input[UsageRequest]) (*output[struct{}], error) {
	if in.Body == nil {
		return nil, a.problem(missingBody())
	}
	caller, err := a.svc.Identify(in.Body.LicenseKey)
	if err != nil {
		return nil, a.problem(err)
	}
	var problems slipway.Problems
	snapshot := beacon.UsageSnapshot{
		From:     instant(&problems, []any{"body", "from_timestamp"}, in.Body.FromTimestamp, true),
		To:       instant(&problems, []any{"body", "to_timestamp"}, in.Body.ToTimestamp, true),
		Measures: in.Body.Measures,
	}
	if err := problems.Err(); err != nil {
		return nil, a.problem(err)
	}
	if err := a.svc.PutUsage(ctx, caller, snapshot); err != nil {
		return nil, a.problem(err)
	}
	return &output[struct{}]{}, nil
}

func (r IngestRequest) toDomain() ([]beacon.TraceTransaction, error) {
	var problems slipway.Problems
	list := make([]beacon.TraceTransaction, len(r.TraceTransactions))
	for i, t := range r.TraceTransactions {
		at := func(field string) []any { return []any{"body", "trace_transactions", i, field} }
		list[i] = beacon.TraceTransaction{
			ID: t.ID, TenantID: t.TenantID, SessionID: t.SessionID, OrganizationID: t.OrganizationID,
			TraceCount: t.TraceCount, Status: t.Status, FailedSends: t.FailedSends, Type: t.TransactionType,
			StartInsertionTime: instant(&problems, at("start_insertion_time"), t.StartInsertionTime, false),
			EndInsertionTime:   instant(&problems, at("end_insertion_time"), t.EndInsertionTime, false),
			StartIntervalTime:  instant(&problems, at("start_interval_time"), t.StartIntervalTime, false),
			EndIntervalTime:    instant(&problems, at("end_interval_time"), t.EndIntervalTime, false),
		}
		if len(problems) >= maxProblems {
			break
		}
	}
	return list, problems.Err()
}

func instant(problems *slipway.Problems, at []any, text string, needsOffset bool) time.Time {
	t, err := beacon.ParseTime(text, needsOffset)
	if err != nil {
		problems.Add(at, "%s", err.Error())
	}
	return t
}

func missingBody() error {
	var problems slipway.Problems
	problems.Missing([]any{"body"})
	return problems.Err()
}
