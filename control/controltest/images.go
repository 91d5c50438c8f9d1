package controltest

import (
	"context"
	"sync"

	"github.com/slipway-dev/slipway"
)

// Images is a slipway.ImageResolver that knows what it was told. Its zero value knows nothing.
type Images struct {
	mu  sync.Mutex
	all map[string]string
}

var _ slipway.ImageResolver = (*Images)(nil)

// Tag makes "REPOSITORY:TAG" of a tenant stand for a digest.
func (i *Images) Tag(tenantID, name, digest string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.all == nil {
		i.all = map[string]string{}
	}
	i.all[tenantID+" "+name] = digest
}

// Resolve implements slipway.ImageResolver.
func (i *Images) Resolve(_ context.Context, tenantID string, name slipway.ImageName) (string, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	digest, ok := i.all[tenantID+" "+name.Repository+":"+name.Tag]
	if !ok {
		return "", slipway.Errorf(slipway.CodeInvalid, "there is no image %s:%s", name.Repository, name.Tag)
	}
	return digest, nil
}
