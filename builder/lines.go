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
	secrets *strings.Replacer
}

func newLines(q slipway.BuildQueue, job slipway.BuildJob, clock slipway.Clock) *lines {
	return &lines{queue: q, job: job, clock: clock, secrets: slipway.Redactor(job.Redact)}
}

func (l *lines) add(line string) { l.addLevel("INFO", line) }

// addLevel adds one line. It is not cut: the queue knows secrets that builders do not, and removes them first.
func (l *lines) addLevel(level, line string) {
	line = strings.ToValidUTF8(l.redact(line), "\uFFFD")
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending = append(l.pending, slipway.LogEntry{
		DeploymentID: l.job.DeploymentID, RevisionID: l.job.RevisionID, Kind: slipway.LogBuild, At: l.clock(), Level: level, Message: line,
	})
}

func (l *lines) redact(line string) string { return l.secrets.Replace(line) }

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
