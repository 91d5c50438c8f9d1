package gateway

import (
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
)

// route is one place where requests of a deployment may go. It never changes; another place is another route.
type route struct {
	revisionID string
	endpoint   *url.URL // nil = nothing serves
	inFlight   *atomic.Int64
}

// target is a deployment as the gateway knows it.
type target struct {
	deploymentID, name string

	mu      sync.Mutex
	current *route
	changed chan struct{}            // closed when current is replaced
	flights map[string]*atomic.Int64 // requests in flight by revision
}

// get returns the current route, counted as in flight if it leads somewhere, and a channel that tells of its end.
func (t *target) get() (*route, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current.endpoint != nil {
		t.current.inFlight.Add(1)
	}
	return t.current, t.changed
}

func (t *target) set(revisionID string, endpoint *url.URL) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old := t.current; old != nil && old.revisionID == revisionID && same(old.endpoint, endpoint) {
		return
	}
	for id, n := range t.flights {
		if n.Load() == 0 && id != revisionID {
			delete(t.flights, id)
		}
	}
	n := t.flights[revisionID]
	if n == nil {
		n = new(atomic.Int64)
		t.flights[revisionID] = n
	}
	t.current = &route{revisionID: revisionID, endpoint: endpoint, inFlight: n}
	close(t.changed)
	t.changed = make(chan struct{})
}

func same(a, b *url.URL) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.String() == b.String()
}

// table maps names to deployments. Names are slugs (see slipway.Slug), which tenants do not share; should two be the same, the
// deployment that came first has it, and the next takes over when that one is forgotten.
type table struct {
	mu     sync.RWMutex
	byName map[string][]*target
	byID   map[string]*target
}

func (tb *table) lookup(name string) *target {
	tb.mu.RLock()
	defer tb.mu.RUnlock()
	if all := tb.byName[name]; len(all) > 0 {
		return all[0]
	}
	return nil
}

func (tb *table) find(deploymentID string) *target {
	tb.mu.RLock()
	defer tb.mu.RUnlock()
	return tb.byID[deploymentID]
}

func (tb *table) enter(name, deploymentID string) *target {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	if t := tb.byID[deploymentID]; t != nil {
		return t
	}
	t := &target{deploymentID: deploymentID, name: name, changed: make(chan struct{}), flights: map[string]*atomic.Int64{}}
	t.current = &route{}
	tb.byID[deploymentID] = t
	tb.byName[name] = append(tb.byName[name], t)
	return t
}

func (tb *table) forget(deploymentID string) *target {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	t := tb.byID[deploymentID]
	if t == nil {
		return nil
	}
	delete(tb.byID, deploymentID)
	rest := slices.DeleteFunc(slices.Clone(tb.byName[t.name]), func(o *target) bool { return o == t })
	if len(rest) == 0 {
		delete(tb.byName, t.name)
	} else {
		tb.byName[t.name] = rest
	}
	return t
}
