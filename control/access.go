package control

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/slipway-dev/slipway"
)

const (
	// accessAge is how long a key or tenant that was found is trusted without asking the database again. Changes made by
	// this process count at once; those of another control service on the same database within this time.
	accessAge = 5 * time.Second
	// accessLimit bounds how many keys, and how many tenants, are remembered.
	accessLimit = 10000
)

// access remembers which keys and tenants are valid, so that authentication needs no query per request, and when keys were
// last used, so that it needs no write either. It is safe for concurrent use.
type access struct {
	store slipway.Store
	clock slipway.Clock
	group singleflight.Group

	mu      sync.Mutex
	version uint64 // rises with every change; what was read before a change is not remembered after it
	keys    map[string]remembered[slipway.APIKey]
	tenants map[string]remembered[struct{}]
	uses    map[string]time.Time // since the last flush, by key id
}

type remembered[T any] struct {
	value T
	until time.Time
}

func newAccess(store slipway.Store, clock slipway.Clock) *access {
	return &access{
		store: store, clock: clock, keys: map[string]remembered[slipway.APIKey]{}, tenants: map[string]remembered[struct{}]{},
		uses: map[string]time.Time{},
	}
}

// key returns the record of a key; CodeNotFound is never remembered, so a new key is valid at once everywhere.
func (a *access) key(ctx context.Context, hash string) (slipway.APIKey, error) {
	return look(ctx, a, a.keys, hash, func(tx slipway.Tx) (slipway.APIKey, error) { return tx.APIKeyByHash(hash) })
}

// tenant says whether a tenant exists.
func (a *access) tenant(ctx context.Context, id string) (bool, error) {
	_, err := look(ctx, a, a.tenants, id, func(tx slipway.Tx) (struct{}, error) {
		_, err := tx.Tenant(id)
		return struct{}{}, err
	})
	if slipway.ErrorCode(err) == slipway.CodeNotFound {
		return false, nil
	}
	return err == nil, err
}

// look finds a value in memory, else in the store; many that look for one at a time share a query.
func look[T any](ctx context.Context, a *access, in map[string]remembered[T], name string, find func(slipway.Tx) (T, error)) (T, error) {
	now := a.clock()
	a.mu.Lock()
	found, ok := in[name]
	version := a.version
	a.mu.Unlock()
	if ok && now.Before(found.until) {
		return found.value, nil
	}
	// The version is part of the name: whoever looks after a change does not join a query from before it.
	query := fmt.Sprintf("%T %d %s", found.value, version, name)
	v, err, _ := a.group.Do(query, func() (any, error) {
		var v T
		err := a.store.View(context.WithoutCancel(ctx), func(tx slipway.Tx) (err error) {
			v, err = find(tx)
			return err
		})
		if err == nil {
			remember(a, in, version, name, remembered[T]{v, now.Add(accessAge)})
		}
		return v, err
	})
	return v.(T), err
}

func remember[T any](a *access, in map[string]remembered[T], version uint64, name string, value remembered[T]) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.version != version {
		return
	}
	if len(in) >= accessLimit {
		clear(in)
	}
	in[name] = value
}

// forget is called after every change of keys or tenants is durable; from then on nobody is let in by what was before.
func (a *access) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version++
	clear(a.keys)
	clear(a.tenants)
}

func (a *access) used(keyID string, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, known := a.uses[keyID]; known || len(a.uses) < accessLimit {
		a.uses[keyID] = at
	}
}

// flush writes when keys were last used, if any were; what cannot be written is kept for the next time.
func (a *access) flush(ctx context.Context) error {
	a.mu.Lock()
	uses := a.uses
	a.uses = map[string]time.Time{}
	a.mu.Unlock()
	if len(uses) == 0 {
		return nil
	}
	err := a.store.Update(ctx, func(tx slipway.Tx) error { return tx.TouchAPIKeys(uses) })
	if err == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.Copy(uses, a.uses)
	a.uses = uses
	return err
}
