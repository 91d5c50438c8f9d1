package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// logForm is how an agent server writes its log (LOG_JSON, LOG_COLOR).
type logForm struct{ json, color bool }

// under is the form of a server that a platform started, which reads JSON lines, or of one started by hand.
func (f logForm) under(platform bool) logForm {
	f.json = f.json || platform
	return f
}

// newServeLog writes JSON lines as the runtimes read them: time, level, message and the rest. Without JSON it writes lines
// for people.
func newServeLog(w io.Writer, level slog.Level, form logForm) *slog.Logger {
	if !form.json {
		return slog.New(slog.NewTextHandler(colored(w, form.color), &slog.HandlerOptions{Level: level}))
	}
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		switch {
		case len(groups) > 0:
		case a.Key == slog.MessageKey:
			a.Key = "message"
		case a.Key == slog.LevelKey && a.Value.String() == "WARN":
			a.Value = slog.StringValue("WARNING")
		case a.Key == slog.TimeKey:
			a.Value = slog.StringValue(a.Value.Time().UTC().Format(time.RFC3339Nano))
		}
		return a
	}}))
}

// colored marks the lines of warnings and errors.
func colored(w io.Writer, on bool) io.Writer {
	if !on {
		return w
	}
	return &painter{w: w}
}

// painter colours whole lines, of which each Write is one.
type painter struct {
	mu sync.Mutex
	w  io.Writer
}

// Write writes one line.
func (p *painter) Write(line []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	color := ""
	switch text := string(line); {
	case strings.Contains(text, " level=ERROR "):
		color = "\x1b[31m"
	case strings.Contains(text, " level=WARN "):
		color = "\x1b[33m"
	default:
		return p.w.Write(line)
	}
	if _, err := fmt.Fprintf(p.w, "%s%s\x1b[0m\n", color, strings.TrimSuffix(string(line), "\n")); err != nil {
		return 0, err
	}
	return len(line), nil
}

// tellUnused says, once, which variables of other servers are set here and have no effect, and why.
func tellUnused(log *slog.Logger, getenv func(string) string) {
	for _, v := range unused() {
		if getenv(v.name) != "" {
			log.LogAttrs(context.Background(), slog.LevelInfo, "an environment variable has no effect here", slog.String("name", v.name), slog.String("reason", v.reason))
		}
	}
}
