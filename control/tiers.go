package control

import (
	"context"

	"github.com/slipway-dev/slipway"
)

// ChangeTier changes the size of a deployment and makes a revision of what is deployed in that size (control-plane
// reference 2).
func (s *Service) ChangeTier(ctx context.Context, who slipway.Principal, id string, in slipway.TierChange) (Deployment, error) {
	if err := authorize(who, mayUpdate); err != nil {
		return Deployment{}, err
	}
	var out Deployment
	err := s.update(ctx, func(tx slipway.Tx) error {
		d, err := visible(tx, who.TenantID, id)
		if err != nil {
			return err
		}
		newest, err := newestRevision(tx, d.ID)
		if err != nil {
			return err
		}
		facts := slipway.Facts{By: who.ID, LatestNumber: numberOf(newest)}
		change, err := slipway.ChangeTier(d, in, newest, facts, s.clock(), s.ids)
		if err != nil {
			return err
		}
		if err := s.write(tx, change); err != nil {
			return err
		}
		if err := s.auditChange(tx, who, "update_deployment", d, nil, change); err != nil {
			return err
		}
		out, err = s.shown(tx, who.TenantID, id)
		return err
	})
	return out, wrap("change tier", err)
}
