package control

import (
	"sync"
	"time"

	"github.com/slipway-dev/slipway"
)

// openHosts keeps opened hosts, so that what they keep for a while, such as installation tokens, is of use. It is safe for
// concurrent use.
type openHosts struct {
	hosts slipway.GitHosts // nil = this installation has none
	mu    sync.Mutex
	known map[string]openHost // by integration
}

type openHost struct {
	host slipway.GitHost
	of   time.Time // the integration's UpdatedAt
}

func (o *openHosts) open(i slipway.Integration, secrets slipway.IntegrationSecrets) (slipway.GitHost, error) {
	if o.hosts == nil {
		return nil, slipway.Errorf(slipway.CodeBadRequest, "this installation reaches no git hosts")
	}
	return o.hosts.Open(i, secrets)
}

// get returns the host of an integration as it is now.
func (o *openHosts) get(i slipway.Integration, secrets func() (slipway.IntegrationSecrets, error)) (slipway.GitHost, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if known, ok := o.known[i.ID]; ok && known.of.Equal(i.UpdatedAt) {
		return known.host, nil
	}
	s, err := secrets()
	if err != nil {
		return nil, err
	}
	host, err := o.open(i, s)
	if err != nil {
		return nil, err
	}
	if o.known == nil {
		o.known = map[string]openHost{}
	}
	o.known[i.ID] = openHost{host, i.UpdatedAt}
	return host, nil
}

func (o *openHosts) forget(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.known, id)
}
