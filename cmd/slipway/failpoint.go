package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/builder"
)

// failpoint is the moment at which this platform kills itself without warning (SIGKILL), so that tests of recovery need no
// timing. The environment variable SLIPWAY_FAILPOINT names it; "" = never, and then nothing is wrapped. A name says what
// is about to happen (…ing) or has just happened (…ed). It is for tests: see docs/failpoints.md.
type failpoint string

// failpointVariable names the failpoint in the environment.
const failpointVariable = "SLIPWAY_FAILPOINT"

// failpoints are the moments, in the order of a deployment's life.
func failpoints() []string {
	return []string{
		"create.receiving", "create.recorded",
		"upload.receiving", "upload.reading", "upload.stored",
		"patch.receiving", "patch.recorded",
		"build.claimed", "build.fetched", "build.installing", "build.installed", "build.packing", "build.handing", "build.handed", "build.bundled", "build.completed",
		"handover.receiving", "handover.reading", "handover.stored", "completion.receiving", "completion.recorded",
		"deploy.starting", "deploy.started", "deploy.switching", "deploy.switched", "deploy.reporting", "deploy.reported",
		"deploy.draining", "deploy.drained",
		"delete.receiving", "delete.recorded", "delete.removed", "delete.destroyed",
		"collect.marked", "collect.taken", "collect.doomed", "collect.removing", "collect.removed",
	}
}

// readFailpoint reads the variable; a name that does not exist is an error, or a test would prove nothing.
func readFailpoint(getenv func(string) string) (failpoint, error) {
	name := getenv(failpointVariable)
	if name != "" && !slices.Contains(failpoints(), name) {
		return "", fmt.Errorf("%s is %q; unset it, or use one of %s", failpointVariable, name, strings.Join(failpoints(), ", "))
	}
	return failpoint(name), nil
}

// at kills the process if this is the moment.
func (f failpoint) at(name string) {
	if string(f) == name {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

// handler wraps the control API.
func (f failpoint) handler(next http.Handler) http.Handler {
	if f == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		phase, before, after := requestPhase(r)
		f.at(phase + before)
		if phase == "upload" || phase == "handover" {
			r.Body = faultyBody{r.Body, f, phase + ".reading"}
		}
		next.ServeHTTP(w, r)
		f.at(phase + after)
	})
}

func requestPhase(r *http.Request) (phase, before, after string) {
	switch {
	case r.Method == http.MethodPost && r.URL.Path == "/v2/deployments":
		return "create", ".receiving", ".recorded"
	case r.Method == http.MethodPut && strings.HasPrefix(r.URL.Path, "/uploads/"):
		return "upload", ".receiving", ".stored"
	case r.Method == http.MethodPut && strings.HasPrefix(r.URL.Path, "/blobs/"):
		return "handover", ".receiving", ".stored"
	case r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, "/v2/builds/") && strings.HasSuffix(r.URL.Path, "/completion"):
		return "completion", ".receiving", ".recorded"
	case r.Method == http.MethodPatch:
		return "patch", ".receiving", ".recorded"
	case r.Method == http.MethodDelete:
		return "delete", ".receiving", ".recorded"
	}
	return "", "", ""
}

// faultyBody dies in the middle of what it carries: when some of it was read.
type faultyBody struct {
	io.ReadCloser
	f    failpoint
	name string
}

func (b faultyBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.f.at(b.name)
	}
	return n, err
}

// deps wraps what the builder works with.
func (f failpoint) deps(d builder.Deps) builder.Deps {
	if f == "" {
		return d
	}
	d.Queue = faultyQueue{d.Queue, f}
	if d.Depot != nil {
		d.Depot = faultyDepot{d.Depot, f}
	}
	for source, fetcher := range d.Fetchers {
		d.Fetchers[source] = faultyFetcher{fetcher, f}
	}
	for language, toolchain := range d.Toolchains {
		d.Toolchains[language] = faultyToolchain{toolchain, f}
	}
	return d
}

type faultyQueue struct {
	slipway.BuildQueue
	f failpoint
}

func (q faultyQueue) Claim(ctx context.Context, owner string) (slipway.BuildJob, error) {
	job, err := q.BuildQueue.Claim(ctx, owner)
	if err == nil {
		q.f.at("build.claimed")
	}
	return job, err
}

func (q faultyQueue) Complete(ctx context.Context, job slipway.BuildJob, result slipway.BuildResult) error {
	q.f.at("build.bundled")
	err := q.BuildQueue.Complete(ctx, job, result)
	q.f.at("build.completed")
	return err
}

type faultyDepot struct {
	slipway.Depot
	f failpoint
}

func (d faultyDepot) Store(ctx context.Context, job slipway.BuildJob, root, digest string, shared []string) ([]slipway.ArtifactPart, error) {
	d.f.at("build.packing")
	parts, err := d.Depot.Store(ctx, job, root, digest, shared)
	d.f.at("build.handed")
	return parts, err
}

