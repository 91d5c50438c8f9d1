// Package buildqueuetest is the conformance suite that every slipway.BuildQueue passes: the one in the control service's
// process and the one of a builder elsewhere, over HTTP.
package buildqueuetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-dev/slipway"
)

// Canary is the value of the secret that every deployment of a bench has. It never leaves the queue.
const Canary = "canary-5f0c"

// Bench is a control service with one queue to it.
type Bench struct {
	Queue slipway.BuildQueue
	// Create makes a deployment of a git repository in a tenant, which it makes first if need be, with the secret Canary and the
	// configuration path agentgraph.json. Its first revision waits for a build.
	Create func(t *testing.T, tenant, name string) (deploymentID string)
	// Change makes another revision, which takes the place of one that waits.
	Change func(t *testing.T, deploymentID string)
	// Interrupt ends a revision by hand; Purge removes a deployment for good.
	Interrupt func(t *testing.T, deploymentID, revisionID string)
	Purge     func(t *testing.T, deploymentID string)
	// Pass lets time go by at the control service; a lease lasts 30 seconds.
	Pass func(d time.Duration)
	// Revision returns what the control service has.
	Revision func(t *testing.T, deploymentID, revisionID string) slipway.Revision
	// Lines are a revision's build log, oldest first.
	Lines func(t *testing.T, deploymentID, revisionID string) []string
	// HandOver makes an artifact for the job, brings it where the queue wants it and returns the result to report.
	HandOver func(t *testing.T, job slipway.BuildJob) slipway.BuildResult
	// Incomplete is a result whose parts were not handed over; nil where artifacts stay where they are built.
	Incomplete func(t *testing.T, job slipway.BuildJob) slipway.BuildResult
}

// patience bounds what hangs only if it is broken.
const patience = 30 * time.Second

// Run runs the suite; open makes a new bench.
func Run(t *testing.T, open func(t *testing.T) *Bench) {
	for name, test := range map[string]func(t *testing.T, b *Bench){
		"a job says what to build":         jobs,
		"claiming waits for a job":         waiting,
		"claiming ends with ctx":           waitingEnds,
		"the oldest first":                 order,
		"tenants take turns":               turns,
		"a job goes to one builder":        once,
		"a renewed lease holds":            renewal,
		"an expired lease is taken over":   expiry,
		"an interruption is told":          interruption,
		"a purge is told":                  purge,
		"log lines in order, without keys": logs,
		"an artifact":                      artifact,
		"an artifact that is not there":    incomplete,
		"a failure":                        failure,
		"what is over is over":             over,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

func (b *Bench) claim(t *testing.T, owner string) slipway.BuildJob {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	job, err := b.Queue.Claim(ctx, owner)
	if err != nil {
		t.Fatalf("%s claims: %v", owner, err)
	}
	return job
}

// refused checks that every report of the job is.
func (b *Bench) refused(t *testing.T, job slipway.BuildJob, why string) {
	t.Helper()
	digest := "sha256:" + strings.Repeat("0", 64)
	result := slipway.BuildResult{ArtifactDigest: digest}
	if b.Incomplete != nil {
		result = b.Incomplete(t, job)
	}
	for name, err := range map[string]error{
		"Renew":    b.Queue.Renew(t.Context(), job),
		"Log":      b.Queue.Log(t.Context(), job, []slipway.LogEntry{{At: time.Now(), Level: "INFO", Message: "late"}}),
		"Complete": b.Queue.Complete(t.Context(), job, result),
		"Fail":     b.Queue.Fail(t.Context(), job, "late"),
	} {
		if code := slipway.ErrorCode(err); code != slipway.CodeStale && (name != "Complete" || b.Incomplete == nil || code != slipway.CodeInvalid) {
			t.Errorf("%s: %s answers %v, want CodeStale", why, name, err)
		}
	}
}

func (b *Bench) status(t *testing.T, job slipway.BuildJob, want slipway.RevisionStatus) {
	t.Helper()
	if got := b.Revision(t, job.DeploymentID, job.RevisionID).Status; got != want {
		t.Errorf("revision is %s, want %s", got, want)
	}
}

func jobs(t *testing.T, b *Bench) {
	id := b.Create(t, "a", "desk")
	job := b.claim(t, "builder-1")
	if job.DeploymentID != id || job.RevisionID == "" || job.TenantID == "" || job.Name != "desk" || job.Owner != "builder-1" || job.Epoch != 1 {
		t.Errorf("job = %+v", job)
	}
	if job.Source != slipway.SourceGithost || job.RepoURL == "" || job.ConfigPath != "agentgraph.json" {
		t.Errorf("source = %+v", job)
	}
	b.status(t, job, slipway.Building)
}

func waiting(t *testing.T, b *Bench) {
	got := make(chan slipway.BuildJob, 1)
	go func() {
		job, _ := b.Queue.Claim(t.Context(), "early")
		got <- job
	}()
	id := b.Create(t, "a", "desk")
	select {
	case job := <-got:
		if job.DeploymentID != id {
			t.Errorf("job = %+v", job)
		}
	case <-time.After(patience):
		t.Fatal("the new revision woke nobody")
	}
}

func waitingEnds(t *testing.T, b *Bench) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := b.Queue.Claim(ctx, "early")
		ended <- err
	}()
	cancel()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("a claim of nothing succeeded")
		}
	case <-time.After(patience):
		t.Fatal("the claim goes on without its context")
	}
	id := b.Create(t, "a", "desk")
	if job := b.claim(t, "late"); job.DeploymentID != id || job.Epoch != 1 {
		t.Errorf("job = %+v; want that the claim which ended took nothing", job)
	}
}

