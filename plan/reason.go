package plan

import (
	"fmt"
	"strings"

	"github.com/slipway-dev/slipway"
)

const (
	reasonLines    = 5   // log lines quoted in a reason
	reasonLineSize = 400 // bytes of each
)

// reason says in one sentence why a candidate cannot become ready, with what there is of exit code, last probe answer and
// last log lines (control-plane reference 10, rows 27 to 29).
func reason(o slipway.Observed, s Settings) string {
	if o.Failure != "" {
		return o.Failure
	}
	var b strings.Builder
	if o.Phase == slipway.PhaseExited {
		fmt.Fprintf(&b, "the agent server %s before it was ready (attempt %d of %d)", exit(o.ExitCode), o.Restarts+1, s.Attempts)
	} else {
		fmt.Fprintf(&b, "the agent server was not ready after %s", s.ReadyDeadline)
	}
	if o.Probe != "" {
		fmt.Fprintf(&b, "; last probe: %s", o.Probe)
	}
	if lines := tail(o.LastLines); len(lines) > 0 {
		fmt.Fprintf(&b, "; last log lines: %s", strings.Join(lines, " | "))
	}
	return b.String()
}

func exit(code int) string {
	if code < 0 {
		return "ended by a signal or with an unknown exit code"
	}
	return fmt.Sprintf("exited with code %d", code)
}

func tail(lines []string) []string {
	lines = lines[max(0, len(lines)-reasonLines):]
	out := make([]string, 0, len(lines))
	for _, l := range lines {
		if len(l) > reasonLineSize {
			l = strings.ToValidUTF8(l[:reasonLineSize], "") + "…"
		}
		out = append(out, l)
	}
	return out
}
