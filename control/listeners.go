package control

import (
	"context"

	"github.com/slipway-dev/slipway"
)

// Listener is a listener as it is shown.
type Listener struct {
	slipway.Listener
	Online bool // it was seen within the patience
}

// shownListener adds whether the listener is online (control-plane reference 8).
func (s *Service) shownListener(l slipway.Listener) Listener {
	l.LastSeenAt = s.beats.seen(l)
	online := !l.LastSeenAt.IsZero() && s.clock().Sub(l.LastSeenAt) < s.cfg.ListenerPatience
	return Listener{Listener: l, Online: online}
}

// CreateListener makes a listener (control-plane reference 3). CodeConflict: the tenant has one of that compute id, or
// another looks after one of the namespaces.
func (s *Service) CreateListener(ctx context.Context, who slipway.Principal, in slipway.ListenerCreate) (Listener, error) {
	if err := authorize(who, mayDelete); err != nil {
		return Listener{}, err
	}
	if err := in.Validate(); err != nil {
		return Listener{}, err
	}
	now := s.clock()
	l := slipway.Listener{
		ID: s.ids(), TenantID: who.TenantID, Version: text(in.Version), ComputeType: in.ComputeType, ComputeID: in.ComputeID,
		CreatedAt: now, UpdatedAt: now,
	}
	if in.Namespaces != nil {
		l.Namespaces = *in.Namespaces
	}
	err := s.update(ctx, func(tx slipway.Tx) error {
		if err := tx.PutListener(l); err != nil {
			return err
		}
		if err := alone(tx, l); err != nil {
			return err
		}
		return s.auditDiff(tx, who, "create_listener", l.ID, map[string]any{"compute_id": l.ComputeID}, nil, listenerView(l))
	})
	if err == nil {
		s.beats.wake()
	}
	return s.shownListener(l), wrap("create listener", err)
}

// alone makes sure that no other listener looks after a namespace of l's. Tenants may share a cluster, so those of others
// count too; the answer does not say whose it is.
func alone(tx slipway.Tx, l slipway.Listener) error {
	others, err := tx.Listeners(slipway.ListenerQuery{ComputeID: l.ComputeID})
	if err != nil {
		return err
	}
	for _, other := range others {
		if namespace, overlap := l.Overlap(other); overlap {
			return slipway.Errorf(slipway.CodeConflict,
				"the namespace %q of compute_id %q is looked after by a listener already; name namespaces that are free in compute_config.cluster_namespaces", namespace, l.ComputeID)
		}
	}
	return nil
}

// Listener returns one listener of the caller's tenant.
func (s *Service) Listener(ctx context.Context, who slipway.Principal, id string) (Listener, error) {
	if err := authorize(who, mayRead); err != nil {
		return Listener{}, err
	}
	var out slipway.Listener
	err := s.store.View(ctx, func(tx slipway.Tx) (err error) {
		out, err = visibleListener(tx, who.TenantID, id)
		return err
	})
	return s.shownListener(out), wrap("get listener", err)
}

// Listeners returns one page of the caller's tenant, newest first.
func (s *Service) Listeners(ctx context.Context, who slipway.Principal, q slipway.ListenerQuery) ([]Listener, error) {
	if err := authorize(who, mayRead); err != nil {
		return nil, err
	}
	q.TenantID = who.TenantID
	out := []Listener{}
	err := s.store.View(ctx, func(tx slipway.Tx) error {
		found, err := tx.Listeners(q)
		for _, l := range found {
			out = append(out, s.shownListener(l))
		}
		return err
	})
	return out, wrap("list listeners", err)
}

// PatchListener changes version or compute_config. CodeConflict: another looks after one of the namespaces; CodeBadRequest:
// a deployment is placed in a namespace that would be left.
func (s *Service) PatchListener(ctx context.Context, who slipway.Principal, id string, in slipway.ListenerPatch) (Listener, error) {
	if err := authorize(who, mayDelete); err != nil {
		return Listener{}, err
	}
	var l slipway.Listener
	err := s.update(ctx, func(tx slipway.Tx) (err error) {
		if l, err = visibleListener(tx, who.TenantID, id); err != nil {
			return err
		}
		if err := in.Validate(l); err != nil {
			return err
		}
		before := l
		l = patchedListener(l, in)
		l.UpdatedAt = s.clock()
		if err := alone(tx, l); err != nil {
			return err
		}
		if err := stillPlaced(tx, l); err != nil {
			return err
		}
		if err := tx.PutListener(l); err != nil {
			return err
		}
		return s.auditDiff(tx, who, "update_listener", l.ID, map[string]any{"compute_id": l.ComputeID}, listenerView(before), listenerView(l))
	})
	return s.shownListener(l), wrap("patch listener", err)
}

