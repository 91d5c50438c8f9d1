package control

import (
	"context"
	"slices"

	"github.com/slipway-dev/slipway"
)

// Templates returns one page of the templates that internal_template deployments may start from, in their own order.
func (s *Service) Templates(_ context.Context, who slipway.Principal, limit, offset int) ([]slipway.Template, error) {
	if err := authorize(who, mayRead); err != nil {
		return nil, err
	}
	all := s.inst.Templates
	from := min(offset, len(all))
	return slices.Clone(all[from:min(from+limit, len(all))]), nil
}
