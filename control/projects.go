package control

import (
	"context"

	"github.com/slipway-dev/slipway"
)

// TracingProject returns one tracing project of the caller's tenant.
func (s *Service) TracingProject(ctx context.Context, who slipway.Principal, id string) (slipway.TracingProject, error) {
	if err := authorize(who, mayRead); err != nil {
		return slipway.TracingProject{}, err
	}
	var out slipway.TracingProject
	err := s.store.View(ctx, func(tx slipway.Tx) (err error) {
		out, err = tx.TracingProject(who.TenantID, id)
		return err
	})
	if slipway.ErrorCode(err) == slipway.CodeNotFound {
		return out, slipway.Errorf(slipway.CodeNotFound, "Tracing project ID %s not found.", id)
	}
	return out, wrap("get tracing project", err)
}

// TracingProjects returns one page of the caller's tenant, newest first.
func (s *Service) TracingProjects(ctx context.Context, who slipway.Principal, q slipway.TracingProjectQuery) ([]slipway.TracingProject, error) {
	if err := authorize(who, mayRead); err != nil {
		return nil, err
	}
	q.TenantID = who.TenantID
	var out []slipway.TracingProject
	err := s.store.View(ctx, func(tx slipway.Tx) (err error) {
		out, err = tx.TracingProjects(q)
		return err
	})
	return out, wrap("list tracing projects", err)
}
