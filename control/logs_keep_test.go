package control_test

import (
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
)

func TestLogsAreBoundedInSizeAndAge(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.SetLogLimit(20_000)
	d := w.create()
	line := slipway.LogEntry{DeploymentID: d.ID, RevisionID: d.LatestRevisionID, Kind: slipway.LogDeploy, Level: "INFO", Message: strings.Repeat("x", 900)}
	for range 100 {
		line.At = w.Now()
		must(t, 0, w.AppendLogs(t.Context(), []slipway.LogEntry{line}))
	}
	read := func() int {
		page, err := w.Logs(t.Context(), w.Admin, slipway.LogQuery{DeploymentID: d.ID, Kind: slipway.LogDeploy, Limit: 1000}, "")
		return len(must(t, page, err).Entries)
	}
	if got := read(); got < 18 || got > 23 {
		t.Errorf("%d lines of 1000 bytes are kept, want about 20", got)
	}
	w.Advance(169 * time.Hour)
	line.At = w.Now()
	must(t, 0, w.AppendLogs(t.Context(), []slipway.LogEntry{line}))
	w.sweep()
	if got := read(); got != 1 {
		t.Errorf("%d lines are left after a week, want the new one", got)
	}
}
