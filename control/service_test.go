package control_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/control"
	"github.com/slipway-dev/slipway/control/controltest"
	"github.com/slipway-dev/slipway/seal"
)

const canary = "canary-7d1f"

func p[T any](v T) *T { return &v }

type world struct {
	*controltest.World
	t *testing.T
}

// newWorld is a service over a real database.
func newWorld(t *testing.T) *world {
	t.Helper()
	store, err := openStore(t)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return newWorldOn(t, store)
}

func newWorldOn(t *testing.T, store slipway.Store) *world {
	t.Helper()
	key, err := seal.New(bytes.Repeat([]byte{7}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	return &world{controltest.New(t, store, key, "http://slipway.test"), t}
}

func must[T any](t *testing.T, v T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func (w *world) create() control.Deployment {
	w.t.Helper()
	d, err := w.Create(w.t.Context(), w.Admin, slipway.DeploymentCreate{
		Name: "desk", Source: slipway.SourceGithost, SourceConfig: slipway.SourceConfig{RepoURL: p("https://example.com/a/b")},
		SourceRevisionConfig: slipway.SourceRevisionConfig{AgentgraphConfigPath: p("agentgraph.json")},
		Secrets:              []slipway.Secret{{Name: "TOKEN", Value: canary}, {Name: "SHORT", Value: "abc"}},
	})
	return must(w.t, d, err)
}

func (w *world) patch(id string) control.Deployment {
	w.t.Helper()
	d, err := w.Patch(w.t.Context(), w.Admin, id, slipway.DeploymentPatch{SourceRevisionConfig: slipway.SourceRevisionConfig{RepoRef: p("r" + w.NextID())}})
	return must(w.t, d, err)
}

func (w *world) claim(owner string) slipway.BuildJob {
	w.t.Helper()
	job, err := w.Claim(w.t.Context(), owner)
	return must(w.t, job, err)
}

func (w *world) complete(job slipway.BuildJob) {
	w.t.Helper()
	must(w.t, 0, w.Complete(w.t.Context(), job, slipway.BuildResult{
		ArtifactDigest: "sha256:" + job.RevisionID, CommitSHA: "c0ffee", EnvFile: map[string]string{"FROM_FILE": "file-value", "TOKEN": "file-token", "PATH": "/evil"},
	}))
}

// desired returns the desired state of the only deployment.
func (w *world) desired() slipway.DesiredDeployment {
	w.t.Helper()
	state, err := w.Desired(w.t.Context(), "")
	must(w.t, 0, err)
	if len(state.Deployments) != 1 {
		w.t.Fatalf("%d deployments desired, want 1", len(state.Deployments))
	}
	return state.Deployments[0]
}

func (w *world) report(status slipway.RevisionStatus, reason string) {
	w.t.Helper()
	d := w.desired()
	must(w.t, 0, w.Report(w.t.Context(), slipway.Report{
		DeploymentID: d.DeploymentID, Generation: d.Generation, RevisionID: d.Candidate.RevisionID, Status: status, Reason: reason,
	}))
}

// deploy takes the next revision all the way and returns its id.
func (w *world) deploy() string {
	w.t.Helper()
	job := w.claim("b")
	w.complete(job)
	w.report(slipway.Deploying, "")
	w.report(slipway.Deployed, "")
	return job.RevisionID
}

func (w *world) status(deployment, revision string) slipway.RevisionStatus {
	w.t.Helper()
	r, err := w.Revision(w.t.Context(), w.Admin, deployment, revision)
	return must(w.t, r, err).Status
}

func TestARevisionGoesLive(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.create()
	if d.Status != slipway.DeploymentAwaitingDatabase {
		t.Errorf("status = %s, want AWAITING_DATABASE", d.Status)
	}
	id := w.deploy()
	got, err := w.Get(t.Context(), w.Admin, d.ID)
	must(t, 0, err)
	if got.ActiveRevisionID != id || got.Status != slipway.DeploymentReady || *got.SourceRevisionConfig.RepoCommitSHA != "c0ffee" {
		t.Errorf("deployment = %+v", got.Deployment)
	}
	events, err := w.Events(t.Context(), w.Admin, d.ID, id)
	must(t, 0, err)
	var steps []slipway.RevisionStatus
	for _, e := range events {
		steps = append(steps, e.Status)
	}
	want := []slipway.RevisionStatus{
		slipway.Creating, slipway.Queued, slipway.AwaitingBuild, slipway.Building, slipway.AwaitingDeploy, slipway.Deploying, slipway.Deployed,
	}
	if !slices.Equal(steps, want) {
		t.Errorf("steps = %v, want %v", steps, want)
	}
}

func TestEnvironmentOfABlueprint(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.create()
	job := w.claim("b")
	if !slices.Equal(job.Redact, []string{canary}) {
		t.Errorf("the build redacts %v, want the long secret", job.Redact)
	}
	w.complete(job)
	got := w.desired().Candidate
	want := map[string]string{
		"FROM_FILE": "file-value", "TOKEN": canary, "SHORT": "abc",
		"LANGSMITH_HOST_PROJECT_ID": d.ID, "LANGSMITH_HOST_PROJECT_NAME": "desk", "LANGSMITH_HOST_REVISION_ID": job.RevisionID,
		"LANGSMITH_DEPLOYMENT_NAME": "desk", "LANGSMITH_PROJECT": "desk", "LANGSMITH_TENANT_ID": d.TenantID,
	}
	if !maps.Equal(got.Env, want) {
		t.Errorf("env = %v\nwant %v", got.Env, want)
	}
	if want := []string{canary, "file-token", "file-value"}; !reflect.DeepEqual(got.Redact, want) {
		t.Errorf("redact = %v, want %v", got.Redact, want)
	}
}

func TestAFailedCandidateLeavesTheActiveOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.create()
	first := w.deploy()
	second := w.patch(d.ID).LatestRevisionID
	w.complete(w.claim("b"))
	w.report(slipway.Deploying, "")
	w.report(slipway.DeployFailed, "exit 1: no module named 'requests'")
	got := w.desired()
	if got.Active == nil || got.Active.RevisionID != first || got.Candidate != nil {
		t.Errorf("desired = %+v, want the first revision alone", got)
	}
	r, _ := w.Revision(t.Context(), w.Admin, d.ID, second)
	if r.Status != slipway.DeployFailed || r.StatusReason != "exit 1: no module named 'requests'" {
		t.Errorf("revision = %s %q", r.Status, r.StatusReason)
	}
}

func TestFailedFirstBuildLeavesItUnused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.create()
	must(t, 0, w.Fail(t.Context(), w.claim("b"), "no agentgraph.json"))
	got, _ := w.Get(t.Context(), w.Admin, d.ID)
	if got.Status != slipway.DeploymentUnused || w.status(d.ID, d.LatestRevisionID) != slipway.BuildFailed {
		t.Errorf("deployment %s, revision %s", got.Status, w.status(d.ID, d.LatestRevisionID))
	}
}

func TestCoalescing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.create()
	older, newest := w.patch(d.ID).LatestRevisionID, w.patch(d.ID).LatestRevisionID
	if got := w.status(d.ID, older); got != slipway.Queued {
		t.Fatalf("older = %s while another is in progress, want QUEUED", got)
	}
	w.deploy()
	if o, n := w.status(d.ID, older), w.status(d.ID, newest); o != slipway.Skipped || n != slipway.AwaitingBuild {
		t.Errorf("older = %s, newest = %s; want SKIPPED, AWAITING_BUILD", o, n)
	}
}

