package main

import (
	"context"
	"sync"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/telemetry"
)

// countedBuilds is a build queue that counts how builds end and how long they take.
type countedBuilds struct {
	slipway.BuildQueue

	mu      sync.Mutex
	started map[string]time.Time // by revision
	ended   map[string]int64     // by outcome
	seconds float64              // of the last build that ended
}

// maxStarted bounds the builds that are remembered as begun.
const maxStarted = 1000

func newCountedBuilds(q slipway.BuildQueue) *countedBuilds {
	return &countedBuilds{BuildQueue: q, started: map[string]time.Time{}, ended: map[string]int64{"succeeded": 0, "failed": 0}}
}

// Claim implements slipway.BuildQueue.
func (b *countedBuilds) Claim(ctx context.Context, owner string) (slipway.BuildJob, error) {
	job, err := b.BuildQueue.Claim(ctx, owner)
	if err == nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.started) >= maxStarted { // interrupted ones never end
			clear(b.started)
		}
		b.started[job.RevisionID] = time.Now()
	}
	return job, err
}

// Complete implements slipway.BuildQueue.
func (b *countedBuilds) Complete(ctx context.Context, job slipway.BuildJob, result slipway.BuildResult) error {
	err := b.BuildQueue.Complete(ctx, job, result)
	b.end(job, "succeeded", err)
	return err
}

// Fail implements slipway.BuildQueue.
func (b *countedBuilds) Fail(ctx context.Context, job slipway.BuildJob, reason string) error {
	err := b.BuildQueue.Fail(ctx, job, reason)
	b.end(job, "failed", err)
	return err
}

func (b *countedBuilds) end(job slipway.BuildJob, outcome string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at, ok := b.started[job.RevisionID]
	if err != nil && slipway.ErrorCode(err) != slipway.CodeStale || !ok {
		return // it will be reported again
	}
	delete(b.started, job.RevisionID)
	if err == nil {
		b.ended[outcome]++
		b.seconds = time.Since(at).Seconds()
	}
}

func (b *countedBuilds) metrics() []telemetry.Metric {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := []telemetry.Metric{{Name: "platform_build_duration", Unit: "seconds", Description: "Time of the last build that ended", Value: b.seconds}}
	for outcome, n := range b.ended {
		out = append(out, telemetry.Metric{
			Name: "platform_builds", Unit: "1", Description: "Builds that ended", Value: float64(n), Total: true,
			Attributes: map[string]string{"outcome": outcome},
		})
	}
	return out
}
