// Package image finds out what image names stand for: in the installation's own registry, or in those it was allowed to
// ask.
package image

import (
	"context"

	"github.com/slipway-dev/slipway"
)

// Resolver asks the registry that a name is of.
type Resolver struct {
	// Host is that of the installation's own registry, as its registry_url has it.
	Host string
	// Own resolves names of Host, Foreign all others.
	Own, Foreign slipway.ImageResolver
}

var _ slipway.ImageResolver = Resolver{}

// Resolve implements slipway.ImageResolver.
func (r Resolver) Resolve(ctx context.Context, tenantID string, name slipway.ImageName) (string, error) {
	if name.Registry == r.Host {
		return r.Own.Resolve(ctx, tenantID, name)
	}
	return r.Foreign.Resolve(ctx, tenantID, name)
}
