package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
)

func idempotency(t *testing.T, s slipway.Store) {
	claim := func(n int) slipway.IdempotencyClaim {
		return slipway.IdempotencyClaim{
			Scope: fmt.Sprint("s", n), TenantID: "t", Request: "r", Owner: "o", Running: n%2 == 0, Committed: n == 2,
			LeaseEnds: startTime(), EndsAt: startTime().Add(time.Duration(n) * time.Hour), Header: map[string]string{"A": "b"}, Sealed: []byte{0, 255},
		}
	}
	update(t, s, func(tx slipway.Tx) error {
		next, err := tx.ExpireIdempotencyClaims(startTime(), 10)
		must(t, err)
		equal(t, "nothing ends", next, time.Time{})
		for n := range 6 {
			must(t, tx.PutIdempotencyClaim(claim(n)))
		}
		must(t, tx.PutIdempotencyClaim(slipway.IdempotencyClaim{Scope: "x", TenantID: "other", EndsAt: startTime().Add(time.Minute)}))
		got, err := tx.IdempotencyClaim("s1")
		must(t, err)
		equal(t, "claim", fmt.Sprint(got), fmt.Sprint(claim(1)))

		next, err = tx.ExpireIdempotencyClaims(startTime(), 10)
		must(t, err)
		equal(t, "next", next, startTime().Add(time.Minute))
		_, err = tx.IdempotencyClaim("s0")
		wantCode(t, err, slipway.CodeNotFound)

		must(t, tx.FreeIdempotencyClaims())
		_, err = tx.IdempotencyClaim("s4")
		wantCode(t, err, slipway.CodeNotFound)
		got, err = tx.IdempotencyClaim("s2")
		must(t, err)
		equal(t, "freed", got.LeaseEnds, time.Time{})

		must(t, tx.TrimIdempotencyClaims("t", 2))
		for scope, kept := range map[string]bool{"s1": false, "s2": false, "s3": true, "s5": true, "x": true} {
			_, err := tx.IdempotencyClaim(scope)
			equal(t, scope+" kept", err == nil, kept)
		}
		return tx.DropIdempotencyClaim("s5")
	})
}
