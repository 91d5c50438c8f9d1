package beacon

import (
	"strconv"
	"strings"
)

// Switches are the settings that turn telemetry off (spec 8; control-plane reference 9). The zero value sends everything.
type Switches struct {
	NoLogs    bool // config.telemetry.logs = false
	NoMetrics bool // config.telemetry.metrics = false
	NoTraces  bool // config.telemetry.traces = false
	NoUsage   bool // PHONE_HOME_USAGE_REPORTING_ENABLED = false
}

// Streams says what an installation sends.
type Streams struct {
	Billing bool // licence verification and trace transactions
	Usage   bool // usage snapshots
	Logs    bool
	Metrics bool
	Traces  bool
}

// StreamsOf decides what an installation of a version with a licence key sends (spec 4.5, 8, 9.3): nothing with an offline
// licence, without one or before 0.9.0; operational telemetry from 0.11 on; billing cannot be switched off. A version that is
// no number, such as a development build, counts as the newest.
func StreamsOf(version, key string, s Switches) Streams {
	if key == "" || KindOf(key) == Offline || before(version, 0, 9) {
		return Streams{}
	}
	operational := !before(version, 0, 11)
	return Streams{
		Billing: true, Usage: !s.NoUsage,
		Logs: operational && !s.NoLogs, Metrics: operational && !s.NoMetrics, Traces: operational && !s.NoTraces,
	}
}

// before says whether a version is older than major.minor.
func before(version string, major, minor int) bool {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) < 2 {
		return false
	}
	a, errA := strconv.Atoi(parts[0])
	b, errB := strconv.Atoi(parts[1])
	if errA != nil || errB != nil {
		return false
	}
	return a < major || a == major && b < minor
}