// archive is one that is sent.
func (f failpoint) archive(r io.ReadCloser) io.ReadCloser {
	if f == "" {
		return r
	}
	return faultyBody{r, f, "build.handing"}
}

type faultyFetcher struct {
	slipway.SourceFetcher
	f failpoint
}

func (s faultyFetcher) Fetch(ctx context.Context, job slipway.BuildJob, dir string, log func(string)) (string, error) {
	commit, err := s.SourceFetcher.Fetch(ctx, job, dir, log)
	s.f.at("build.fetched")
	return commit, err
}

type faultyToolchain struct {
	slipway.Toolchain
	f failpoint
}

func (t faultyToolchain) Prepare(ctx context.Context, p slipway.Project, log func(string)) (slipway.Prepared, error) {
	prepared, err := t.Toolchain.Prepare(ctx, p, func(line string) {
		log(line)
		if !strings.HasPrefix(line, "$ ") { // the installer itself speaks: it runs
			t.f.at("build.installing")
		}
	})
	t.f.at("build.installed")
	return prepared, err
}

// runtime, router and feed wrap what the listener works with. They act on the change from one revision to another only, or
// the platform would die of adopting what runs already.
func (f failpoint) runtime(rt slipway.Runtime) slipway.Runtime {
	if f == "" {
		return rt
	}
	return faultyRuntime{rt, f}
}

type faultyRuntime struct {
	slipway.Runtime
	f failpoint
}

func (r faultyRuntime) Ensure(ctx context.Context, w slipway.Workload) error {
	known, err := r.Runtime.Observe(ctx, w.DeploymentID)
	fresh := err == nil && !slices.ContainsFunc(known, func(o slipway.Observed) bool { return o.RevisionID == w.RevisionID })
	if fresh {
		r.f.at("deploy.starting")
	}
	err = r.Runtime.Ensure(ctx, w)
	if fresh {
		r.f.at("deploy.started")
	}
	return err
}

func (r faultyRuntime) Drain(ctx context.Context, deploymentID, revisionID string) error {
	r.f.at("deploy.draining")
	err := r.Runtime.Drain(ctx, deploymentID, revisionID)
	r.f.at("deploy.drained")
	return err
}

func (r faultyRuntime) Remove(ctx context.Context, deploymentID, revisionID string) error {
	err := r.Runtime.Remove(ctx, deploymentID, revisionID)
	r.f.at("delete.removed")
	return err
}

func (r faultyRuntime) Destroy(ctx context.Context, deploymentID string) error {
	err := r.Runtime.Destroy(ctx, deploymentID)
	r.f.at("delete.destroyed")
	return err
}

func (f failpoint) router(next slipway.Router) slipway.Router {
	if f == "" {
		return next
	}
	return &faultyRouter{Router: next, f: f, serving: map[string]string{}}
}

type faultyRouter struct {
	slipway.Router
	f failpoint

	mu      sync.Mutex
	serving map[string]string // revision by deployment
}

func (r *faultyRouter) Route(name, deploymentID, revisionID, endpoint string) {
	r.mu.Lock()
	before := r.serving[deploymentID]
	if endpoint != "" {
		r.serving[deploymentID] = revisionID
	}
	r.mu.Unlock()
	another := endpoint != "" && before != "" && before != revisionID
	if another {
		r.f.at("deploy.switching")
	}
	r.Router.Route(name, deploymentID, revisionID, endpoint)
	if another {
		r.f.at("deploy.switched")
	}
}

func (f failpoint) feed(next slipway.Feed) slipway.Feed {
	if f == "" {
		return next
	}
	return faultyFeed{next, f}
}

type faultyFeed struct {
	slipway.Feed
	f failpoint
}

func (d faultyFeed) Report(ctx context.Context, r slipway.Report) error {
	if r.Status == slipway.Deployed {
		d.f.at("deploy.reporting")
	}
	err := d.Feed.Report(ctx, r)
	if r.Status == slipway.Deployed {
		d.f.at("deploy.reported")
	}
	return err
}

// shelf wraps what collections remove things from; removal is told the steps in between.
func (f failpoint) shelf(next slipway.Shelf) slipway.Shelf {
	if f == "" {
		return next
	}
	return faultyShelf{next, f}
}

type faultyShelf struct {
	slipway.Shelf
	f failpoint
}

func (s faultyShelf) Remove(ctx context.Context, path string, before time.Time) (bool, error) {
	s.f.at("collect.marked")
	gone, err := s.Shelf.Remove(ctx, path, before)
	s.f.at("collect.removed")
	return gone, err
}

func (f failpoint) removal() func(step string) {
	if f == "" {
		return nil
	}
	return func(step string) { f.at("collect." + step) }
}
