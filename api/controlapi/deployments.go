package controlapi

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/api/authn"
	"github.com/slipway-dev/slipway/control"
)

const deploymentsPath = "/v2/deployments"

// DeploymentPath is the path parameter of calls about one deployment.
type DeploymentPath struct {
	DeploymentID string `path:"deployment_id" format:"uuid"`
}

// Page selects a part of a list (control-plane reference 2).
type Page struct {
	Limit  int `query:"limit" minimum:"1" maximum:"100" default:"20"`
	Offset int `query:"offset" minimum:"0" default:"0"`
}

// RemoteReconciled is a filter: whether a listener elsewhere looks after the deployment, which is when it has a listener_id.
type RemoteReconciled struct {
	Value string `query:"remote_reconciled" enum:"true,false"`
}

// filter returns the value for a query; nil = not asked for.
func (r RemoteReconciled) filter() *bool {
	if r.Value == "" {
		return nil
	}
	remote := r.Value == "true"
	return &remote
}

// selectsNone says whether the filters cannot match anything here: no deployment has tags.
func (in listInput) selectsNone() bool { return len(commas(in.TagValueIDs)) > 0 }

// oneOf checks the elements of a comma list in the query.
func oneOf(problems *slipway.Problems, name string, list []string, valid func(string) bool, what string) {
	for _, element := range list {
		if !valid(element) {
			problems.Add([]any{"query", name}, "%q is no %s", element, what)
		}
	}
}

func deploymentStatus(s string) bool {
	return slices.Contains(slipway.DeploymentStatuses(), s)
}

func revisionStatus(s string) bool {
	return slices.Contains(slipway.RevisionStatuses(), slipway.RevisionStatus(s))
}

type deploymentOutput struct{ Body Deployment }

type createInput struct{ Body DeploymentCreateRequest }

type patchInput struct {
	DeploymentPath
	Body DeploymentPatchRequest
}

type listInput struct {
	Page
	Name           string `query:"name" doc:"exact name"`
	NameContains   string `query:"name_contains" doc:"part of the name, any case; exact matches come first"`
	Status         string `query:"status" doc:"comma-separated statuses; AWAITING_DELETE lists what was deleted"`
	DeploymentIDs  string `query:"deployment_ids" doc:"comma-separated ids"`
	ImageVersion   string `query:"image_version"`
	DeploymentType string `query:"deployment_type" enum:"dev_free,dev,prod"`
	TagValueIDs    string `query:"tag_value_ids" doc:"comma-separated ids; no deployment has tags, so any id selects none"`
	RemoteReconciled
}

func (a *api) deployments() {
	one := deploymentsPath + "/{deployment_id}"
	huma.Register(a.huma, reaching(control.ReachDeployments, operation("list_deployments", http.MethodGet, deploymentsPath, "List deployments")), a.listDeployments)
	huma.Register(a.huma, created(operation("create_deployment", http.MethodPost, deploymentsPath, "Create a deployment", 400, 409)), a.createDeployment)
	huma.Register(a.huma, operation("get_deployment", http.MethodGet, one, "Read a deployment", 404), a.getDeployment)
	huma.Register(a.huma, operation("patch_deployment", http.MethodPatch, one, "Change a deployment", 400, 404), a.patchDeployment)
}

func (a *api) answer(d control.Deployment, err error) (*deploymentOutput, error) {
	if err != nil {
		return nil, a.problem(err)
	}
	return &deploymentOutput{a.shown(d)}, nil
}

func (a *api) createDeployment(ctx context.Context, in *createInput) (*deploymentOutput, error) {
	return a.answer(a.svc.Create(ctx, authn.Principal(ctx), in.Body.domain()))
}

func (a *api) getDeployment(ctx context.Context, in *DeploymentPath) (*deploymentOutput, error) {
	return a.answer(a.svc.Get(ctx, authn.Principal(ctx), in.DeploymentID))
}

// patchDeployment answers PATCH /v2/deployments/{deployment_id} (spec 4.1).
func (a *api) patchDeployment(ctx context.Context, in *patchInput) (*deploymentOutput, error) {
	return a.answer(a.svc.Patch(ctx, authn.Principal(ctx), in.DeploymentID, in.Body.domain()))
}

func (a *api) listDeployments(ctx context.Context, in *listInput) (*struct{ Body DeploymentsList }, error) {
	var problems slipway.Problems
	oneOf(&problems, "status", commas(in.Status), deploymentStatus, "status of a deployment")
	oneOf(&problems, "deployment_ids", commas(in.DeploymentIDs), slipway.IsUUID, "uuid")
	if err := problems.Err(); err != nil {
		return nil, a.problem(err)
	}
	if in.selectsNone() {
		return &struct{ Body DeploymentsList }{DeploymentsList{Resources: []Deployment{}, Offset: in.Offset}}, nil
	}
	found, err := a.svc.List(ctx, authn.Principal(ctx), slipway.DeploymentQuery{
		Name: in.Name, NameContains: in.NameContains, Statuses: commas(in.Status), IDs: commas(in.DeploymentIDs),
		ImageVersion: in.ImageVersion, Type: in.DeploymentType, Remote: in.RemoteReconciled.filter(), Limit: in.Limit, Offset: in.Offset,
	})
	if err != nil {
		return nil, a.problem(err)
	}
	list := DeploymentsList{Resources: []Deployment{}, Offset: in.Offset + len(found)}
	for _, d := range found {
		list.Resources = append(list.Resources, a.shown(d))
	}
	return &struct{ Body DeploymentsList }{list}, nil
}

// commas splits a comma list; nil without elements.
func commas(list string) []string {
	var out []string
	for _, element := range strings.Split(list, ",") {
		if element = strings.TrimSpace(element); element != "" {
			out = append(out, element)
		}
	}
	return out
}
