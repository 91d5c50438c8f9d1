package feed

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/client"
)

const (
	maxBatch  = 1000      // lines or samples in one delivery, as the protocol bounds them
	maxBytes  = 1 << 20   // of lines in one delivery
	maxReason = 16 << 10  // of a report
	lineCost  = 128       // of a line that waits, besides its text
	lostLevel = "WARNING" // of the line that stands for lost ones
)

// source is what a log line is of.
type source struct{ deploymentID, revisionID string }

// AppendLogs implements slipway.Feed: it takes the lines and returns; Run delivers them in order, each at least once, as long
// as the buffer holds them. It never fails and never waits, so that a listener works on while the service is away.
func (f *Feed) AppendLogs(_ context.Context, entries []slipway.LogEntry) error {
	f.mu.Lock()
	f.waiting = append(f.waiting, entries...)
	f.size += costs(entries)
	f.trim()
	f.mu.Unlock()
	select {
	case f.kick <- struct{}{}:
	default:
	}
	return nil
}

// trim drops the oldest of the lines that wait while they are too many; f.mu is held.
func (f *Feed) trim() {
	drop := 0
	for ; f.size > f.cfg.Buffer && drop < len(f.waiting); drop++ {
		oldest := f.waiting[drop]
		f.size -= cost(oldest)
		f.lost[source{oldest.DeploymentID, oldest.RevisionID}]++
	}
	f.waiting = f.waiting[drop:]
}

func costs(all []slipway.LogEntry) (sum int) {
	for _, e := range all {
		sum += cost(e)
	}
	return sum
}

func cost(e slipway.LogEntry) int { return len(e.Message) + lineCost }

// Run delivers log lines until ctx ends, then those that still wait for as long as Config.Parting; it returns nil.
func (f *Feed) Run(ctx context.Context) error {
	pause := f.pauses()
	for ctx.Err() == nil {
		if err := f.Flush(ctx); err != nil && ctx.Err() == nil {
			f.log.Warn("log lines not delivered", "error", err.Error(), "waiting", f.count())
			pause.take(ctx)
			continue
		}
		pause = f.pauses()
		select {
		case <-ctx.Done():
		case <-f.kick:
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.cfg.Parting)
	defer cancel()
	if err := f.Flush(last); err != nil {
		f.log.Warn("log lines lost at the end", "error", err.Error(), "lines", f.count())
	}
	return nil
}

func (f *Feed) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.waiting)
}

// Flush delivers what waits now. What it could not deliver goes on waiting.
func (f *Feed) Flush(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case f.sending <- struct{}{}:
	}
	defer func() { <-f.sending }()
	for {
		lines, lost := f.take()
		batch := slices.Concat(obituaries(lost), lines)
		if len(batch) == 0 {
			return nil
		}
		if rest, err := f.send(ctx, batch); err != nil {
			if len(rest) <= len(lines) {
				lost = nil // that was told
			}
			f.giveBack(rest[max(0, len(rest)-len(lines)):], lost)
			return fmt.Errorf("deliver log lines: %w", err)
		}
	}
}

// take removes the next delivery from what waits: lines, and how many were lost of what; each is half of it at most.
func (f *Feed) take() (lines []slipway.LogEntry, lost map[source]int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, size := 0, 0
	for n < len(f.waiting) && n < maxBatch/2 && (n == 0 || size+cost(f.waiting[n]) <= maxBytes) {
		size += cost(f.waiting[n])
		n++
	}
	lines, f.waiting, f.size = f.waiting[:n:n], f.waiting[n:], f.size-size
	lost = map[source]int{}
	for from, count := range f.lost {
		if len(lost) == maxBatch/2 {
			break
		}
		lost[from] = count
		delete(f.lost, from)
	}
	return lines, lost
}

// obituaries are the lines that stand for lost ones.
func obituaries(lost map[source]int) (out []slipway.LogEntry) {
	for from, count := range lost {
		out = append(out, slipway.LogEntry{
			DeploymentID: from.deploymentID, RevisionID: from.revisionID, Kind: slipway.LogDeploy, At: time.Now(), Level: lostLevel,
			Message: fmt.Sprintf("%d earlier lines were lost: they could not be delivered to the control service", count),
		})
	}
	return out
}

// giveBack puts lines that were not delivered before those that came meanwhile.
func (f *Feed) giveBack(rest []slipway.LogEntry, lost map[source]int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting = slices.Concat(rest, f.waiting)
	f.size += costs(rest)
	for from, count := range lost {
		f.lost[from] += count
	}
	f.trim()
}

// send delivers a batch. A line that the service will never take is left out, and the others go without it; rest is what
// an error leaves to be sent again.
func (f *Feed) send(ctx context.Context, batch []slipway.LogEntry) (rest []slipway.LogEntry, err error) {
	_, err = f.client.AppendListenerLogs(f.as(ctx), f.cfg.ListenerID, wireLines(batch))
	switch {
	case err == nil:
		return nil, nil
	case !unacceptable(err):
		return batch, coded(err)
	case len(batch) == 1:
		f.log.Error("log line refused", "deployment_id", batch[0].DeploymentID, "error", err.Error())
		return nil, nil
	}
	half := len(batch) / 2
	if rest, err := f.send(ctx, batch[:half]); err != nil {
		return slices.Concat(rest, batch[half:]), err
	}
	return f.send(ctx, batch[half:])
}

// unacceptable says whether the body of a call is what it was refused for.
func unacceptable(err error) bool {
	for _, status := range []int{http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity} {
		if client.IsStatus(err, status) {
			return true
		}
	}
	return false
}

func wireLines(batch []slipway.LogEntry) []client.ListenerLog {
	out := make([]client.ListenerLog, len(batch))
	for i, e := range batch {
		out[i] = client.ListenerLog{
			DeploymentID: e.DeploymentID, RevisionID: e.RevisionID, Timestamp: e.At.UTC(), Level: e.Level, Message: shortened(e.Message, slipway.MaxLogLine),
		}
	}
	return out
}

// shortened cuts a text to so many bytes, without half a character at its end.
func shortened(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len("…")], "") + "…"
}
