package controlapi

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/api/authn"
	"github.com/slipway-dev/slipway/control"
)

const tenantsPath = "/v2/tenants"

// Tenant owns deployments, keys and everything else.
type Tenant struct {
	ID        string    `json:"id" required:"true" format:"uuid" doc:"id of the tenant; send it as X-Tenant-Id to act in it"`
	Name      string    `json:"name" required:"true" doc:"unique in the installation"`
	CreatedAt time.Time `json:"created_at" required:"true" doc:"when it was made"`
}

// TenantsList is one page of tenants; offset is that of the next page.
type TenantsList struct {
	Resources []Tenant `json:"resources" required:"true" nullable:"false" doc:"the tenants of this page, oldest first"`
	Offset    int      `json:"offset" required:"true" doc:"the offset of the next page"`
}

// TenantRequest is the body of the calls that make or change a tenant.
type TenantRequest struct {
	Name string `json:"name" required:"true" doc:"1 to 100 printable characters, unique in the installation"`
}

// TenantPath is the path parameter of calls about one tenant.
type TenantPath struct {
	TenantID string `path:"tenant_id" format:"uuid" doc:"id of the tenant"`
}

// WhoAmI is what the caller is.
type WhoAmI struct {
	Principal        string   `json:"principal" required:"true" doc:"the caller as audit entries name it"`
	Role             string   `json:"role" required:"true" enum:"admin,editor,viewer,listener,builder" doc:"its role"`
	TenantID         *string  `json:"tenant_id" required:"true" format:"uuid" doc:"the tenant it acts in; null if it chose none"`
	TenantName       *string  `json:"tenant_name" required:"true" doc:"the name of that tenant"`
	OrganizationWide bool     `json:"organization_wide" required:"true" doc:"whether it may choose any tenant with X-Tenant-Id"`
	DeploymentID     *string  `json:"deployment_id" required:"true" format:"uuid" doc:"the one deployment that a deploy key acts on"`
	ListenerID       *string  `json:"listener_id" required:"true" format:"uuid" doc:"the one listener that its key speaks for"`
	Permissions      []string `json:"permissions" required:"true" nullable:"false" doc:"what it may do"`
}

type tenantsInput struct {
	Page
	Name string `query:"name" doc:"exact name"`
}

type tenantCreateInput struct{ Body TenantRequest }

type tenantPatchInput struct {
	TenantPath
	Body TenantRequest
}

type tenantOutput struct{ Body Tenant }

func (a *api) tenants() {
	wide := func(op huma.Operation) huma.Operation { return reaching(control.ReachOrganisation, op) }
	one := tenantsPath + "/{tenant_id}"
	huma.Register(a.huma, wide(operation("get_who_am_i", http.MethodGet, "/v2/whoami", "Say who the caller is")), a.whoAmI)
	huma.Register(a.huma, wide(operation("list_tenants", http.MethodGet, tenantsPath, "List the tenants to choose from")), a.listTenants)
	huma.Register(a.huma, wide(created(operation("create_tenant", http.MethodPost, tenantsPath, "Create a tenant", 409))), a.createTenant)
	huma.Register(a.huma, wide(operation("get_tenant", http.MethodGet, one, "Read a tenant", 404)), a.getTenant)
	huma.Register(a.huma, wide(operation("patch_tenant", http.MethodPatch, one, "Rename a tenant", 404, 409)), a.patchTenant)
	huma.Register(a.huma, wide(operation("delete_tenant", http.MethodDelete, one, "Delete an empty tenant", 404, 409)), a.deleteTenant)
}

func (a *api) whoAmI(ctx context.Context, _ *struct{}) (*struct{ Body WhoAmI }, error) {
	who, err := a.svc.WhoAmI(ctx, authn.Principal(ctx))
	if err != nil {
		return nil, a.problem(err)
	}
	return &struct{ Body WhoAmI }{WhoAmI{
		Principal: who.ID, Role: string(who.Role), TenantID: orNull(who.TenantID), TenantName: orNull(who.TenantName),
		OrganizationWide: who.Organisation, DeploymentID: orNull(who.DeploymentID), ListenerID: orNull(who.ListenerID), Permissions: who.Permissions,
	}}, nil
}

func (a *api) answerTenant(t slipway.Tenant, err error) (*tenantOutput, error) {
	if err != nil {
		return nil, a.problem(err)
	}
	return &tenantOutput{tenant(t)}, nil
}

func tenant(t slipway.Tenant) Tenant {
	return Tenant{ID: t.ID, Name: t.Name, CreatedAt: t.CreatedAt.UTC()}
}

func (a *api) listTenants(ctx context.Context, in *tenantsInput) (*struct{ Body TenantsList }, error) {
	found, err := a.svc.Tenants(ctx, authn.Principal(ctx), slipway.TenantQuery{Name: in.Name, Limit: in.Limit, Offset: in.Offset})
	if err != nil {
		return nil, a.problem(err)
	}
	list := TenantsList{Resources: []Tenant{}, Offset: in.Offset + len(found)}
	for _, t := range found {
		list.Resources = append(list.Resources, tenant(t))
	}
	return &struct{ Body TenantsList }{list}, nil
}

func (a *api) createTenant(ctx context.Context, in *tenantCreateInput) (*tenantOutput, error) {
	return a.answerTenant(a.svc.CreateTenant(ctx, authn.Principal(ctx), in.Body.Name))
}

func (a *api) getTenant(ctx context.Context, in *TenantPath) (*tenantOutput, error) {
	return a.answerTenant(a.svc.Tenant(ctx, authn.Principal(ctx), in.TenantID))
}

func (a *api) patchTenant(ctx context.Context, in *tenantPatchInput) (*tenantOutput, error) {
	return a.answerTenant(a.svc.RenameTenant(ctx, authn.Principal(ctx), in.TenantID, in.Body.Name))
}

func (a *api) deleteTenant(ctx context.Context, in *TenantPath) (*struct{}, error) {
	if err := a.svc.DeleteTenant(ctx, authn.Principal(ctx), in.TenantID); err != nil {
		return nil, a.problem(err)
	}
	return nil, nil
}
