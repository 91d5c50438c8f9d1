package beacon

import (
	"strings"
	"time"

	"github.com/slipway-dev/slipway"
)

// ParseTime reads an ISO 8601 timestamp (spec 4.5): date and time joined by T or a space, an optional fraction, and an
// offset as Z, +hh:mm or +hhmm. Without an offset the time is UTC unless one is asked for.
func ParseTime(text string, needsOffset bool) (time.Time, error) {
	if len(text) <= 40 {
		plain := strings.Replace(strings.ToUpper(text), " ", "T", 1)
		for _, form := range []string{"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05Z0700"} {
			if t, err := time.Parse(form, plain); err == nil {
				return t.UTC(), nil
			}
		}
		if t, err := time.Parse("2006-01-02T15:04:05", plain); err == nil && !needsOffset {
			return t, nil
		}
	}
	remedy := "write it as 2026-01-31T13:00:00Z"
	if needsOffset {
		remedy = "write it with its UTC offset, as 2026-01-31T13:00:00+00:00"
	}
	return time.Time{}, slipway.Errorf(slipway.CodeInvalid, "%q is no ISO 8601 timestamp; %s", clip(text), remedy)
}
