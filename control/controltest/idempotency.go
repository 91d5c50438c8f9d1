package controltest

import (
	"slices"
	"time"

	"github.com/slipway-dev/slipway"
)

func (t *tx) IdempotencyClaim(scope string) (slipway.IdempotencyClaim, error) {
	return find(t.claims, "claim", scope)
}

func (t *tx) PutIdempotencyClaim(c slipway.IdempotencyClaim) error {
	t.claims[c.Scope] = c
	return nil
}

func (t *tx) DropIdempotencyClaim(scope string) error {
	delete(t.claims, scope)
	return nil
}

// claimsBy lists the claims that end first before the others.
func (t *tx) claimsBy(tenantID string) []slipway.IdempotencyClaim {
	var out []slipway.IdempotencyClaim
	for _, c := range t.claims {
		if tenantID == "" || c.TenantID == tenantID {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b slipway.IdempotencyClaim) int { return a.EndsAt.Compare(b.EndsAt) })
	return out
}

func (t *tx) ExpireIdempotencyClaims(now time.Time, limit int) (time.Time, error) {
	for i, c := range t.claimsBy("") {
		if i == limit || c.EndsAt.After(now) {
			return c.EndsAt, nil
		}
		delete(t.claims, c.Scope)
	}
	return time.Time{}, nil
}

func (t *tx) TrimIdempotencyClaims(tenantID string, keep int) error {
	all := t.claimsBy(tenantID)
	for i := 0; i < len(all)-keep; i++ {
		delete(t.claims, all[i].Scope)
	}
	return nil
}

func (t *tx) FreeIdempotencyClaims() error {
	for scope, c := range t.claims {
		switch {
		case !c.Running:
		case !c.Committed:
			delete(t.claims, scope)
		default:
			c.LeaseEnds = time.Time{}
			t.claims[scope] = c
		}
	}
	return nil
}

// Claims returns every claim of an idempotency key.
func (s *Store) Claims() []slipway.IdempotencyClaim {
	s.mu.Lock()
	defer s.mu.Unlock()
	return (&tx{s.state}).claimsBy("")
}
