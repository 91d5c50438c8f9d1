package builder_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/builder"
	"github.com/slipway-dev/slipway/keeper"
)

// TestMain lets this binary be the keeper of commands.
func TestMain(m *testing.M) {
	if keeper.Is(os.Args) {
		os.Exit(keeper.Run())
	}
	os.Exit(m.Run())
}

// queue hands out one job and keeps what is reported.
type queue struct {
	jobs chan slipway.BuildJob
	done chan report
}

type report struct {
	result slipway.BuildResult
	reason string
}

func (q queue) Claim(ctx context.Context, _ string) (slipway.BuildJob, error) {
	select {
	case job := <-q.jobs:
		return job, nil
	case <-ctx.Done():
		return slipway.BuildJob{}, ctx.Err()
	}
}
func (queue) Renew(context.Context, slipway.BuildJob) error                   { return nil }
func (queue) Log(context.Context, slipway.BuildJob, []slipway.LogEntry) error { return nil }
func (q queue) Complete(_ context.Context, _ slipway.BuildJob, r slipway.BuildResult) error {
	q.done <- report{result: r}
	return nil
}

func (q queue) Fail(_ context.Context, _ slipway.BuildJob, reason string) error {
	q.done <- report{reason: reason}
	return nil
}

type fetcher fstest.MapFS

func (f fetcher) Fetch(_ context.Context, _ slipway.BuildJob, dir string, _ func(string)) (string, error) {
	return "", os.CopyFS(dir, fstest.MapFS(f))
}

type tools struct{}

func (tools) Prepare(context.Context, slipway.Project, func(string)) (slipway.Prepared, error) {
	return slipway.Prepared{Node: &slipway.NodeBundle{Interpreter: "node"}, Key: "k"}, nil
}

func build(t *testing.T, root string, files fetcher) report {
	t.Helper()
	q := queue{jobs: make(chan slipway.BuildJob, 1), done: make(chan report, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	b := builder.New(builder.Config{Root: root}, builder.Deps{
		Queue: q, Clock: time.Now, Log: slog.New(slog.DiscardHandler),
		Fetchers:   map[slipway.Source]slipway.SourceFetcher{slipway.SourceInternalSource: files},
		Toolchains: map[slipway.Language]slipway.Toolchain{slipway.Node: tools{}},
	})
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	q.jobs <- slipway.BuildJob{Source: slipway.SourceInternalSource}
	r := <-q.done
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Run = %v, want context.Canceled", err)
	}
	return r
}

func TestBuildIsContentAddressed(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	files := fetcher{"agentgraph.json": {Data: []byte(`{"graphs":{"a":"./a.mjs:graph"}}`)}, "a.mjs": {Data: []byte("1")}}
	first, second := build(t, root, files), build(t, root, files)
	if first.reason != "" || first.result.ArtifactDigest != second.result.ArtifactDigest {
		t.Fatalf("got %+v and %+v, want the same digest", first, second)
	}
	files["a.mjs"] = &fstest.MapFile{Data: []byte("2")}
	if third := build(t, root, files); third.result.ArtifactDigest == first.result.ArtifactDigest {
		t.Error("other code has the same digest")
	}
	if _, err := os.Stat(filepath.Join(slipway.BundlePath(filepath.Join(root, "bundles"), first.result.ArtifactDigest), slipway.BundleFile)); err != nil {
		t.Error(err)
	}
}

func TestFailuresSayWhatToDo(t *testing.T) {
	t.Parallel()
	for want, files := range map[string]fetcher{
		"line 2, column 1": {"agentgraph.json": {Data: []byte("{\n]")}},
		`did you mean "agent.mjs"?`: {
			"agentgraph.json": {Data: []byte(`{"graphs":{"a":"./agnt.mjs:graph"}}`)}, "agent.mjs": {},
		},
		"no graph configuration": {"x": {}},
	} {
		if got := build(t, t.TempDir(), files).reason; !strings.Contains(got, want) {
			t.Errorf("reason %q, want %q in it", got, want)
		}
	}
}
