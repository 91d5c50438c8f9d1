package layouts_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/builder"
	"github.com/slipway-dev/slipway/toolchain/node"
	"github.com/slipway-dev/slipway/toolchain/python"
)

// factory is one builder for all layouts, so that those with the same dependencies share a layer.
type factory struct {
	root string
	jobs chan slipway.BuildJob
	mu   sync.Mutex
	open map[string]*order
}

// order is one build and what comes of it.
type order struct {
	log    []string
	made   slipway.BuildResult
	reason string // of a failure, "" for success
	done   chan struct{}
}

// startFactory runs a builder until stop is called.
func startFactory(root, cache string) (f *factory, stop func()) {
	f = &factory{root: root, jobs: make(chan slipway.BuildJob), open: map[string]*order{}}
	tools := filepath.Join(cache, "tools")
	javascript := node.New(node.Config{Root: root, Cache: cache, Tools: tools})
	b := builder.New(builder.Config{Root: root, Concurrency: concurrency}, builder.Deps{
		Queue: f, Clock: time.Now, Log: slog.New(slog.DiscardHandler),
		Fetchers: map[slipway.Source]slipway.SourceFetcher{slipway.SourceInternalSource: directories{}},
		UI:       javascript,
		Toolchains: map[slipway.Language]slipway.Toolchain{
			slipway.Node:   javascript,
			slipway.Python: python.New(python.Config{Root: root, Cache: cache, Tools: tools}),
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { _ = b.Run(ctx); close(ended) }()
	return f, func() { cancel(); <-ended }
}

// build builds one job to its end.
func (f *factory) build(job slipway.BuildJob) *order {
	o := &order{done: make(chan struct{})}
	f.mu.Lock()
	f.open[job.RevisionID] = o
	f.mu.Unlock()
	f.jobs <- job
	<-o.done
	return o
}

func (f *factory) order(job slipway.BuildJob) *order {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open[job.RevisionID]
}

// Claim implements slipway.BuildQueue, as do the others.
func (f *factory) Claim(ctx context.Context, _ string) (slipway.BuildJob, error) {
	select {
	case job := <-f.jobs:
		return job, nil
	case <-ctx.Done():
		return slipway.BuildJob{}, ctx.Err()
	}
}

func (*factory) Renew(context.Context, slipway.BuildJob) error { return nil }

func (f *factory) Log(_ context.Context, job slipway.BuildJob, entries []slipway.LogEntry) error {
	o := f.order(job)
	for _, e := range entries {
		o.log = append(o.log, e.Message)
	}
	return nil
}

func (f *factory) Complete(_ context.Context, job slipway.BuildJob, r slipway.BuildResult) error {
	o := f.order(job)
	o.made = r
	close(o.done)
	return nil
}

func (f *factory) Fail(_ context.Context, job slipway.BuildJob, reason string) error {
	o := f.order(job)
	o.reason = reason
	close(o.done)
	return nil
}

// directories fetches what a job's repository names: a directory.
type directories struct{}

func (directories) Fetch(_ context.Context, job slipway.BuildJob, dir string, _ func(string)) (string, error) {
	return "", os.CopyFS(dir, os.DirFS(job.RepoURL))
}
