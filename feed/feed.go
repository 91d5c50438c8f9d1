// Package feed is the line of a listener elsewhere to its control service: slipway.Feed over the HTTP calls of the listener
// protocol (control-plane reference 8). It dials out only, waits for changes instead of asking again and again, and goes on
// from its cursor after the network was gone.
package feed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/client"
)

// Config are the settings of a Feed. Zero values mean the defaults named.
type Config struct {
	// ListenerID is the listener to speak for; the client's key must be one of it, or an admin's.
	ListenerID string
	// Version of the program that listens; it becomes the listener's version; "" = it is not told.
	Version string
	// Wait is how long the service may hold a call back until something changes, in whole seconds below the 30 that bound
	// a call; 25 s.
	Wait time.Duration
	// RetryMin and RetryMax bound the pauses after failures, which double and are spread at random between half and all of
	// that; 200 ms and 30 s.
	RetryMin, RetryMax time.Duration
	// Buffer bounds the log lines that wait for delivery, in bytes; 8 MiB. When it is full the oldest go, and a line in their
	// place says how many they were.
	Buffer int
	// Parting is how long Run goes on delivering log lines once it was told to end; 5 s.
	Parting time.Duration
}

func (c Config) withDefaults() Config {
	for _, d := range []struct {
		value *time.Duration
		is    time.Duration
	}{{&c.Wait, 25 * time.Second}, {&c.RetryMin, 200 * time.Millisecond}, {&c.RetryMax, 30 * time.Second}, {&c.Parting, 5 * time.Second}} {
		if *d.value == 0 {
			*d.value = d.is
		}
	}
	if c.Buffer == 0 {
		c.Buffer = 8 << 20
	}
	return c
}

// Feed is a slipway.Feed. It is safe for concurrent use. Log lines are delivered while Run runs.
type Feed struct {
	client *client.Client
	cfg    Config
	log    *slog.Logger

	sending chan struct{} // held by whoever delivers log lines, so that they stay in order
	kick    chan struct{}

	mu      sync.Mutex
	waiting []slipway.LogEntry
	size    int // of waiting, in bytes
	lost    map[source]int
}

var _ slipway.Feed = (*Feed)(nil)

// New returns a Feed that speaks through c.
func New(c *client.Client, cfg Config, log *slog.Logger) *Feed {
	return &Feed{
		client: c, cfg: cfg.withDefaults(), log: log, sending: make(chan struct{}, 1), kick: make(chan struct{}, 1), lost: map[source]int{},
	}
}

// Desired implements slipway.Feed. While the service cannot be reached it goes on trying from the same cursor; an error
// other than ctx's says that the service does not want this caller (its key, its listener, its version).
func (f *Feed) Desired(ctx context.Context, cursor string) (slipway.DesiredState, error) {
	for pause := f.pauses(); ; {
		state, err := f.client.ListenerState(f.as(ctx), f.cfg.ListenerID, cursor, int(f.cfg.Wait/time.Second))
		switch {
		case ctx.Err() != nil:
			return slipway.DesiredState{}, ctx.Err()
		case err == nil && unchanged(state, cursor):
			pause = f.pauses()
		case err == nil:
			return desiredState(state)
		case !passing(err):
			return slipway.DesiredState{}, fmt.Errorf("fetch desired state: %w", coded(err))
		default:
			f.log.Warn("control service not reached", "error", err.Error())
			pause.take(ctx)
		}
	}
}

// unchanged says whether an answer only says that the wait is over.
func unchanged(s client.ListenerState, cursor string) bool {
	return s.Partial && s.Cursor == cursor && len(s.Deployments) == 0 && len(s.Absent) == 0
}

// Report implements slipway.Feed. It tries once: whoever reports looks again whether the report is still true.
func (f *Feed) Report(ctx context.Context, r slipway.Report) error {
	out := client.ListenerReport{DeploymentID: r.DeploymentID, Generation: r.Generation, Gone: r.Gone}
	if !r.Gone {
		status := string(r.Status)
		out.RevisionID, out.Status = &r.RevisionID, &status
	}
	if r.Reason != "" {
		reason := shortened(r.Reason, maxReason)
		out.Reason = &reason
	}
	err := f.client.ReportListenerStatus(f.as(ctx), f.cfg.ListenerID, out)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case client.IsStatus(err, http.StatusConflict):
		return slipway.Errorf(slipway.CodeStale, "%s", err.Error())
	}
	return fmt.Errorf("report: %w", coded(err))
}

// Measure delivers what was measured of deployments, one sample each. It tries once: the next measurement replaces this one.
func (f *Feed) Measure(ctx context.Context, all []slipway.Metrics) error {
	for batch := range slices.Chunk(all, maxBatch) {
		samples := make([]client.DeploymentMetrics, len(batch))
		for i, m := range batch {
			samples[i] = client.DeploymentMetrics{
				DeploymentID: m.DeploymentID, RevisionID: orNil(m.RevisionID), Timestamp: m.At, Replicas: m.Replicas,
				ReadyReplicas: m.ReadyReplicas, Restarts: m.Restarts, CPUCores: m.CPUCores, MemoryMB: m.MemoryMB,
			}
		}
		if _, err := f.client.PutListenerMetrics(f.as(ctx), f.cfg.ListenerID, samples); err != nil {
			return fmt.Errorf("deliver metrics: %w", coded(err))
		}
	}
	return nil
}

// as marks the calls with the listener's version.
func (f *Feed) as(ctx context.Context) context.Context {
	if f.cfg.Version == "" {
		return ctx
	}
	return client.WithListenerVersion(ctx, f.cfg.Version)
}

// passing says whether a failure may be over at the next try.
func passing(err error) bool {
	var answer *client.Error
	if !errors.As(err, &answer) {
		return true // no answer, or half of one
	}
	return answer.Status >= 500 || answer.Status == http.StatusTooManyRequests || answer.Status == http.StatusRequestTimeout
}

// coded turns a refusal into the error that the service refused with.
func coded(err error) error {
	var answer *client.Error
	if !errors.As(err, &answer) {
		return slipway.Errorf(slipway.CodeUnavailable, "%w", err)
	}
	code, known := codes()[answer.Status]
	if !known {
		code = slipway.CodeUnavailable
	}
	return slipway.Errorf(code, "%w", err)
}

func codes() map[int]slipway.Code {
	return map[int]slipway.Code{
		http.StatusBadRequest: slipway.CodeBadRequest, http.StatusUnauthorized: slipway.CodeUnauthenticated, http.StatusForbidden: slipway.CodeForbidden,
		http.StatusNotFound: slipway.CodeNotFound, http.StatusConflict: slipway.CodeConflict, http.StatusRequestEntityTooLarge: slipway.CodeTooLarge,
		http.StatusUnprocessableEntity: slipway.CodeInvalid,
	}
}

// pauses are growing pauses between tries.
type pauses struct{ next, most time.Duration }

func (f *Feed) pauses() pauses { return pauses{f.cfg.RetryMin, f.cfg.RetryMax} }

// take waits for the next pause, or until ctx ends. Many listeners that lost the same service do not come back at once.
func (p *pauses) take(ctx context.Context) {
	length := p.next/2 + rand.N(p.next/2+1)
	p.next = min(2*p.next, p.most)
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
