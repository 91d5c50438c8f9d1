package slipway

import (
	"slices"
	"strings"
)

// shortestSecret is how long a value must be to be looked for: shorter ones cannot be told from ordinary text, and builds
// do not get to know any of them.
const shortestSecret = 4

// Redacted is what stands where a secret was.
const Redacted = "••••••••"

// Redactor replaces secrets, the longest first, and each line of those that have several: a log is kept line by line.
func Redactor(secrets []string) *strings.Replacer {
	var values []string
	for _, secret := range secrets {
		values = append(values, secret)
		if strings.Contains(secret, "\n") {
			for line := range strings.Lines(secret) {
				values = append(values, strings.TrimSpace(line))
			}
		}
	}
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, v := range values {
		if len(v) >= shortestSecret {
			pairs = append(pairs, v, Redacted)
		}
	}
	return strings.NewReplacer(pairs...)
}

// CutLine makes a redacted line one that may be stored: valid UTF-8 of at most MaxLogLine bytes, with a mark where it was cut.
func CutLine(line string) string {
	line = strings.ToValidUTF8(line, "\uFFFD")
	if len(line) > MaxLogLine {
		line = strings.ToValidUTF8(line[:MaxLogLine-len("…")], "") + "…"
	}
	return line
}
