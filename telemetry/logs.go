package telemetry

import (
	"context"
	"log/slog"
	"sync"

	"github.com/slipway-dev/slipway/beacon"
)

// gathered are log records of warning and worse that wait for the next export.
type gathered struct {
	redactor beacon.Redactor
	mu       sync.Mutex
	list     []logRecord
	skipped  int64
}

// handler passes records on and gathers those that are telemetry.
type handler struct {
	next  slog.Handler
	to    *gathered
	attrs []slog.Attr // of groups none: what is in a group is never sent
	group bool
}

// Enabled says whether anybody wants a record of the level.
func (h handler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn || h.next.Enabled(ctx, level)
}

// Handle passes the record on and keeps what of it may be sent.
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	if severity := severityOf(r.Level); beacon.Exported(severity) {
		h.to.add(r, severity, h.attrs, h.group)
	}
	if !h.next.Enabled(ctx, r.Level) {
		return nil
	}
	return h.next.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.next = h.next.WithAttrs(attrs)
	if !h.group {
		h.attrs = append(append([]slog.Attr(nil), h.attrs...), attrs...)
	}
	return h
}

// WithGroup implements slog.Handler.
func (h handler) WithGroup(name string) slog.Handler {
	h.next, h.group = h.next.WithGroup(name), h.group || name != ""
	return h
}

// severityOf is the OpenTelemetry number of a level (control-plane reference 9).
func severityOf(level slog.Level) int {
	switch {
	case level >= slog.LevelError:
		return beacon.SeverityError
	case level >= slog.LevelWarn:
		return beacon.SeverityWarning
	}
	return 9
}

func (g *gathered) add(r slog.Record, severity int, attrs []slog.Attr, grouped bool) {
	all := map[string]string{}
	take := func(a slog.Attr) bool {
		if v := a.Value.Resolve(); v.Kind() != slog.KindGroup {
			all[a.Key] = v.String()
		}
		return true
	}
	for _, a := range attrs {
		take(a)
	}
	if !grouped {
		r.Attrs(take)
	}
	out := logRecord{
		Time: nanos(r.Time), SeverityNumber: severity, SeverityText: beacon.SeverityText(severity), Body: text(beacon.Message(r.Message)),
	}
	out.Attributes, out.DroppedAttrs = attributesOf(g.redactor, all)
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.list) >= maxLogs {
		g.skipped++
		return
	}
	g.list = append(g.list, out)
}

// lost is how many records there was no room for, since the start.
func (g *gathered) lost() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.skipped
}

func (g *gathered) take(reset bool) []logRecord {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := append([]logRecord(nil), g.list...)
	if reset {
		g.list = nil
	}
	return out
}