// listenerView is what the audit log compares of a listener.
func listenerView(l slipway.Listener) map[string]any {
	view := map[string]any{"version": given(l.Version), "compute_type": l.ComputeType, "compute_id": l.ComputeID}
	if l.Namespaces != nil {
		view["compute_config.cluster_namespaces"] = l.Namespaces
	}
	return view
}

func patchedListener(l slipway.Listener, in slipway.ListenerPatch) slipway.Listener {
	if in.Version != nil {
		l.Version = *in.Version
	}
	if in.Config != nil {
		l.Namespaces = nil
		if in.Config.Namespaces != nil {
			l.Namespaces = *in.Config.Namespaces
		}
	}
	return l
}

// stillPlaced makes sure that the listener goes on looking after every namespace it has deployments in.
func stillPlaced(tx slipway.Tx, l slipway.Listener) error {
	if l.Namespaces == nil {
		return nil
	}
	placed, err := deploymentsOf(tx, l.ID)
	if err != nil {
		return err
	}
	for _, d := range placed {
		if c := d.SourceConfig.ListenerConfig; c != nil && c.ClusterNamespace != nil && !l.Watches(*c.ClusterNamespace) {
			return slipway.Errorf(slipway.CodeBadRequest,
				"deployment %q is placed in the namespace %q; keep it among cluster_namespaces, or delete the deployment first", d.Name, *c.ClusterNamespace)
		}
	}
	return nil
}

// DeleteListener removes a listener. CodeBadRequest while deployments name it, deleted ones that are not purged included:
// nobody else could destroy their data.
func (s *Service) DeleteListener(ctx context.Context, who slipway.Principal, id string) error {
	if err := authorize(who, mayDelete); err != nil {
		return err
	}
	err := s.update(ctx, func(tx slipway.Tx) error {
		l, err := visibleListener(tx, who.TenantID, id)
		if err != nil {
			return err
		}
		placed, err := deploymentsOf(tx, l.ID)
		if err != nil {
			return err
		}
		if len(placed) > 0 {
			return slipway.Errorf(slipway.CodeBadRequest,
				"listener %q is in use by deployment %q and %d more; delete them, and purge them or wait until they are, first", l.ComputeID, placed[0].Name, len(placed)-1)
		}
		if err := tx.DeleteListener(l.ID); err != nil {
			return err
		}
		return s.auditDiff(tx, who, "delete_listener", l.ID, map[string]any{"compute_id": l.ComputeID}, listenerView(l), nil)
	})
	if err == nil {
		s.beats.forget(id)
	}
	return wrap("delete listener", err)
}

func deploymentsOf(tx slipway.Tx, listenerID string) ([]slipway.Deployment, error) {
	return tx.Deployments(slipway.DeploymentQuery{Listener: &listenerID, Statuses: slipway.DeploymentStatuses()})
}

func visibleListener(tx slipway.Tx, tenantID, id string) (slipway.Listener, error) {
	l, err := tx.Listener(tenantID, id)
	if slipway.ErrorCode(err) == slipway.CodeNotFound {
		return l, slipway.Errorf(slipway.CodeNotFound, "Listener ID %s not found.", id)
	}
	return l, err
}

// place checks where a new deployment is to go and fills in its namespace; lost says that its listener is offline now.
func place(tx slipway.Tx, tenantID string, in *slipway.DeploymentCreate) (lost bool, err error) {
	if in.Source != slipway.SourceExternalContainer {
		return false, nil // the rules about fields refuse a listener
	}
	var at *slipway.Listener
	if id := in.SourceConfig.ListenerID; id != nil {
		l, err := tx.Listener(tenantID, *id)
		if err != nil && slipway.ErrorCode(err) != slipway.CodeNotFound {
			return false, err
		}
		if err == nil {
			at, lost = &l, l.Lost
		}
	} else if err := mustChoose(tx, tenantID); err != nil {
		return false, err
	}
	in.SourceConfig, err = in.SourceConfig.Place(at)
	return lost, err
}

// mustChoose refuses a deployment that names no listener where the tenant has several; clients look for the words
// `listener_id' is required` (control-plane reference 6).
func mustChoose(tx slipway.Tx, tenantID string) error {
	several, err := tx.Listeners(slipway.ListenerQuery{TenantID: tenantID, Limit: 2})
	if err != nil || len(several) < 2 {
		return err
	}
	return slipway.Errorf(slipway.CodeBadRequest,
		"'source_config.listener_id' is required: there are several listeners; GET /v2/listeners lists them")
}
