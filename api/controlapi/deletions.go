package controlapi

import (
	"context"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/api/authn"
	"github.com/slipway-dev/slipway/control"
)

type deleteInput struct {
	DeploymentPath
	DeleteTracingProject bool `query:"delete_tracing_project" default:"false" doc:"remove the tracing project too"`
	Force                bool `query:"force" default:"false" doc:"remove what is left of a deployment that is deleted already"`
}

type deleteAllInput struct {
	DeploymentIDs []string `query:"deployment_ids,explode" required:"true" minItems:"1" maxItems:"100" doc:"repeated; uuids"`
}

// DeletionsResult says what became of a deletion of several deployments (control-plane reference 2).
type DeletionsResult struct {
	Deleted []string         `json:"deleted" required:"true" nullable:"false" doc:"ids of those that are deleted"`
	Failed  []DeletionFailed `json:"failed" required:"true" nullable:"false" doc:"those that were not, and why"`
}

// DeletionFailed is one deployment that was not deleted.
type DeletionFailed struct {
	ID     string `json:"id" required:"true" format:"uuid"`
	Detail string `json:"detail" required:"true" doc:"why it was not deleted"`
}

type deletionsOutput struct {
	Status int
	Body   DeletionsResult
}

func (a *api) deletions() {
	one := deploymentsPath + "/{deployment_id}"
	huma.Register(a.huma, operation("delete_deployment", http.MethodDelete, one, "Delete a deployment", 400, 404), a.deleteDeployment)
	several := operation("delete_deployments", http.MethodDelete, deploymentsPath, "Delete several deployments", 404)
	several.Description = "Answers 200 when all were deleted, 207 when some were not."
	several.Responses = map[string]*huma.Response{"207": {
		Description: http.StatusText(http.StatusMultiStatus),
		Content: map[string]*huma.MediaType{"application/json": {
			Schema: a.huma.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[DeletionsResult](), true, ""),
		}},
	}}
	huma.Register(a.huma, several, a.deleteDeployments)
	huma.Register(a.huma, operation("restore_deployment", http.MethodPost, one+"/restore", "Bring a deleted deployment back", 400, 404), a.restore)
	huma.Register(a.huma, operation("purge_deployment", http.MethodPost, one+"/purge", "End the retention of a deleted deployment now; final", 400, 404), a.purge)
}

func (a *api) deleteDeployment(ctx context.Context, in *deleteInput) (*struct{}, error) {
	how := control.Deletion{Force: in.Force, TracingProject: in.DeleteTracingProject}
	if err := a.svc.Delete(ctx, authn.Principal(ctx), in.DeploymentID, how); err != nil {
		return nil, a.problem(err)
	}
	return nil, nil
}

func (a *api) deleteDeployments(ctx context.Context, in *deleteAllInput) (*deletionsOutput, error) {
	var problems slipway.Problems
	oneOf(&problems, "deployment_ids", in.DeploymentIDs, slipway.IsUUID, "uuid")
	if err := problems.Err(); err != nil {
		return nil, a.problem(err)
	}
	done, err := a.svc.DeleteAll(ctx, authn.Principal(ctx), in.DeploymentIDs)
	if err != nil {
		return nil, a.problem(err)
	}
	out := &deletionsOutput{Status: http.StatusOK, Body: DeletionsResult{Deleted: done.Deleted, Failed: []DeletionFailed{}}}
	for _, f := range done.Failed {
		out.Status = http.StatusMultiStatus
		out.Body.Failed = append(out.Body.Failed, DeletionFailed(f))
	}
	return out, nil
}

func (a *api) restore(ctx context.Context, in *DeploymentPath) (*deploymentOutput, error) {
	return a.answer(a.svc.Restore(ctx, authn.Principal(ctx), in.DeploymentID))
}

func (a *api) purge(ctx context.Context, in *DeploymentPath) (*struct{}, error) {
	if err := a.svc.Purge(ctx, authn.Principal(ctx), in.DeploymentID); err != nil {
		return nil, a.problem(err)
	}
	return nil, nil
}
