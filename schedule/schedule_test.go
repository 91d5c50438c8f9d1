package schedule_test

import (
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/schedule"
)

func TestNext(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ spec, zone, after, want string }{
		{"*/15 * * * *", "", "2026-01-01T00:00:00Z", "2026-01-01T00:15:00Z"},
		{"0 9 * * mon-fri", "", "2026-01-02T10:00:00Z", "2026-01-05T09:00:00Z"},
		{"30 8 1,15 jan *", "Asia/Tokyo", "2026-01-01T00:00:00Z", "2026-01-14T23:30:00Z"},
		{"0 9 * * *", "Europe/Berlin", "2026-03-28T10:00:00Z", "2026-03-29T07:00:00Z"},  // summer time began in the night
		{"0 9 * * *", "Europe/Berlin", "2026-10-24T10:00:00Z", "2026-10-25T08:00:00Z"},  // and ended
		{"30 * * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"}, // 2:30 comes twice
	} {
		after, err := time.Parse(time.RFC3339, c.after)
		if err != nil {
			t.Fatal(err)
		}
		got, err := schedule.Next(c.spec, c.zone, after)
		if err != nil || got.Format(time.RFC3339) != c.want {
			t.Errorf("%q in %q after %s: got %v, %v, want %s", c.spec, c.zone, c.after, got, err, c.want)
		}
	}
}

func TestASkippedHourIsNotSkippedForADay(t *testing.T) {
	t.Parallel()
	// 2:30 does not exist in Berlin on 29 March 2026; the run of that day must still come on that day or at its next date.
	got, err := schedule.Next("30 2 * * *", "Europe/Berlin", time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC))
	if err != nil || got.Before(time.Date(2026, 3, 29, 0, 0, 0, 0, time.UTC)) || got.After(time.Date(2026, 3, 30, 1, 0, 0, 0, time.UTC)) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestWhatIsNoScheduleIsRefused(t *testing.T) {
	t.Parallel()
	for _, spec := range []string{"", "* * * *", "* * * * * *", "@daily", "61 * * * *", "TZ=UTC * * * *", "a b c d e", "* * * * 8-9", "*/0 * * * *", strings.Repeat("1,", 5000) + "1 * * * *"} {
		_, err := schedule.Next(spec, "", time.Now())
		if slipway.ErrorCode(err) != slipway.CodeInvalid || !strings.HasPrefix(err.Error(), "Invalid cron schedule: '"+spec+"'") {
			t.Errorf("%q: got %v", spec, err)
		}
	}
	for _, zone := range []string{"Mars/Base", "Local", "../etc/passwd"} {
		if _, err := schedule.Next("* * * * *", zone, time.Now()); slipway.ErrorCode(err) != slipway.CodeInvalid {
			t.Errorf("zone %q: got %v", zone, err)
		}
	}
}

func TestAScheduleWithoutDatesHasNoNext(t *testing.T) {
	t.Parallel()
	if got, err := schedule.Next("0 0 30 2 *", "", time.Now()); err != nil || !got.IsZero() {
		t.Errorf("got %v, %v, want none", got, err)
	}
}
