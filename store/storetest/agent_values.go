package storetest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/agent"
)

// keptValues: a value is there until its time is over, a later one takes its place, and what is over goes.
func keptValues(t *testing.T, s agent.Store) {
	ctx, start := context.Background(), startTime()
	value := func(key string, now time.Time) string {
		t.Helper()
		v, err := s.KeptValue(ctx, key, now)
		must(t, err)
		return string(v)
	}
	equal(t, "unknown", value("k", start), "")
	must(t, s.KeepValue(ctx, "k", raw(`{"a":"\u0000é"}`), start.Add(time.Minute)))
	must(t, s.KeepValue(ctx, strings.Repeat("ü", 512), raw(`null`), start.Add(time.Hour)))
	equal(t, "kept as it was", value("k", start), `{"a":"\u0000é"}`)
	equal(t, "over", value("k", start.Add(time.Minute)), "")
	must(t, s.KeepValue(ctx, "k", raw(`2`), start.Add(2*time.Minute)))
	equal(t, "put anew", value("k", start.Add(time.Minute)), `2`)
	must(t, s.DropValues(ctx, start.Add(2*time.Minute)))
	equal(t, "dropped", value("k", start), "")
	equal(t, "stays", value(strings.Repeat("ü", 512), start), "null")
}
