package controlapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/slipway-dev/slipway/api/authn"
)

// Template is a prebuilt application that a deployment with source internal_template starts from (spec 2.1).
type Template struct {
	ID          string `json:"id" required:"true" doc:"what source_config.template_id names"`
	Title       string `json:"title" required:"true" doc:"the template in a few words"`
	Description string `json:"description" required:"true" doc:"what the template does and what it needs"`
	Language    string `json:"language" required:"true" enum:"python,node" doc:"the language its graphs are written in"`
}

// TemplatesList is one page of templates; offset is that of the next page.
type TemplatesList struct {
	Resources []Template `json:"resources" required:"true" nullable:"false" doc:"the templates of this page"`
	Offset    int        `json:"offset" required:"true" doc:"the offset of the next page"`
}

func (a *api) templates() {
	huma.Register(a.huma, operation("list_templates", http.MethodGet, "/v2/templates", "List the prebuilt templates"), a.listTemplates)
}

func (a *api) listTemplates(ctx context.Context, in *Page) (*struct{ Body TemplatesList }, error) {
	found, err := a.svc.Templates(ctx, authn.Principal(ctx), in.Limit, in.Offset)
	if err != nil {
		return nil, a.problem(err)
	}
	list := TemplatesList{Resources: []Template{}, Offset: in.Offset + len(found)}
	for _, t := range found {
		list.Resources = append(list.Resources, Template{ID: t.ID, Title: t.Title, Description: t.Description, Language: string(t.Language)})
	}
	return &struct{ Body TemplatesList }{list}, nil
}
