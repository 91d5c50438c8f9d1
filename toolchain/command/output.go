package command

import (
	"bufio"
	"io"
	"regexp"
	"strings"
)

const (
	// longest is how many bytes of one line are kept. It is far more than a log line may have, so that whoever logs the
	// line can remove secrets from it before cutting it.
	longest = 1 << 20
	// lastLines is how many lines are searched for the reason of a failure.
	lastLines = 40
	// longestReason bounds the reason.
	longestReason = 600
)

// follow logs the lines and returns the last ones that are not empty.
func follow(r io.Reader, names *strings.Replacer, log func(string)) []string {
	var last []string
	lines := bufio.NewReaderSize(r, 64<<10)
	for {
		raw, err := line(lines)
		if text := strings.TrimRight(raw, "\r\n\t "); text != "" {
			text = names.Replace(text)
			log(text)
			if last = append(last, text); len(last) > lastLines {
				last = last[1:]
			}
		}
		if err != nil {
			return last
		}
	}
}

// line reads one line and keeps its first bytes.
func line(r *bufio.Reader) (string, error) {
	var kept []byte
	for {
		part, more, err := r.ReadLine()
		if room := longest - len(kept); room > 0 {
			kept = append(kept, part[:min(room, len(part))]...)
		}
		if err != nil || !more {
			return string(kept), err
		}
	}
}

var (
	noise = regexp.MustCompile(`^(npm (notice|warn|WARN|verb)|npm (error|ERR!)\s*$|.*(complete log of this run|This is an issue with the package|not with pip|update available|To update, run|` +
		`DeprecationWarning)|\s*at .*[:(]|Node\.js v\d|\[notice\]|hint:|\s*[{}\])^~]+[;,]?\s*$|note: )`)
	telling = regexp.MustCompile(`(?i)(error|fatal|fail|cannot|can't|not found|no such|unsatisfiable|invalid|denied|refused|ENO|E4\d\d)`)
)

// reason picks what says most of the last lines of a failed command.
func reason(last []string) string {
	var best, plain string
	for i, text := range last {
		switch trimmed := strings.TrimSpace(text); {
		case strings.HasPrefix(trimmed, "×"): // uv tells a story over several lines
			return bounded(joined(last[i:]))
		case noise.MatchString(text):
		case telling.MatchString(text) && !weaker(best, trimmed):
			best, plain = trimmed, trimmed
		default:
			plain = trimmed
		}
	}
	if best == "" {
		best = plain
	}
	return bounded(best)
}

// weaker says whether a line tells less than the best one before it: npm repeats itself after the line that matters.
func weaker(best, next string) bool {
	return strings.HasPrefix(best, "npm error") && strings.HasPrefix(next, "npm error") && !strings.HasPrefix(best, "npm error code") && best != "npm error 404"
}

func joined(lines []string) string {
	words := strings.Fields(strings.Join(lines, " "))
	kept := words[:0]
	for _, w := range words {
		if w != "×" && w != "╰─▶" && w != "├─▶" && w != "│" {
			kept = append(kept, w)
		}
	}
	return strings.Join(kept, " ")
}

func bounded(text string) string {
	if len(text) > longestReason {
		return strings.ToValidUTF8(text[:longestReason], "") + "…"
	}
	return text
}
