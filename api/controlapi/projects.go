package controlapi

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/api/authn"
)

// TracingProject is the record under which a deployment's traces are counted; it bears the deployment's name (spec 2.1).
type TracingProject struct {
	ID           string    `json:"id" required:"true" format:"uuid" doc:"id of the project"`
	TenantID     string    `json:"tenant_id" required:"true" format:"uuid" doc:"the tenant that owns it"`
	Name         string    `json:"name" required:"true" doc:"the name of its deployment"`
	DeploymentID *string   `json:"deployment_id" required:"true" format:"uuid" doc:"its deployment; null once that is deleted and the project was kept"`
	CreatedAt    time.Time `json:"created_at" required:"true" doc:"when it was made"`
}

// TracingProjectsList is one page of tracing projects; offset is that of the next page.
type TracingProjectsList struct {
	Resources []TracingProject `json:"resources" required:"true" nullable:"false" doc:"the projects of this page, newest first"`
	Offset    int              `json:"offset" required:"true" doc:"the offset of the next page"`
}

const projectsPath = "/v2/tracing-projects"

// TracingProjectPath is the path parameter of calls about one tracing project.
type TracingProjectPath struct {
	TracingProjectID string `path:"tracing_project_id" format:"uuid" doc:"id of the tracing project"`
}

type projectsInput struct {
	Page
	Name string `query:"name" doc:"exact name"`
}

func (a *api) projects() {
	huma.Register(a.huma, operation("list_tracing_projects", http.MethodGet, projectsPath, "List tracing projects"), a.listProjects)
	huma.Register(a.huma, operation("get_tracing_project", http.MethodGet, projectsPath+"/{tracing_project_id}", "Read a tracing project", 404), a.getProject)
}

func (a *api) getProject(ctx context.Context, in *TracingProjectPath) (*struct{ Body TracingProject }, error) {
	p, err := a.svc.TracingProject(ctx, authn.Principal(ctx), in.TracingProjectID)
	if err != nil {
		return nil, a.problem(err)
	}
	return &struct{ Body TracingProject }{project(p)}, nil
}

func (a *api) listProjects(ctx context.Context, in *projectsInput) (*struct{ Body TracingProjectsList }, error) {
	q := slipway.TracingProjectQuery{Name: in.Name, Limit: in.Limit, Offset: in.Offset}
	found, err := a.svc.TracingProjects(ctx, authn.Principal(ctx), q)
	if err != nil {
		return nil, a.problem(err)
	}
	list := TracingProjectsList{Resources: []TracingProject{}, Offset: in.Offset + len(found)}
	for _, p := range found {
		list.Resources = append(list.Resources, project(p))
	}
	return &struct{ Body TracingProjectsList }{list}, nil
}

func project(p slipway.TracingProject) TracingProject {
	return TracingProject{ID: p.ID, TenantID: p.TenantID, Name: p.Name, DeploymentID: orNull(p.DeploymentID), CreatedAt: p.CreatedAt.UTC()}
}