func TestInterruptionStopsABuildAndLetsTheNextGoOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.create()
	job := w.claim("b")
	next := w.patch(d.ID).LatestRevisionID
	r, err := w.Interrupt(t.Context(), w.Admin, d.ID, job.RevisionID)
	if err != nil || r.Status != slipway.Interrupted {
		t.Fatalf("Interrupt = %s, %v", r.Status, err)
	}
	if got := w.status(d.ID, next); got != slipway.AwaitingBuild {
		t.Errorf("next = %s, want AWAITING_BUILD", got)
	}
	if _, err := w.Interrupt(t.Context(), w.Admin, d.ID, job.RevisionID); slipway.ErrorCode(err) != slipway.CodeBadRequest {
		t.Errorf("Interrupt of an ended one = %v, want CodeBadRequest", err)
	}
}

func TestRecoverFreesBuildsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create()
	before := w.claim(control.LocalBuilder + "before")
	must(t, 0, w.Recover(t.Context()))
	elsewhere := w.claim("elsewhere")
	if elsewhere.RevisionID != before.RevisionID {
		t.Errorf("elsewhere = %+v", elsewhere)
	}
	must(t, 0, w.Recover(t.Context()))
	if err := w.Renew(t.Context(), elsewhere); err != nil {
		t.Errorf("the builder on another machine lost its build: %v", err)
	}
}

