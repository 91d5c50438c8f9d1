package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Tenant owns deployments, keys and everything else.
type Tenant struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	CreatedAt time.Time `json:"created_at"`
}

// WhoAmI says as whom the server knows the caller.
type WhoAmI struct {
	Principal        string   `json:"principal"`
	Role             string   `json:"role"`
	TenantID         *string  `json:"tenant_id"`
	TenantName       *string  `json:"tenant_name"`
	OrganizationWide bool     `json:"organization_wide"`
	DeploymentID     *string  `json:"deployment_id"` // of a deploy key
	ListenerID       *string  `json:"listener_id"`   // of the key of a listener
	Permissions      []string `json:"permissions"`
}

// InTenant returns a client that acts in a tenant, which an organisation-wide key has to select; "" leaves that to the server.
func (c *Client) InTenant(id string) *Client {
	out := *c
	out.tenant = id
	return &out
}

// WhoAmI asks as whom the server knows the caller.
func (c *Client) WhoAmI(ctx context.Context) (WhoAmI, error) {
	var out WhoAmI
	err := c.do(ctx, http.MethodGet, "/v2/whoami", nil, nil, &out)
	return out, err
}

// Tenants lists one page of those to choose from, all or the one of a name; next is the offset of the following page.
func (c *Client) Tenants(ctx context.Context, name string, limit, offset int) (list []Tenant, next int, err error) {
	q := pageOf(limit, offset)
	text(q, "name", name)
	var out page[Tenant]
	err = c.do(ctx, http.MethodGet, "/v2/tenants", q, nil, &out)
	return out.Resources, out.Offset, err
}

func tenantPath(id string) string { return "/v2/tenants/" + url.PathEscape(id) }

// Tenant reads one tenant by id.
func (c *Client) Tenant(ctx context.Context, id string) (Tenant, error) {
	var out Tenant
	err := c.do(ctx, http.MethodGet, tenantPath(id), nil, nil, &out)
	return out, err
}

// CreateTenant makes a tenant.
func (c *Client) CreateTenant(ctx context.Context, name string) (Tenant, error) {
	var out Tenant
	err := c.do(ctx, http.MethodPost, "/v2/tenants", nil, map[string]string{"name": name}, &out)
	return out, err
}

// RenameTenant changes a tenant's name.
func (c *Client) RenameTenant(ctx context.Context, id, name string) (Tenant, error) {
	var out Tenant
	err := c.do(ctx, http.MethodPatch, tenantPath(id), nil, map[string]string{"name": name}, &out)
	return out, err
}

// DeleteTenant deletes an empty tenant.
func (c *Client) DeleteTenant(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, tenantPath(id), nil, nil, nil)
}
