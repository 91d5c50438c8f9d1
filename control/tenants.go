package control

import (
	"context"

	"github.com/slipway-dev/slipway"
)

// WhoAmI is what a caller is and may do.
type WhoAmI struct {
	slipway.Principal
	TenantName  string // "" if no tenant is chosen
	Permissions []string
}

// WhoAmI tells the caller what it is.
func (s *Service) WhoAmI(ctx context.Context, who slipway.Principal) (WhoAmI, error) {
	out := WhoAmI{Principal: who, Permissions: []string{}}
	for _, p := range permissions() {
		if permitted(who, p) == nil && (p != mayManageTenants || who.Organisation) {
			out.Permissions = append(out.Permissions, string(p))
		}
	}
	if who.TenantID == "" {
		return out, nil
	}
	err := s.store.View(ctx, func(tx slipway.Tx) error {
		t, err := tx.Tenant(who.TenantID)
		if slipway.ErrorCode(err) == slipway.CodeNotFound {
			return nil
		}
		out.TenantName = t.Name
		return err
	})
	return out, wrap("who am i", err)
}

// CreateTenant makes a tenant. Only organisation-wide admins may; its first key is theirs to make, in it.
func (s *Service) CreateTenant(ctx context.Context, who slipway.Principal, name string) (slipway.Tenant, error) {
	if err := authorizeOrganisation(who, mayManageTenants); err != nil {
		return slipway.Tenant{}, err
	}
	if err := slipway.ValidTenantName(name); err != nil {
		return slipway.Tenant{}, err
	}
	t := slipway.Tenant{ID: s.ids(), Name: name, CreatedAt: s.clock()}
	err := s.changeAccess(ctx, func(tx slipway.Tx) error {
		return s.putTenant(tx, who, "create_tenant", slipway.Tenant{}, t)
	})
	return t, wrap("create tenant", err)
}

// putTenant stores a tenant with its audit entry, which is the tenant's.
func (s *Service) putTenant(tx slipway.Tx, who slipway.Principal, operation string, before, after slipway.Tenant) error {
	if err := tx.PutTenant(after); err != nil {
		return err
	}
	changes, err := slipway.AuditDiff(tenantView(before), tenantView(after))
	if err != nil {
		return err
	}
	who.TenantID = after.ID
	return s.audit(tx, who, operation, after.ID, nil, changes...)
}

func tenantView(t slipway.Tenant) map[string]any {
	if t.ID == "" {
		return nil
	}
	return map[string]any{"name": t.Name}
}

// Tenants returns one page of the tenants the caller may choose from, oldest first: all for an organisation-wide credential,
// else its own.
func (s *Service) Tenants(ctx context.Context, who slipway.Principal, q slipway.TenantQuery) ([]slipway.Tenant, error) {
	if !who.Organisation {
		if err := authorize(who, mayRead); err != nil {
			return nil, err
		}
		q.ID = who.TenantID
	}
	var out []slipway.Tenant
	err := s.store.View(ctx, func(tx slipway.Tx) (err error) {
		out, err = tx.Tenants(q)
		return err
	})
	return out, wrap("list tenants", err)
}

// Tenant returns one tenant that the caller may choose.
func (s *Service) Tenant(ctx context.Context, who slipway.Principal, id string) (slipway.Tenant, error) {
	if !who.Organisation {
		if err := authorize(who, mayRead); err != nil {
			return slipway.Tenant{}, err
		}
	}
	var out slipway.Tenant
	err := s.store.View(ctx, func(tx slipway.Tx) (err error) {
		out, err = visibleTenant(tx, who, id)
		return err
	})
	return out, wrap("get tenant", err)
}

func visibleTenant(tx slipway.Tx, who slipway.Principal, id string) (slipway.Tenant, error) {
	notFound := slipway.Errorf(slipway.CodeNotFound, "Tenant ID %s not found.", id)
	if !who.Organisation && id != who.TenantID {
		return slipway.Tenant{}, notFound
	}
	t, err := tx.Tenant(id)
	if slipway.ErrorCode(err) == slipway.CodeNotFound {
		return t, notFound
	}
	return t, err
}

// RenameTenant gives a tenant another name; its own admins may, and those of the organisation.
func (s *Service) RenameTenant(ctx context.Context, who slipway.Principal, id, name string) (slipway.Tenant, error) {
	if !who.Organisation && who.TenantID == "" {
		return slipway.Tenant{}, authorize(who, mayManageTenants)
	}
	if err := permitted(who, mayManageTenants); err != nil {
		return slipway.Tenant{}, err
	}
	var out slipway.Tenant
	err := s.changeAccess(ctx, func(tx slipway.Tx) error {
		before, err := visibleTenant(tx, who, id)
		if err != nil {
			return err
		}
		if err := slipway.ValidTenantName(name); err != nil {
			return err
		}
		if out = before; name == before.Name {
			return nil
		}
		out.Name = name
		return s.putTenant(tx, who, "update_tenant", before, out)
	})
	return out, wrap("rename tenant", err)
}

// DeleteTenant removes an empty tenant with its keys. CodeConflict: it still has deployments, or it is the first one.
func (s *Service) DeleteTenant(ctx context.Context, who slipway.Principal, id string) error {
	if err := authorizeOrganisation(who, mayManageTenants); err != nil {
		return err
	}
	return wrap("delete tenant", s.changeAccess(ctx, func(tx slipway.Tx) error {
		t, err := visibleTenant(tx, who, id)
		if err != nil {
			return err
		}
		if err := expendable(tx, t); err != nil {
			return err
		}
		if err := tx.DeleteTenant(id); err != nil {
			return err
		}
		changes, err := slipway.AuditDiff(tenantView(t), nil)
		if err != nil {
			return err
		}
		who.TenantID = id
		return s.audit(tx, who, "delete_tenant", id, nil, changes...)
	}))
}

func expendable(tx slipway.Tx, t slipway.Tenant) error {
	left, err := tx.Deployments(slipway.DeploymentQuery{TenantID: t.ID, Statuses: slipway.DeploymentStatuses(), Limit: 1})
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return slipway.Errorf(slipway.CodeConflict, "the tenant %q still has the deployment %q; delete its deployments first, and try again when they are gone", t.Name, left[0].Name)
	}
	first, err := tx.Tenants(slipway.TenantQuery{Limit: 1})
	if err != nil {
		return err
	}
	if len(first) > 0 && first[0].ID == t.ID {
		return slipway.Errorf(slipway.CodeConflict, "%q is the installation's first tenant, whose deployments have the plain addresses; it stays, empty if need be", t.Name)
	}
	return nil
}
