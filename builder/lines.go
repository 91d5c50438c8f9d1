package builder

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/slipway-dev/slipway"
)

// flushEvery is how long a line may wait for others.
const flushEvery = 200 * time.Millisecond

// lines batches the log of one build and keeps secrets out of it.
type lines struct {
	queue   slipway.BuildQueue
	job     slipway.BuildJob
	clock   slipway.Clock
	mu      sync.Mutex
	pending []slipway.LogEntry
}

func newLines(q slipway.BuildQueue, job slipway.BuildJob, clock slipway.Clock) *lines {
	return &lines{queue: q, job: job, clock: clock}
}

func (l *lines) add(line string) { l.addLevel("INFO", line) }

func (l *lines) addLevel(level, line string) {
	line = l.redact(line)
	if len(line) > slipway.MaxLogLine {
		line = line[:slipway.MaxLogLine-3] + "…"
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending = append(l.pending, slipway.LogEntry{
		DeploymentID: l.job.DeploymentID, RevisionID: l.job.RevisionID, Kind: slipway.LogBuild, At: l.clock(), Level: level,
		Message: strings.ToValidUTF8(line, "�"),
	})
}

func (l *lines) redact(line string) string {
	for _, secret := range l.job.Redact {
		if secret != "" {
			line = strings.ReplaceAll(line, secret, "••••••••")
		}
	}
	return line
}

// start stores the lines as they come; the returned function stores the rest and ends it.
func (l *lines) start(ctx context.Context) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(flushEvery)
		defer tick.Stop()
		for {
			select {
			case <-done:
				l.flush(ctx)
				return
			case <-tick.C:
				l.flush(ctx)
			}
		}
	}()
	return func() { close(done); <-ended }
}

func (l *lines) flush(ctx context.Context) {
	l.mu.Lock()
	batch := l.pending
	l.pending = nil
	l.mu.Unlock()
	if len(batch) > 0 {
		_ = l.queue.Log(ctx, l.job, batch) // a lost lease shows at the renewal
	}
}
