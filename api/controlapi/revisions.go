package controlapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/api/authn"
)

const revisionsPath = deploymentsPath + "/{deployment_id}/revisions"

// RevisionPath are the path parameters of calls about one revision.
type RevisionPath struct {
	DeploymentPath
	RevisionID string `path:"revision_id" format:"uuid"`
}

type revisionsInput struct {
	DeploymentPath
	Page
	Status string `query:"status" doc:"comma-separated statuses"`
	RemoteReconciled
}

type revisionOutput struct{ Body Revision }

// RevisionEventsList are the steps of a revision's life.
type RevisionEventsList struct {
	Events []RevisionEvent `json:"events" required:"true" nullable:"false" doc:"the steps, oldest first"`
}

type eventsOutput struct{ Body RevisionEventsList }

type reviseInput struct {
	DeploymentPath
	Body *DeploymentPatchRequest // may be absent: nothing is to change
}

func (a *api) revisions() {
	one := revisionsPath + "/{revision_id}"
	huma.Register(a.huma, operation("list_revisions", http.MethodGet, revisionsPath, "List revisions", 404), a.listRevisions)
	huma.Register(a.huma, created(operation("create_revision", http.MethodPost, revisionsPath, "Make a revision", 400, 404)), a.createRevision)
	huma.Register(a.huma, operation("get_revision", http.MethodGet, one, "Read a revision", 404), a.getRevision)
	huma.Register(a.huma, operation("redeploy_revision", http.MethodPost, one+"/redeploy", "Deploy a revision's blueprint again", 400, 404), a.redeploy)
	huma.Register(a.huma, operation("interrupt_revision", http.MethodPost, one+"/interruption", "Stop a revision's build or rollout", 400, 404), a.interrupt)
	huma.Register(a.huma, operation("diff_revisions", http.MethodGet, one+"/diff", "Compare two revisions of a deployment", 404), a.diffRevisions)
	huma.Register(a.huma, operation("list_revision_events", http.MethodGet, one+"/events", "List the steps of a revision's life", 404), a.listEvents)
}

func (a *api) answerRevision(r slipway.Revision, err error) (*revisionOutput, error) {
	if err != nil {
		return nil, a.problem(err)
	}
	return &revisionOutput{a.revision(r)}, nil
}

func (a *api) listRevisions(ctx context.Context, in *revisionsInput) (*struct{ Body RevisionsList }, error) {
	q := slipway.RevisionQuery{DeploymentID: in.DeploymentID, Limit: in.Limit, Offset: in.Offset}
	for _, status := range commas(in.Status) {
		q.Statuses = append(q.Statuses, slipway.RevisionStatus(status))
	}
	var problems slipway.Problems
	oneOf(&problems, "status", commas(in.Status), revisionStatus, "status of a revision")
	if err := problems.Err(); err != nil {
		return nil, a.problem(err)
	}
	found, err := a.svc.Revisions(ctx, authn.Principal(ctx), q)
	if err != nil {
		return nil, a.problem(err)
	}
	if remote := in.RemoteReconciled.filter(); remote != nil && len(found) > 0 && *remote != (found[0].SourceConfig.ListenerID != nil) {
		found = nil // a deployment's listener never changes, so its revisions all have the same
	}
	list := RevisionsList{Resources: []Revision{}, Offset: in.Offset + len(found)}
	for _, r := range found {
		list.Resources = append(list.Resources, a.revision(r))
	}
	return &struct{ Body RevisionsList }{list}, nil
}

func (a *api) getRevision(ctx context.Context, in *RevisionPath) (*revisionOutput, error) {
	return a.answerRevision(a.svc.Revision(ctx, authn.Principal(ctx), in.DeploymentID, in.RevisionID))
}

func (a *api) createRevision(ctx context.Context, in *reviseInput) (*revisionOutput, error) {
	var body DeploymentPatchRequest
	if in.Body != nil {
		body = *in.Body
	}
	return a.answerRevision(a.svc.Revise(ctx, authn.Principal(ctx), in.DeploymentID, body.domain()))
}

func (a *api) redeploy(ctx context.Context, in *RevisionPath) (*deploymentOutput, error) {
	return a.answer(a.svc.Redeploy(ctx, authn.Principal(ctx), in.DeploymentID, in.RevisionID))
}

func (a *api) interrupt(ctx context.Context, in *RevisionPath) (*revisionOutput, error) {
	return a.answerRevision(a.svc.Interrupt(ctx, authn.Principal(ctx), in.DeploymentID, in.RevisionID))
}

func (a *api) listEvents(ctx context.Context, in *RevisionPath) (*eventsOutput, error) {
	events, err := a.svc.Events(ctx, authn.Principal(ctx), in.DeploymentID, in.RevisionID)
	if err != nil {
		return nil, a.problem(err)
	}
	out := &eventsOutput{}
	out.Body.Events = []RevisionEvent{}
	for _, e := range events {
		out.Body.Events = append(out.Body.Events, RevisionEvent{Seq: e.Seq, Status: string(e.Status), Reason: orNull(e.Reason), At: e.At.UTC()})
	}
	return out, nil
}
