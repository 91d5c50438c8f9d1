package slipway

import (
	"context"
	"slices"
)

// Role says what a principal may do (control-plane reference 1).
type Role string

// The roles of people, from most to least, and that of machines.
const (
	RoleAdmin  Role = "admin"
	RoleEditor Role = "editor"
	RoleViewer Role = "viewer"
	// RoleListener is the role of keys that are bound to one listener and do nothing but its protocol calls. Nobody else has
	// it: it is none of Roles.
	RoleListener Role = "listener"
	// RoleBuilder is the role of keys of builders on other machines, which do nothing but build. It is none of Roles either.
	RoleBuilder Role = "builder"
)

// Roles lists the roles that people and keys may have, from most to least.
func Roles() []Role { return []Role{RoleAdmin, RoleEditor, RoleViewer} }

// Valid says whether r is one of the roles.
func (r Role) Valid() bool { return slices.Contains(Roles(), r) }

// Principal is whoever makes a request, as authentication found out.
type Principal struct {
	ID       string // e.g. "key:<prefix>"; goes into audit entries
	TenantID string // the tenant it acts in; "" only in calls about the organisation
	Role     Role

	// Organisation says that the credential is valid in every tenant of the installation.
	Organisation bool
	// DeploymentID is the one deployment that a deploy key acts on; "" = no such bound.
	DeploymentID string
	// ListenerID is the one listener that a key of RoleListener speaks for; "" = no such bound.
	ListenerID string

	// Address is where the request came from, as far as it can be trusted; RequestID names the request. Both are for audit
	// entries and logs and give no rights.
	Address   string
	RequestID string
}

// Identity is whom a bearer token of another issuer stands for.
type Identity struct {
	Subject      string   // as the issuer names it
	Role         Role     // the highest of those the token gives
	Tenants      []string // ids of the tenants it is valid in
	Organisation bool     // valid in every tenant; Tenants is empty then
}

// TokenVerifier finds out whom a bearer token stands for (spec 5.1). It is safe for concurrent use, and what it has learnt
// of its issuer goes on counting while the issuer cannot be reached.
type TokenVerifier interface {
	// Verify fails with CodeUnauthenticated for a token that is not valid here, and with CodeUnavailable if that cannot be
	// found out now. CodeForbidden, with the Subject, is for a genuine token that gives no role or no tenant here. The error never
	// holds the token.
	Verify(ctx context.Context, token string) (Identity, error)
}