func order(t *testing.T, b *Bench) {
	var want []string
	for i := range 3 {
		want = append(want, b.Create(t, "a", fmt.Sprint("desk-", i)))
	}
	for i, id := range want {
		if job := b.claim(t, "b"); job.DeploymentID != id {
			t.Errorf("job %d is of %s, want %s", i, job.Name, id)
		}
	}
}

func turns(t *testing.T, b *Bench) {
	for i := range 4 {
		b.Create(t, "many", fmt.Sprint("many-", i))
	}
	b.Create(t, "few", "few-0")
	b.Create(t, "few", "few-1")
	var got []string
	for range 6 { // whoever has less under way comes first, and then who has not had a turn for longer
		got = append(got, b.claim(t, "b").Name)
	}
	if want := "many-0 few-0 many-1 few-1 many-2 many-3"; strings.Join(got, " ") != want {
		t.Errorf("order %v, want %s", got, want)
	}
}

func once(t *testing.T, b *Bench) {
	const n = 8
	for i := range n {
		b.Create(t, fmt.Sprint("t", i%2), fmt.Sprint("desk-", i))
	}
	var group sync.WaitGroup
	claimed := make(chan string, n)
	for i := range n {
		group.Go(func() { claimed <- b.claim(t, fmt.Sprint("builder-", i)).RevisionID })
	}
	group.Wait()
	close(claimed)
	seen := map[string]bool{}
	for id := range claimed {
		if seen[id] {
			t.Errorf("revision %s was claimed twice", id)
		}
		seen[id] = true
	}
}

func renewal(t *testing.T, b *Bench) {
	b.Create(t, "a", "desk")
	job := b.claim(t, "first")
	for range 4 {
		b.Pass(20 * time.Second)
		if err := b.Queue.Renew(t.Context(), job); err != nil {
			t.Fatal(err)
		}
	}
	other := b.Create(t, "a", "shop")
	if next := b.claim(t, "second"); next.DeploymentID != other {
		t.Errorf("a build that is held was given to a second: %+v", next)
	}
}

func expiry(t *testing.T, b *Bench) {
	b.Create(t, "a", "desk")
	first := b.claim(t, "first")
	b.Pass(31 * time.Second)
	second := b.claim(t, "second")
	if second.RevisionID != first.RevisionID || second.Epoch <= first.Epoch {
		t.Fatalf("taken over = %+v after %+v", second, first)
	}
	b.refused(t, first, "taken over")
	masked := first
	masked.Epoch = second.Epoch
	b.refused(t, masked, "another's epoch")
	if err := b.Queue.Complete(t.Context(), second, b.HandOver(t, second)); err != nil {
		t.Fatal(err)
	}
	b.status(t, second, slipway.AwaitingDeploy)
	for _, line := range b.Lines(t, second.DeploymentID, second.RevisionID) {
		if strings.Contains(line, "late") {
			t.Errorf("the log has a line of a builder that lost the build: %q", line)
		}
	}
}

func interruption(t *testing.T, b *Bench) {
	b.Create(t, "a", "desk")
	job := b.claim(t, "b")
	b.Interrupt(t, job.DeploymentID, job.RevisionID)
	b.refused(t, job, "interrupted")
	b.status(t, job, slipway.Interrupted)
}