func TestRedeployNeedsNoBuild(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.create()
	first := w.deploy()
	w.patch(d.ID)
	second := w.deploy()
	again, err := w.Redeploy(t.Context(), w.Admin, d.ID, first)
	must(t, 0, err)
	got := w.desired()
	if got.Active.RevisionID != second || got.Candidate == nil || got.Candidate.RevisionID != again.LatestRevisionID {
		t.Fatalf("desired = %+v", got)
	}
	if got.Candidate.ArtifactDigest != "sha256:"+first {
		t.Errorf("artifact = %s, want the first revision's", got.Candidate.ArtifactDigest)
	}
}

func TestStaleReportsAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.create()
	w.complete(w.claim("b"))
	seen := w.desired()
	w.report(slipway.Deployed, "")
	err := w.Report(t.Context(), slipway.Report{
		DeploymentID: d.ID, Generation: seen.Generation, RevisionID: seen.Candidate.RevisionID, Status: slipway.DeployFailed,
	})
	if slipway.ErrorCode(err) != slipway.CodeStale {
		t.Errorf("Report = %v, want CodeStale", err)
	}
}

func TestFeedBlocksUntilSomethingChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, err := w.Desired(t.Context(), "")
	must(t, 0, err)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Desired(ended, first.Cursor); err == nil {
		t.Fatal("Desired answers though nothing changed")
	}
	got := make(chan slipway.DesiredState)
	go func() {
		state, _ := w.Desired(t.Context(), first.Cursor)
		got <- state
	}()
	w.create()
	if state := <-got; state.Cursor == first.Cursor || len(state.Deployments) != 1 {
		t.Errorf("state = %+v", state)
	}
}

func TestIdenticalPatchesInFlightMakeAtMostOneRevisionEach(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.create()
	latest := make([]string, 8)
	var wg sync.WaitGroup
	for i := range latest {
		wg.Go(func() {
			got, err := w.Patch(t.Context(), w.Admin, d.ID, slipway.DeploymentPatch{Secrets: &[]slipway.Secret{}})
			if err != nil {
				t.Error(err)
			}
			latest[i] = got.LatestRevisionID
		})
	}
	wg.Wait()
	revisions, err := w.Revisions(t.Context(), w.Admin, slipway.RevisionQuery{DeploymentID: d.ID})
	must(t, 0, err)
	slices.Sort(latest)
	if distinct := slices.Compact(latest); len(revisions) != len(distinct)+1 {
		t.Errorf("%d revisions, answers name %d and the first", len(revisions), len(distinct))
	}
}

