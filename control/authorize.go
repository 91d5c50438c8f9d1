package control

import "github.com/slipway-dev/slipway"

// permission is what an operation asks of a role (control-plane reference 1).
type permission string

const (
	mayRead   permission = "deployments:read"
	mayCreate permission = "deployments:create"
	mayUpdate permission = "deployments:update"
	mayDelete permission = "deployments:delete"
	mayListen permission = "listeners:listen"
)

// roles is the authorisation matrix of control-plane reference 1; the only place that knows.
func (p permission) roles() []slipway.Role {
	switch p {
	case mayRead:
		return []slipway.Role{slipway.RoleAdmin, slipway.RoleEditor, slipway.RoleViewer}
	case mayCreate, mayUpdate:
		return []slipway.Role{slipway.RoleAdmin, slipway.RoleEditor}
	case mayDelete, mayListen:
		return []slipway.Role{slipway.RoleAdmin}
	}
	return nil
}

func authorize(who slipway.Principal, p permission) error {
	if who.TenantID == "" {
		return slipway.Errorf(slipway.CodeUnauthenticated, "this call needs an API key; send it as X-Api-Key")
	}
	for _, role := range p.roles() {
		if who.Role == role {
			return nil
		}
	}
	return slipway.Errorf(slipway.CodeForbidden, "the role %q lacks the permission %s; use a key of a role that has it", who.Role, p)
}
