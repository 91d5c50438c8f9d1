package process

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/slipway-dev/slipway"
)

const cutMark = "… (cut)"

// parseLine reads one line of an agent server's output. What is not a JSON object with a message is a message itself.
func parseLine(line []byte, now time.Time, r *redactor) slipway.LogEntry {
	e := slipway.LogEntry{Kind: slipway.LogDeploy, At: now, Level: "INFO", Message: string(line)}
	var fields map[string]any
	if len(line) > 0 && line[0] == '{' && json.Unmarshal(line, &fields) == nil {
		if msg, ok := fields["message"].(string); ok {
			e.Message = msg + extras(fields)
			e.Level = level(fields["level"])
			if t, err := time.Parse(time.RFC3339Nano, fmt.Sprint(fields["time"])); err == nil {
				e.At = t
			}
		}
	}
	e.Message = cut(r.clean(strings.ToValidUTF8(e.Message, "�")))
	return e
}

// extras appends what a structured line says besides its message, in a fixed order.
func extras(fields map[string]any) string {
	var keys []string
	for k := range fields {
		switch k {
		case "time", "level", "message", "logger":
		default:
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	var b strings.Builder
	for _, k := range keys {
		value, ok := fields[k].(string)
		if !ok {
			raw, _ := json.Marshal(fields[k])
			value = string(raw)
		}
		fmt.Fprintf(&b, " %s=%s", k, value)
	}
	return b.String()
}

func level(v any) string {
	name, _ := v.(string)
	switch name = strings.ToUpper(name); name {
	case "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL":
		return name
	case "WARN":
		return "WARNING"
	case "FATAL", "PANIC":
		return "CRITICAL"
	case "TRACE":
		return "DEBUG"
	default:
		return "INFO"
	}
}

func cut(text string) string {
	if len(text) <= slipway.MaxLogLine {
		return text
	}
	text = text[:slipway.MaxLogLine-len(cutMark)]
	for !utf8.ValidString(text) {
		text = text[:len(text)-1]
	}
	return text + cutMark
}

// lines splits data at line ends, leaving out empty lines and the zeros of a punched hole.
func lines(data []byte) [][]byte {
	var out [][]byte
	for line := range bytes.SplitSeq(bytes.TrimLeft(data, "\x00"), []byte{'\n'}) {
		if line = bytes.TrimRight(line, "\r"); len(line) > 0 {
			out = append(out, line)
		}
	}
	return out
}
