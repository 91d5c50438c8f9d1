// Package builder turns waiting revisions into bundles: claim, fetch, detect, install, build, bundle.
package builder

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/slipway-dev/slipway"
)

// Config is how a Builder works.
type Config struct {
	Root        string        // the data directory; bundles go below Root/bundles
	Owner       string        // of the leases; unique among builders
	Concurrency int           // builds at once; 0 = 2
	Timeout     time.Duration // of one build; 0 = 15 minutes
	Renew       time.Duration // between lease renewals; 0 = 5 s
	MinimumFree uint64        // bytes of disk that a build needs before it begins; 0 = 512 MiB
	MaxBytes    int64         // of disk that one build may take; 0 = 8 GiB
}

func (c Config) withDefaults() Config {
	if c.Owner == "" {
		c.Owner = "builder"
	}
	if c.Concurrency == 0 {
		c.Concurrency = 2
	}
	if c.Timeout == 0 {
		c.Timeout = 15 * time.Minute
	}
	if c.Renew == 0 {
		c.Renew = 5 * time.Second
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = 8 << 30
	}
	if c.MinimumFree == 0 {
		c.MinimumFree = minimumFree
	}
	return c
}

// Deps is what a Builder works with.
type Deps struct {
	Queue      slipway.BuildQueue
	Fetchers   map[slipway.Source]slipway.SourceFetcher
	Toolchains map[slipway.Language]slipway.Toolchain
	// UI builds the components that browsers load; nil = no source that has some can be built.
	UI slipway.UIBundler
	// Depot takes artifacts that are to run on another machine; nil = they run where they are built.
	Depot slipway.Depot
	// Tidied is called after each build; nil = nothing.
	Tidied func(ctx context.Context)
	Clock  slipway.Clock
	Log    *slog.Logger
}

// Builder builds until its context ends.
type Builder struct {
	cfg Config
	Deps

	mu      sync.Mutex
	running map[int64]time.Time // when the builds under way began, by the order of their claims
	claims  int64
}

// Busy returns when the oldest build under way began; zero = none is under way. A little earlier is told: clocks of files are
// coarse.
func (b *Builder) Busy() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	var oldest time.Time
	for _, at := range b.running {
		if oldest.IsZero() || at.Before(oldest) {
			oldest = at
		}
	}
	if oldest.IsZero() {
		return oldest
	}
	return oldest.Add(-time.Second)
}

// begin records that a build is under way until the returned function is called.
func (b *Builder) begin() (end func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.claims++
	n := b.claims
	b.running[n] = b.Clock()
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.running, n)
	}
}

// New makes a Builder.
func New(cfg Config, deps Deps) *Builder {
	return &Builder{cfg: cfg.withDefaults(), Deps: deps, running: map[int64]time.Time{}}
}

// cleaner is a toolchain that can end what an interrupted build left running.
type cleaner interface{ Clean() }

// Run removes what interrupted builds left and builds until ctx ends, which it then returns. Only one builder may run on
// one data directory.
func (b *Builder) Run(ctx context.Context) error {
	for _, toolchain := range b.Toolchains {
		if c, ok := toolchain.(cleaner); ok {
			c.Clean()
		}
	}
	for _, dir := range []string{"bundles", "layers", "tools"} {
		left, _ := filepath.Glob(filepath.Join(b.cfg.Root, dir, ".tmp-*"))
		for _, path := range left {
			_ = os.RemoveAll(path)
		}
	}
	var group sync.WaitGroup
	for range b.cfg.Concurrency {
		group.Go(func() { b.loop(ctx) })
	}
	group.Wait()
	return ctx.Err()
}

func (b *Builder) loop(ctx context.Context) {
	for ctx.Err() == nil {
		job, err := b.Queue.Claim(ctx, b.cfg.Owner)
		if err == nil {
			b.work(ctx, job)
			if b.Tidied != nil {
				b.Tidied(ctx)
			}
			continue
		}
		if ctx.Err() == nil {
			b.Log.Error("claiming a build failed", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

var errLost = errors.New("the build was interrupted or taken over")

// work builds one job and reports what became of it. A build stopped with the platform is left to its lease.
func (b *Builder) work(ctx context.Context, job slipway.BuildJob) {
	defer b.begin()()
	building, lost := context.WithCancelCause(ctx)
	defer lost(nil)
	go b.hold(building, job, lost)
	timed, cancel := context.WithTimeoutCause(building, b.cfg.Timeout, slipway.Errorf(slipway.CodeUnavailable, "the build took longer than %s, which is the limit", b.cfg.Timeout))
	defer cancel()
	watched, exceeded := context.WithCancelCause(timed)
	defer exceeded(nil)
	lines := newLines(b.Queue, job, b.Clock)
	flushed := lines.start(context.WithoutCancel(ctx))
	result, err := b.build(watched, job, lines.add, exceeded)
	if err != nil && watched.Err() != nil {
		err = context.Cause(watched)
	}
	if err != nil {
		lines.addLevel("ERROR", err.Error())
	}
	flushed()
	switch {
	case building.Err() != nil:
		return
	case err != nil:
		err = b.Queue.Fail(ctx, job, lines.redact(err.Error()))
	default:
		err = b.Queue.Complete(ctx, job, result)
	}
	if err != nil && slipway.ErrorCode(err) != slipway.CodeStale {
		b.Log.Error("reporting a build failed", "error", err, "revision_id", job.RevisionID)
	}
}

// hold renews the lease and ends the build when it is gone.
func (b *Builder) hold(ctx context.Context, job slipway.BuildJob, lost context.CancelCauseFunc) {
	tick := time.NewTicker(b.cfg.Renew)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := b.Queue.Renew(ctx, job); slipway.ErrorCode(err) == slipway.CodeStale {
				lost(errLost)
				return
			}
		}
	}
}
