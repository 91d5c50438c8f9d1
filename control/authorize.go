package control

import (
	"slices"

	"github.com/slipway-dev/slipway"
)

// permission is what an operation asks of a role (control-plane reference 1).
type permission string

const (
	mayRead   permission = "deployments:read"
	mayCreate permission = "deployments:create"
	mayUpdate permission = "deployments:update"
	mayDelete permission = "deployments:delete"
	mayListen permission = "listeners:listen"
	mayBuild  permission = "builds:build"
	// mayCollect concerns the disk of the installation.
	mayCollect permission = "installation:collect"

	mayManageTenants permission = "tenants:manage"
	mayManageKeys    permission = "api-keys:manage"
	mayReadAudit     permission = "audit-logs:read"
	mayReadTelemetry permission = "telemetry:read"
)

// permissions lists all there are.
func permissions() []permission {
	return []permission{mayRead, mayCreate, mayUpdate, mayDelete, mayListen, mayBuild, mayCollect, mayManageTenants, mayManageKeys, mayReadAudit, mayReadTelemetry}
}

// roles is the authorisation matrix of control-plane reference 1; the only place that knows.
func (p permission) roles() []slipway.Role {
	switch p {
	case mayRead:
		return []slipway.Role{slipway.RoleAdmin, slipway.RoleEditor, slipway.RoleViewer}
	case mayCreate, mayUpdate:
		return []slipway.Role{slipway.RoleAdmin, slipway.RoleEditor}
	case mayListen:
		return []slipway.Role{slipway.RoleAdmin, slipway.RoleListener}
	case mayDelete, mayCollect, mayManageTenants, mayManageKeys, mayReadAudit, mayReadTelemetry:
		return []slipway.Role{slipway.RoleAdmin}
	case mayBuild:
		return []slipway.Role{slipway.RoleAdmin, slipway.RoleBuilder}
	}
	return nil
}

// authorize says whether a principal that acts in a tenant has a permission there. That a deploy key stays with its
// deployment is Admit's matter; what it can never do is refused here too.
func authorize(who slipway.Principal, p permission) error {
	if who.TenantID == "" {
		return slipway.Errorf(slipway.CodeUnauthenticated, "this call needs an API key; send it as X-Api-Key")
	}
	return permitted(who, p)
}

// authorizeOrganisation says whether a principal has a permission that concerns more than one tenant.
func authorizeOrganisation(who slipway.Principal, p permission) error {
	if who.ID == "" {
		return slipway.Errorf(slipway.CodeUnauthenticated, "this call needs an API key; send it as X-Api-Key")
	}
	if !who.Organisation {
		return slipway.Errorf(slipway.CodeForbidden, "this call concerns the organisation; use a key that is organisation-wide")
	}
	return permitted(who, p)
}

func permitted(who slipway.Principal, p permission) error {
	if who.DeploymentID != "" && p != mayRead && p != mayUpdate {
		return slipway.Errorf(slipway.CodeForbidden, "a deploy key lacks the permission %s; use a key of the tenant", p)
	}
	if slices.Contains(p.roles(), who.Role) {
		return nil
	}
	return slipway.Errorf(slipway.CodeForbidden, "the role %q lacks the permission %s; use a key of a role that has it", who.Role, p)
}

// Call is what Admit needs to know of an operation besides who asks for it.
type Call struct {
	Operation string // e.g. "get_deployment"
	// Reach says what the operation is about; the zero value is the tenant, which deploy keys may not touch.
	Reach Reach
	// DeploymentID is the deployment that a call of ReachDeployment is about.
	DeploymentID string
	// ListenerID is the listener that a call of ReachListener is about.
	ListenerID string
}

// Reach says what an operation is about.
type Reach string

// What operations are about.
const (
	ReachTenant       Reach = ""             // things of one tenant
	ReachDeployment   Reach = "deployment"   // one deployment
	ReachListener     Reach = "listener"     // the protocol of one listener
	ReachDeployments  Reach = "deployments"  // a list of deployments, of which a deploy key sees its own
	ReachAccess       Reach = "access"       // who may do what in a tenant; also where deployments are not enabled
	ReachOrganisation Reach = "organisation" // no tenant needs to be chosen; also where deployments are not enabled
)

// admitted says whether a principal may make a call at all, whatever its role (control-plane reference 1).
func (s *Service) admitted(who slipway.Principal, call Call) error {
	if s.cfg.DeploymentsOff && call.Reach != ReachAccess && call.Reach != ReachOrganisation {
		return slipway.Errorf(slipway.CodeForbidden, "deployments are not enabled for this organisation; an operator enables them in the settings of slipway")
	}
	if who.ListenerID != "" {
		return admittedListener(who, call)
	}
	if who.DeploymentID == "" {
		return nil
	}
	switch call.Reach {
	case ReachDeployments, ReachOrganisation:
		return nil
	case ReachDeployment:
		if call.DeploymentID == who.DeploymentID {
			return nil
		}
		return slipway.Errorf(slipway.CodeNotFound, "Deployment ID %s not found.", call.DeploymentID)
	case ReachTenant, ReachListener, ReachAccess:
	}
	return slipway.Errorf(slipway.CodeForbidden, "a deploy key acts on its one deployment only; use a key of the tenant for %s", call.Operation)
}

// admittedListener lets the key of a listener into the protocol of that listener, and into what shows who one is.
func admittedListener(who slipway.Principal, call Call) error {
	switch {
	case call.Reach == ReachOrganisation:
		return nil
	case call.Reach != ReachListener:
		return slipway.Errorf(slipway.CodeForbidden, "the key of a listener makes that listener's calls only; use a key of the tenant for %s", call.Operation)
	case call.ListenerID != who.ListenerID:
		return slipway.Errorf(slipway.CodeNotFound, "Listener ID %s not found.", call.ListenerID)
	}
	return nil
}