func purge(t *testing.T, b *Bench) {
	b.Create(t, "a", "desk")
	job := b.claim(t, "b")
	b.Purge(t, job.DeploymentID)
	b.refused(t, job, "purged")
}

func logs(t *testing.T, b *Bench) {
	b.Create(t, "a", "desk")
	job := b.claim(t, "b")
	var lines []slipway.LogEntry
	for i := range 2300 {
		lines = append(lines, slipway.LogEntry{At: time.Now(), Level: "INFO", Message: fmt.Sprintf("line %04d of %s", i, Canary)})
	}
	for _, batch := range [][]slipway.LogEntry{lines[:7], lines[7:]} {
		if err := b.Queue.Log(t.Context(), job, batch); err != nil {
			t.Fatal(err)
		}
	}
	got := b.Lines(t, job.DeploymentID, job.RevisionID)
	if len(got) != len(lines) {
		t.Fatalf("%d lines arrived, want %d", len(got), len(lines))
	}
	for i, line := range got {
		if !strings.HasPrefix(line, fmt.Sprintf("line %04d of ", i)) || strings.Contains(line, Canary) {
			t.Fatalf("line %d is %q", i, line)
		}
	}
}

func artifact(t *testing.T, b *Bench) {
	b.Create(t, "a", "desk")
	job := b.claim(t, "b")
	result := b.HandOver(t, job)
	result.CommitSHA, result.EnvFile = strings.Repeat("c0ffee00", 5), map[string]string{"FROM_FILE": "value-of-the-file"}
	if err := b.Queue.Complete(t.Context(), job, result); err != nil {
		t.Fatal(err)
	}
	r := b.Revision(t, job.DeploymentID, job.RevisionID)
	if r.Status != slipway.AwaitingDeploy || r.ArtifactDigest != result.ArtifactDigest || r.LeaseOwner != "" {
		t.Errorf("revision = %+v", r)
	}
	if sha := r.SourceRevisionConfig.RepoCommitSHA; sha == nil || *sha != result.CommitSHA {
		t.Errorf("commit = %v, want %s", sha, result.CommitSHA)
	}
	if r.BuildSecretSetID == "" {
		t.Error("the variables of the .env file were not kept")
	}
}

func incomplete(t *testing.T, b *Bench) {
	if b.Incomplete == nil {
		return // there are no parts
	}
	b.Create(t, "a", "desk")
	job := b.claim(t, "b")
	if err := b.Queue.Complete(t.Context(), job, b.Incomplete(t, job)); slipway.ErrorCode(err) != slipway.CodeInvalid || !strings.Contains(err.Error(), "was not uploaded") {
		t.Errorf("completing without the parts: %v, want a refusal that names one", err)
	}
	b.status(t, job, slipway.Building)
	if err := b.Queue.Complete(t.Context(), job, b.HandOver(t, job)); err != nil {
		t.Errorf("completing with them: %v", err)
	}
}

func failure(t *testing.T, b *Bench) {
	id := b.Create(t, "a", "desk")
	job := b.claim(t, "b")
	if err := b.Queue.Fail(t.Context(), job, "it says "+Canary+strings.Repeat("!", 40_000)); err != nil {
		t.Fatal(err)
	}
	r := b.Revision(t, id, job.RevisionID)
	if r.Status != slipway.BuildFailed || !strings.HasPrefix(r.StatusReason, "it says ") || strings.Contains(r.StatusReason, Canary) || len(r.StatusReason) > 20_000 {
		t.Errorf("revision is %s because %.60q (%d bytes)", r.Status, r.StatusReason, len(r.StatusReason))
	}
	b.Change(t, id)
	if next := b.claim(t, "b"); next.DeploymentID != id || next.RevisionID == job.RevisionID {
		t.Errorf("after a failure: %+v, want the next revision", next)
	}
}

func over(t *testing.T, b *Bench) {
	b.Create(t, "a", "desk")
	b.Create(t, "a", "shop")
	done, failed := b.claim(t, "b"), b.claim(t, "b")
	if err := errors.Join(b.Queue.Complete(t.Context(), done, b.HandOver(t, done)), b.Queue.Fail(t.Context(), failed, "broken")); err != nil {
		t.Fatal(err)
	}
	b.refused(t, done, "completed")
	b.refused(t, failed, "failed")
	b.status(t, done, slipway.AwaitingDeploy)
	b.status(t, failed, slipway.BuildFailed)
}