func TestLogsForFollowers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.create()
	job := w.claim("b")
	q := slipway.LogQuery{DeploymentID: d.ID, RevisionID: job.RevisionID, Kind: slipway.LogBuild, Limit: 2}
	read := func(offset string) control.LogPage {
		page, err := w.Logs(t.Context(), w.Admin, q, offset)
		return must(t, page, err)
	}
	if page := read(""); len(page.Entries) != 0 || page.Next == nil {
		t.Fatalf("empty growing stream = %+v, want an offset", page)
	}
	for _, line := range []string{"one", "two", "three"} {
		must(t, 0, w.Log(t.Context(), job, []slipway.LogEntry{{Message: line, Level: "INFO", At: w.Now()}}))
	}
	first := read("")
	second := read(*first.Next)
	if len(first.Entries) != 2 || len(second.Entries) != 1 || second.Entries[0].Message != "three" {
		t.Fatalf("pages = %+v, %+v", first, second)
	}
	if third := read(*second.Next); len(third.Entries) != 0 || *third.Next != *second.Next {
		t.Errorf("behind the end = %+v, want the same offset", third)
	}
	w.complete(job)
	if end := read(*second.Next); end.Next != nil {
		t.Errorf("the finished stream goes on at %s", *end.Next)
	}
	q.Descending = true
	if last := read(""); last.Entries[0].Message != "three" {
		t.Errorf("descending = %+v", last)
	}
}

func TestSecretsAreNowhereInRecords(t *testing.T) {
	t.Parallel()
	store := controltest.NewStore()
	w := newWorldOn(t, store)
	d := w.create()
	w.deploy()
	must(t, 0, w.Delete(t.Context(), w.Admin, d.ID, control.Deletion{}))
	audit, err := json.Marshal(store.Audit())
	must(t, 0, err)
	shown, err := json.Marshal(d)
	must(t, 0, err)
	if strings.Contains(string(audit)+string(shown), canary) {
		t.Error("a secret's value stands in the audit log or in an answer")
	}
	for _, operation := range []string{"create_deployment", "switch_revision", "delete_deployment"} {
		if !strings.Contains(string(audit), operation) {
			t.Errorf("the audit log lacks %s", operation)
		}
	}
}

func TestBootstrapGivesTheKeyOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	again, err := w.Bootstrap(t.Context())
	if err != nil || again.Key != "" || again.TenantID != w.Admin.TenantID {
		t.Errorf("second Bootstrap = %+v, %v", again, err)
	}
	who, err := w.Authenticate(t.Context(), control.Credential{Key: w.Key})
	if err != nil || who.Role != slipway.RoleAdmin || who.TenantID != w.Admin.TenantID {
		t.Errorf("Authenticate = %+v, %v", who, err)
	}
}

func TestUploadExpires(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.create()
	slot, err := w.NewUpload(t.Context(), w.Admin, d.ID)
	must(t, 0, err)
	_, query, _ := strings.Cut(slot.URL, "?expires=")
	expires, signature, _ := strings.Cut(query, "&signature=")
	id := strings.TrimPrefix(slot.URL[:strings.Index(slot.URL, "?")], "http://slipway.test/uploads/")
	archive := "\x1f\x8b" + strings.Repeat("x", 1<<20)
	if err := w.AcceptUpload(t.Context(), id, expires, signature, -1, strings.NewReader(archive)); slipway.ErrorCode(err) != slipway.CodeTooLarge {
		t.Errorf("too large: %v, want CodeTooLarge", err)
	}
	if err := w.AcceptUpload(t.Context(), id, expires, signature, 2<<20, strings.NewReader("\x1f\x8b")); slipway.ErrorCode(err) != slipway.CodeTooLarge {
		t.Errorf("announced too large: %v, want CodeTooLarge before it is read", err)
	}
	cut := io.MultiReader(strings.NewReader("\x1f\x8bx"), iotest.ErrReader(io.ErrUnexpectedEOF))
	if err := w.AcceptUpload(t.Context(), id, expires, signature, -1, cut); slipway.ErrorCode(err) != slipway.CodeBadRequest {
		t.Errorf("cut short: %v, want CodeBadRequest", err)
	}
	w.Advance(2 * time.Hour)
	if err := w.AcceptUpload(t.Context(), id, expires, signature, -1, strings.NewReader("\x1f\x8b")); slipway.ErrorCode(err) != slipway.CodeForbidden {
		t.Errorf("expired: %v, want CodeForbidden", err)
	}
}
