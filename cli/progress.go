package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/slipway-dev/slipway/client"
)

// progress shows how a deploy goes on: one JSON event per line, or lines for a person, with a status line that is
// rewritten in place on a terminal. Its JSON events are those stock clients print (control-plane reference 6).
type progress struct {
	out      io.Writer
	json     bool
	terminal bool
	started  time.Time
	status   string // the status line now shown, on a terminal
}

func (a *app) progress() *progress {
	return &progress{out: a.out, json: a.json, terminal: a.onTerminal() && !a.json, started: time.Now()}
}

// event prints one JSON event; without --json it does nothing.
func (p *progress) event(name string, fields map[string]any) {
	if !p.json {
		return
	}
	fields["event"] = name
	raw, err := json.Marshal(fields)
	if err != nil {
		raw = []byte(`{"event":"error","message":"an event could not be encoded"}`)
	}
	fmt.Fprintf(p.out, "%s\n", raw)
}

// line prints a line for a person, above the status line.
func (p *progress) line(text string) {
	if p.json {
		return
	}
	p.clear()
	fmt.Fprintln(p.out, text)
	p.redraw()
}

func (p *progress) clear() {
	if p.terminal && p.status != "" {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}

func (p *progress) redraw() {
	if p.terminal && p.status != "" {
		fmt.Fprintf(p.out, "%s %s", p.status, faint(time.Since(p.started).Round(time.Second).String()))
	}
}

// step says what is being done now.
func (p *progress) step(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	p.event("step", map[string]any{"message": text})
	p.line(text)
}

// warn points at something that may surprise.
func (p *progress) warn(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	p.event("warn", map[string]any{"message": text})
	p.line("warning: " + text)
}

// log shows one build-log line.
func (p *progress) log(e client.LogEntry) {
	p.event("log", map[string]any{"timestamp": e.Timestamp, "level": e.Level, "message": e.Message})
	p.line(faint("  | ") + plain(e.Message, "\n"+faint("  | ")))
}

// change shows a new status of the revision.
func (p *progress) change(r client.Revision) {
	p.event("status_change", map[string]any{"revision_id": r.ID, "status": r.Status, "reason": r.Reason()})
	if p.json {
		return
	}
	p.clear()
	p.status = ""
	if p.terminal && !r.Ended() {
		p.status = r.Status
		p.redraw()
		return
	}
	fmt.Fprintln(p.out, r.Status)
}

// tick redraws the running time; nothing happens where nobody watches.
func (p *progress) tick() {
	p.clear()
	p.redraw()
}

// accepted ends a command that does not wait.
func (p *progress) accepted(d client.Deployment) error {
	p.event("status_url", map[string]any{"deployment_id": d.ID, "revision_id": value(d.LatestRevisionID)})
	p.line(fmt.Sprintf("revision %s is on its way; `slipway revisions %s` shows it", value(d.LatestRevisionID), d.Name))
	return nil
}

// result ends the display with the outcome.
func (p *progress) result(status string, d client.Deployment, r client.Revision) {
	p.event("result", map[string]any{
		"status": status, "deployment_id": d.ID, "name": d.Name, "revision_id": r.ID, "revision_status": r.Status,
		"reason": r.Reason(), "url": value(d.SourceConfig.CustomURL), "seconds": time.Since(p.started).Round(time.Millisecond).Seconds(),
	})
	if status != "succeeded" {
		return
	}
	p.line(good("deployed ") + fmt.Sprintf("%s in %s: %s", d.Name, time.Since(p.started).Round(10*time.Millisecond), value(d.SourceConfig.CustomURL)))
}
