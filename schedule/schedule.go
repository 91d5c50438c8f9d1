// Package schedule evaluates cron schedules (agent-server reference 6): five fields with names, ranges, lists and steps, in
// an IANA time zone, across changes of daylight-saving time.
package schedule

import (
	"strings"
	"time"
	_ "time/tzdata" // zones also where the system has none

	"github.com/netresearch/go-cron"

	"github.com/slipway-dev/slipway"
)

// Next returns the first date of a schedule after a moment, in UTC; zero if it has none within the library's horizon (the
// 30th of February). An empty zone is UTC. A schedule or zone that cannot be understood is CodeInvalid.
func Next(spec, zone string, after time.Time) (time.Time, error) {
	location, err := locate(zone)
	if err != nil {
		return time.Time{}, err
	}
	if len(strings.Fields(spec)) != 5 || strings.ContainsAny(spec, "@=") {
		return time.Time{}, slipway.Errorf(slipway.CodeInvalid, "Invalid cron schedule: '%s' (give five fields: minute, hour, day of month, month, day of week)", spec)
	}
	parsed, err := cron.MustNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse(spec)
	if err != nil {
		return time.Time{}, slipway.Errorf(slipway.CodeInvalid, "Invalid cron schedule: '%s' (%w)", spec, err)
	}
	next := parsed.Next(after.In(location))
	if next.IsZero() {
		return next, nil
	}
	return next.UTC(), nil
}

func locate(zone string) (*time.Location, error) {
	if zone == "" {
		return time.UTC, nil
	}
	location, err := time.LoadLocation(zone)
	if err != nil || zone == "Local" {
		return nil, slipway.Errorf(slipway.CodeInvalid, "Invalid timezone: '%s'; give an IANA name such as Europe/Berlin", zone)
	}
	return location, nil
}
