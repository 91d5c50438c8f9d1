package process

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// mask replaces a secret value.
const mask = "[redacted]"

// minSecretLine is the shortest line of a secret of several lines that is removed on its own.
const minSecretLine = 8

// redactor removes secret values from text (quality P8).
type redactor struct{ replacer *strings.Replacer }

// newRedactor knows each value as it is, as it looks inside JSON or a URL, and line by line: what user code prints is logged
// a line at a time.
func newRedactor(values []string) *redactor {
	var needles []string
	for _, v := range values {
		if v == "" {
			continue
		}
		quoted, _ := json.Marshal(v)
		needles = append(needles, v, strings.Trim(string(quoted), `"`), url.QueryEscape(v), url.PathEscape(v))
		for line := range strings.Lines(v) {
			if line = strings.TrimSpace(line); len(line) >= minSecretLine {
				needles = append(needles, line)
			}
		}
	}
	slices.SortFunc(needles, func(a, b string) int { return len(b) - len(a) })
	pairs := make([]string, 0, 2*len(needles))
	for _, n := range slices.Compact(needles) {
		pairs = append(pairs, n, mask)
	}
	return &redactor{replacer: strings.NewReplacer(pairs...)}
}

func (r *redactor) clean(text string) string { return r.replacer.Replace(text) }
